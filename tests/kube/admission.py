"""The admission webhook for tests: its process, what registers it with an API server, and reviews that
are sent to it directly."""

import base64
import http.client
import json
import pathlib
import socket
import ssl
import subprocess

from processes import Program, free_port
from service import BINARY, ROOT, wait_for

NAME = "gpu-scheduler-webhook"
NAMESPACE = "gpu-scheduler-system"
SECRET = "gpu-scheduler-webhook-tls"
SCRIPT = ROOT / "scripts/generate-webhook-certs.sh"
ACCOUNT = "webhook"

# What the webhook may do, and no more.
RIGHTS = f"""
apiVersion: v1
kind: Namespace
metadata: {{name: {NAMESPACE}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: {ACCOUNT}, namespace: {NAMESPACE}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {NAME}}}
rules:
  - {{apiGroups: [gpu.scheduling], resources: [gpuclaims], verbs: [get, list, watch]}}
  - apiGroups: [admissionregistration.k8s.io]
    resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
    resourceNames: [{NAME}]
    verbs: [get, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {NAME}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {NAME}}}
subjects: [{{kind: ServiceAccount, name: {ACCOUNT}, namespace: {NAMESPACE}}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: {NAME}, namespace: {NAMESPACE}}}
rules:
  - {{apiGroups: [""], resources: [secrets], verbs: [create]}}
  - {{apiGroups: [""], resources: [secrets], resourceNames: [{SECRET}], verbs: [get, update]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: {NAME}, namespace: {NAMESPACE}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: {NAME}}}
subjects: [{{kind: ServiceAccount, name: {ACCOUNT}, namespace: {NAMESPACE}}}]
"""

RULES = {
    "mutate": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["pods"]}],
    "validate": [
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]},
        {"apiGroups": ["apps", "batch"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
         "resources": ["jobs", "deployments", "replicasets", "statefulsets"]},
        {"apiGroups": ["gpu.scheduling", "topology.scheduler"], "apiVersions": ["*"],
         "operations": ["CREATE", "UPDATE"],
         "resources": ["gpuclaims", "gputenants", "schedulerconfigs", "topologyschedulerconfigs"]}]}
KINDS = {"mutate": "MutatingWebhookConfiguration", "validate": "ValidatingWebhookConfiguration"}
ADMISSION = "/apis/admissionregistration.k8s.io/v1"


def make_certificates(folder, *options):
    """By the script, as a user runs it; the caBundle that it prints."""
    done = subprocess.run([str(SCRIPT), "--out", str(folder), "--extra-name", "127.0.0.1", *options],
                          capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Webhook:
    """One replica."""

    def __init__(self, plane, name, *flags, kubeconfig=None):
        self.port, self.health_port = free_port(), free_port()
        command = [BINARY, "webhook", "--kubeconfig", str(kubeconfig or plane.kubeconfig), "--bind",
                   "0.0.0.0", "--port", str(self.port), "--health-port", str(self.health_port),
                   "--namespace", NAMESPACE, *flags]
        self.program = Program(name, command, plane.folder)

    def start(self):
        self.program.start()
        wait_for(self.is_ready, f"{self.program.name} is ready")
        return self

    def probe(self, path):
        """Status and body of a page of the plain port; (0, "") where nothing listens."""
        link = http.client.HTTPConnection("127.0.0.1", self.health_port, timeout=10)
        try:
            link.request("GET", path)
            answer = link.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return 0, ""
        finally:
            link.close()

    def is_ready(self):
        self.program.check_running()
        return self.probe("/ready")[0] == 200

    def trusting(self, bundle):
        """A TLS context that trusts a caBundle."""
        return ssl.create_default_context(cadata=base64.b64decode(bundle).decode())

    def send(self, tls, path, body, headers=None, method="POST"):
        """A request over HTTPS: (status, body)."""
        link = http.client.HTTPSConnection("127.0.0.1", self.port, context=tls, timeout=20)
        try:
            link.request(method, path, body, headers or {"Content-Type": "application/json"})
            answer = link.getresponse()
            return answer.status, answer.read().decode()
        finally:
            link.close()

    def certificate(self):
        """The one that is served now, whoever made it."""
        return ssl.get_server_certificate(("127.0.0.1", self.port))

    def is_trusted_by(self, bundle, host="127.0.0.1"):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=20) as link:
                with self.trusting(bundle).wrap_socket(link, server_hostname=host):
                    return True
        except ssl.SSLCertVerificationError:
            return False

    def stop(self):
        self.program.stop()


def register(plane, client, bundle=None):
    """(Re)creates both configurations. client(path) is the clientConfig without its bundle."""
    for path, kind in KINDS.items():
        plural = f"{ADMISSION}/{kind.lower()}s"
        if plane.find(f"{plural}/{NAME}"):
            plane.request("DELETE", f"{plural}/{NAME}")
        config = {**client(path), **({"caBundle": bundle} if bundle else {})}
        plane.request("POST", plural, {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": NAME},
            "webhooks": [{"name": f"{path}.gpu.scheduling", "clientConfig": config,
                          "rules": RULES[path], "failurePolicy": "Fail", "sideEffects": "None",
                          "timeoutSeconds": 10, "admissionReviewVersions": ["v1"]}]})


def bundles(plane):
    """The caBundle of each configuration."""
    return [plane.get(f"{ADMISSION}/{kind.lower()}s/{NAME}")["webhooks"][0]["clientConfig"]
            .get("caBundle", "") for kind in KINDS.values()]


def review(pod, uid="r-1"):
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": uid, "kind": {"group": "", "version": "v1", "kind": "Pod"}, "namespace": "default",
        "operation": "CREATE", "object": pod}})


def read(path):
    return pathlib.Path(path).read_text()
