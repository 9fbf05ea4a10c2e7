#!/usr/bin/env python3
"""A real Kubernetes control plane for tests, on free loopback ports, in a temporary folder.

    with ControlPlane(nodes=4) as cluster:                  # 4 simulated nodes with 8 GPUs each
        cluster.apply("tests/kube/pod.yaml")                # a file, or the text itself
        cluster.kubectl("get", "nodes").out
        cluster.get("/api/v1/nodes")["items"]               # without kubectl's start-up time
        cluster.wait_until("/api/v1/namespaces/default/pods/a",
                           lambda pod: pod["status"]["phase"] == "Running", "a runs")

etcd, kube-apiserver (RBAC, ServiceAccount admission), kube-controller-manager and kwok, which lets
simulated nodes live and their pods run (kwok-stages.yaml says how). Everything is stopped at the
end, by the ids that were started; the logs are shown where a test fails inside the `with`.

By hand: `control_plane.py up --nodes 100` prints a KUBECONFIG and runs until Ctrl-C.

KUBE_VERSION names another version than the newest; KEEP=1 leaves the folder behind.
"""

import argparse
import atexit
import base64
import http.client
import json
import os
import pathlib
import secrets
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(pathlib.Path(__file__).resolve().parent)]
import kube_toolchain  # noqa: E402
from api_client import Answer, ApiClient, in_parallel  # noqa: E402
from credentials import Credentials  # noqa: E402
from gpu_nodes import gpu_node, gpu_node_status  # noqa: E402
from processes import Program, free_port, wait_for  # noqa: E402

STAGES = pathlib.Path(__file__).resolve().parent / "kwok-stages.yaml"
CRDS = ROOT / "api/crds"
KEEP = bool(os.environ.get("KEEP"))
PROGRAMS = ["etcd", "kube-apiserver", "kubectl", "kube-controller-manager"]
START_S = 120  # machines may be busy
NODE_LEASE_S = 400  # few heartbeats: they are writes too


class Finished:
    """How a command ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class ControlPlane(ApiClient):
    def __init__(self, nodes=0, gpus=8, version=None, fsync=False, scheduler=False, kwok=True,
                 crds=False, apiserver_flags=()):
        super().__init__()
        self.version = version or os.environ.get("KUBE_VERSION") or kube_toolchain.NEWEST
        self.nodes, self.gpus, self.fsync, self.crds = nodes, gpus, fsync, crds
        self.with_scheduler, self.with_kwok = scheduler, kwok
        self.apiserver_flags = list(apiserver_flags)
        self.folder = None
        self.programs = {}
        self.token = secrets.token_hex(16)
        self.binaries = {one.name: one.path for one in kube_toolchain.programs(self.version)}

    # ------------------------------------------------------------ life

    def start(self):
        needed = [*PROGRAMS, *(["kwok"] if self.with_kwok else []),
                  *(["kube-scheduler"] if self.with_scheduler else [])]
        kube_toolchain.ensure(self.version, needed)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpu-kube-"))
        atexit.register(self.stop)
        try:
            self._prepare()
            self._start_all()
        except BaseException as error:
            if isinstance(error, Exception):
                self.print_logs()
            self.stop()
            raise
        return self

    def _prepare(self):
        self.etcd_port, self.etcd_peer_port, self.port, manager, scheduler = (
            free_port() for _ in range(5))
        self.url = f"https://127.0.0.1:{self.port}"
        self.credentials = Credentials(self.folder / "pki")
        self.credentials.serving("apiserver", [
            "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local"], ["127.0.0.1", "10.0.0.1"])
        self.credentials.client("admin", "test-admin", "system:masters")
        self.tls = ssl.create_default_context(cafile=self.credentials.certificate("ca"))
        (self.folder / "tokens.csv").write_text(f'{self.token},token-admin,1,"system:masters"\n')
        self.kubeconfig = self.write_kubeconfig("admin", client="admin")
        self.token_kubeconfig = self.write_kubeconfig("token-admin", token=self.token)
        self._add("etcd", self._etcd_flags())
        self._add("kube-apiserver", self._apiserver_flags())
        self._add("kube-controller-manager", self._manager_flags(manager))
        if self.with_kwok:
            self._add("kwok", [f"--kubeconfig={self.kubeconfig}", f"--config={STAGES}",
                               "--manage-all-nodes=false",
                               "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
                               f"--node-lease-duration-seconds={NODE_LEASE_S}",
                               "--cidr=10.64.0.0/12", "--node-ip=127.0.0.1"])
        if self.with_scheduler:
            self._add("kube-scheduler", [f"--kubeconfig={self.kubeconfig}", "--leader-elect=false",
                                         "--bind-address=127.0.0.1", f"--secure-port={scheduler}"])

    def _add(self, name, flags):
        # A home of its own: nothing of the user's configuration gets in.
        environment = {**os.environ, "HOME": str(self.folder)}
        environment.pop("KUBECONFIG", None)
        self.programs[name] = Program(name, [self.binaries[name], *flags], self.folder, environment)

    def _etcd_flags(self):
        client = f"http://127.0.0.1:{self.etcd_port}"
        peer = f"http://127.0.0.1:{self.etcd_peer_port}"
        return ["--name=test", f"--data-dir={self.folder / 'etcd'}",
                f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=test={peer}", "--log-level=warn",
                *([] if self.fsync else ["--unsafe-no-fsync"])]

    def _apiserver_flags(self):
        pki = self.credentials
        return [f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
                "--bind-address=127.0.0.1", f"--secure-port={self.port}",
                f"--tls-cert-file={pki.certificate('apiserver')}",
                f"--tls-private-key-file={pki.key('apiserver')}",
                f"--client-ca-file={pki.certificate('ca')}",
                f"--token-auth-file={self.folder / 'tokens.csv'}",
                "--authorization-mode=Node,RBAC",
                "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
                f"--service-account-key-file={pki.folder / 'service-account.pub'}",
                f"--service-account-signing-key-file={pki.key('service-account')}",
                "--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none",
                f"--kubelet-client-certificate={pki.certificate('admin')}",
                f"--kubelet-client-key={pki.key('admin')}",
                "--kubelet-preferred-address-types=InternalIP", "--allow-privileged=true",
                *self.apiserver_flags]

    def _manager_flags(self, port):
        pki = self.credentials
        return [f"--kubeconfig={self.kubeconfig}", "--leader-elect=false",
                "--bind-address=127.0.0.1", f"--secure-port={port}",
                f"--service-account-private-key-file={pki.key('service-account')}",
                f"--root-ca-file={pki.certificate('ca')}",
                f"--cluster-signing-cert-file={pki.certificate('ca')}",
                f"--cluster-signing-key-file={pki.key('ca')}",
                f"--node-monitor-grace-period={2 * NODE_LEASE_S}s", "--node-monitor-period=1s",
                "--kube-api-qps=500", "--kube-api-burst=1000"]

    def _start_all(self):
        self.programs["etcd"].start()
        self.start_apiserver()
        for name in ("kube-controller-manager", "kwok", "kube-scheduler"):
            if name in self.programs:
                self.programs[name].start()
        self.wait_until("/api/v1/namespaces/default/serviceaccounts/default", bool,
                        "the controller-manager serves service accounts", START_S)
        if self.crds:
            self.apply_crds()
        if self.nodes:
            self.add_nodes(self.nodes, self.gpus)

    def start_apiserver(self):
        """(Re)starts it, and waits until it answers."""
        server = self.programs["kube-apiserver"]
        if not server.is_running():
            server.start()

        def is_ready():
            self.programs["etcd"].check_running()
            server.check_running()
            try:
                return self.request("GET", "/readyz", parse=False) == "ok"
            except (Answer, OSError, http.client.HTTPException):
                return False
        wait_for(is_ready, "the API server is ready", START_S)

    def restart_apiserver(self, crash=True, down_s=0.0):
        """Kills it (or stops it in order), and starts it again on the same port."""
        server = self.programs["kube-apiserver"]
        server.kill() if crash else server.stop()
        time.sleep(down_s)
        self.start_apiserver()

    def restart(self, name):
        self.programs[name].kill()
        self.programs[name].start()

    def stop(self):
        """Ends what was started; harmless where nothing runs."""
        atexit.unregister(self.stop)
        last = ("kube-apiserver", "etcd")
        others = [one for one in self.programs.values() if one.name not in last]
        for program in others:
            program.signal(signal.SIGTERM)
        for program in [*others, *(self.programs[name] for name in last if name in self.programs)]:
            program.stop()
        self.programs = {}
        if self.folder and not KEEP:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        if kind is not None and issubclass(kind, Exception):  # not where somebody ended it
            self.print_logs()
        self.stop()

    def print_logs(self, lines=15):
        for program in self.programs.values():
            print(f"--- the end of {program.name}'s log\n{program.tail(lines)}", file=sys.stderr)

    # ------------------------------------------------------------ who asks

    def write_kubeconfig(self, name, client=None, token=None):
        """A kubeconfig for a certificate of that name, or for a token; its path."""
        def data(path):
            return base64.b64encode(pathlib.Path(path).read_bytes()).decode()
        user = {"token": token} if token else {
            "client-certificate-data": data(self.credentials.certificate(client)),
            "client-key-data": data(self.credentials.key(client))}
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": self.url,
                "certificate-authority-data": data(self.credentials.certificate("ca"))}}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}]}))
        path.chmod(0o600)
        return path

    def service_account_kubeconfig(self, namespace, name):
        """A kubeconfig with a fresh token of this service account: only its RBAC holds."""
        token = self.kubectl("create", "token", name, "-n", namespace).out.strip()
        return self.write_kubeconfig(f"{namespace}-{name}", token=token)

    # ------------------------------------------------------------ kubectl

    def run(self, program, *arguments, stdin=None, check=True, kubeconfig=None, timeout=120):
        """kubectl or helm, as a user runs it."""
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig or self.kubeconfig),
                       "HOME": str(self.folder), "KUBECTL_KUBERC": "false"}
        done = subprocess.run([str(self.binaries[program]), *map(str, arguments)], input=stdin,
                              capture_output=True, text=True, timeout=timeout, env=environment)
        finished = Finished(done.returncode, done.stdout, done.stderr)
        if check and done.returncode != 0:
            raise AssertionError(f"{program} {' '.join(map(str, arguments))}: {finished}")
        return finished

    def kubectl(self, *arguments, **options):
        return self.run("kubectl", *arguments, **options)

    def apply(self, what, *arguments, **options):
        """Applies a file, a folder, or text."""
        if "\n" in str(what):
            return self.kubectl("apply", *arguments, "-f", "-", stdin=str(what), **options)
        return self.kubectl("apply", *arguments, "-f", ROOT / what, **options)

    def apply_crds(self):
        self.apply(CRDS)
        self.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", CRDS)

    # ------------------------------------------------------------ nodes

    def add_nodes(self, count, gpus=8, first=0, prefix="node-", labels=None, status=None):
        """Simulated nodes, Ready. With status=True (or where the CRDs are there) also what their
        agents would report."""
        names = [f"{prefix}{number}" for number in range(first, first + count)]
        self.create_all("/api/v1/nodes", [gpu_node(name, number, gpus, labels)
                                          for number, name in enumerate(names, first)])
        if status or (status is None and self.crds):
            self.report_gpus([(name, gpu_node_status(name, gpus)) for name in names])

        def all_ready():
            ready = {node["metadata"]["name"] for node in self.get("/api/v1/nodes")["items"]
                     if is_ready(node) and not node["spec"].get("taints")}
            return ready.issuperset(names)
        if self.with_kwok:
            wait_for(all_ready, f"{count} nodes are ready", 60 + count / 5, 0.2)
        return names

    def report_gpus(self, statuses):
        """Writes GpuNodeStatus objects: (node's name, status)."""
        path = "/apis/gpu.scheduling/v1/gpunodestatuses"

        def report(one):
            name, status = one
            body = {"apiVersion": "gpu.scheduling/v1", "kind": "GpuNodeStatus",
                    "metadata": {"name": name}, "spec": {"nodeName": name}}
            try:
                self.request("POST", path, body)
            except Answer as refused:
                if refused.code != 409:  # it is there already
                    raise
            self.patch(f"{path}/{name}/status", {"status": status})
        in_parallel(report, statuses)

    def set_node_ready(self, name, ready):
        """Takes a simulated node down, or up again, and waits until its condition says so."""
        path = f"/api/v1/nodes/{name}"
        self.patch(path, {"metadata": {"annotations": {
            "tests.gpu.scheduling/down": None if ready else "true"}}})
        return self.wait_until(path, lambda node: is_ready(node) == ready,
                               f"{name} is {'ready' if ready else 'down'}")

    def end_pod(self, name, namespace="default", failed=False):
        """Lets a simulated pod end."""
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        which = "fails-after" if failed else "ends-after"
        self.patch(path, {"metadata": {"annotations": {f"tests.gpu.scheduling/{which}": "1ms"}}})
        return self.wait_until(path, lambda pod: pod["status"]["phase"] in ("Succeeded", "Failed"),
                               f"{name} ends")

    # ------------------------------------------------------------ etcd

    def etcd(self, path, body):
        """A call of etcd's JSON gateway."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.etcd_port}{path}",
                                         json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def compact_etcd(self):
        """Forgets all history. Whoever resumes a watch from before it gets 410 once the API server
        has no copy in its memory either: restart_apiserver() sees to that."""
        revision = self.etcd("/v3/kv/range", {"key": base64.b64encode(b"x").decode()})
        revision = revision["header"]["revision"]
        self.etcd("/v3/kv/compaction", {"revision": revision, "physical": True})
        return int(revision)


def is_ready(node):
    return any(one["type"] == "Ready" and one["status"] == "True"
               for one in node.get("status", {}).get("conditions", []))


# ---------------------------------------------------------------- by hand


def up(asked):
    begin = time.monotonic()
    cluster = ControlPlane(nodes=asked.nodes, gpus=asked.gpus, version=asked.version,
                           scheduler=asked.scheduler, crds=not asked.no_crds, fsync=asked.fsync)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # Whoever starts this in the background of a shell hands an ignored SIGINT down.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with cluster:
        print(f"# Kubernetes {cluster.version}, {asked.nodes} nodes with {asked.gpus} GPUs, after "
              f"{time.monotonic() - begin:.1f} s; Ctrl-C ends it. Logs: {cluster.folder}")
        print(f"export KUBECONFIG={cluster.kubeconfig}")
        print(f"export PATH={cluster.binaries['kubectl'].parent}:{cluster.binaries['helm'].parent}"
              ":$PATH", flush=True)
        while all(program.is_running() for program in cluster.programs.values()):
            time.sleep(0.5)
        for program in cluster.programs.values():
            program.check_running()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("up", help="start one and keep it until Ctrl-C")
    one.add_argument("--nodes", type=int, default=4, help="simulated nodes (default: 4)")
    one.add_argument("--gpus", type=int, default=8, help="GPUs of each (default: 8)")
    one.add_argument("--version", help="of Kubernetes (default: the newest)")
    one.add_argument("--scheduler", action="store_true", help="start kube-scheduler too")
    one.add_argument("--fsync", action="store_true", help="let etcd sync to disk, as in production")
    one.add_argument("--no-crds", action="store_true", help="don't install api/crds")
    asked = parser.parse_args()
    try:
        up(asked)
    except KeyboardInterrupt:
        return 0
    except kube_toolchain.Unavailable as reason:
        print(f"control_plane: not available here: {reason}", file=sys.stderr)
        return kube_toolchain.UNAVAILABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
