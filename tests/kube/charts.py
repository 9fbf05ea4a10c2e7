"""The Helm charts, rendered: as text, and as objects."""

import json
import os
import pathlib
import subprocess
import tempfile

import kube_toolchain

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCHEDULER, CHECK = "charts/gpu-scheduler", "charts/gpu-scheduler-check"
AUTHORITY = "LS0tLS1CRUdJTg=="  # a caBundle

VALUE_SETS = {
    "as it comes": {},
    "with its own certificate": {"webhook.enabled": True},
    "with a given certificate": {"webhook.enabled": True, "webhook.caBundle": AUTHORITY},
    "with cert-manager": {"webhook.enabled": True, "webhook.certManager.enabled": True},
    "webhook apart": {"webhook.enabled": True, "webhook.separate": True},
    "everything": {"webhook.enabled": True, "serviceMonitor.enabled": True, "replicaCount": 3,
                   "agent.simulate": "8xH100-SXM5-80GB", "hostNetwork": True,
                   "agent.hostNetwork": True, "agent.hostPID": True, "agent.runtimeClassName": "nvidia",
                   "apiServer": {"host": "10.1.2.3", "port": 6443}, "priorityClassName": "high",
                   "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
                   "tolerations": [{"operator": "Exists"}], "podAnnotations": {"a": "b"},
                   "imagePullSecrets": [{"name": "x"}], "leases.namespace": "leases"},
    "little": {"agent.enabled": False, "crds.install": False, "rbac.create": False,
               "serviceAccount": {"create": False, "name": "mine"}, "leases.enabled": False,
               "podDisruptionBudget.enabled": False, "scheduler.leaderElection": False},
}


class Refused(Exception):
    """What helm said."""


def helm_path():
    return next(one.path for one in kube_toolchain.programs() if one.name == "helm")


def helm(*arguments):
    kube_toolchain.ensure(kube_toolchain.NEWEST, ["helm"])
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run([str(helm_path()), *map(str, arguments)], cwd=ROOT, text=True,
                              capture_output=True, timeout=120, env={**os.environ, "HOME": home})
    if done.returncode != 0:
        raise Refused(done.stdout + done.stderr)
    return done.stdout


def settings(values):
    """--set-json for each of them: {"webhook.enabled": True}."""
    return [word for key, value in values.items()
            for word in ("--set-json", f"{key}={json.dumps(value)}")]


def rendered_text(chart, values=None, release="gpu-scheduler", namespace="gpu-scheduler"):
    return helm("template", release, chart, "--namespace", namespace, *settings(values or {}))


def rendered(chart, values=None, **options):
    return documents(rendered_text(chart, values, **options))


def documents(text):
    """The YAML documents of a text, read by Helm itself: no other reader of YAML is needed."""
    parts = [part for part in ("\n" + text).split("\n---") if part.strip()]
    with tempfile.TemporaryDirectory() as folder:
        chart = pathlib.Path(folder)
        (chart / "templates").mkdir()
        (chart / "Chart.yaml").write_text("{apiVersion: v2, name: reader, version: 0.0.1}")
        names = [f"{number:05}.yaml" for number in range(len(parts))]
        for name, part in zip(names, parts):
            (chart / name).write_text(part)
        (chart / "templates/all.json").write_text("".join(
            '{{ .Files.Get "%s" | fromYaml | toJson }}\n' % name for name in names))
        told = helm("template", "reader", chart)
    found = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    for one in found:
        if "Error" in one:
            raise AssertionError(f"not YAML: {one['Error']}")
    return [one for one in found if one]


def of_kind(objects, kind, name=None):
    """The one object of this kind (and name)."""
    found = [one for one in objects
             if one["kind"] == kind and name in (None, one["metadata"]["name"])]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} of {kind} {name or ''}")
    return found[0]


def pod_of(workload):
    return workload["spec"]["template"]["spec"]
