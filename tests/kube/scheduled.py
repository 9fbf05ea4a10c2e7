"""A control plane with our scheduler on it, and the pods of its namespace default: what the tests of
`gpu-scheduler kube` share. A test run has one of each; the scheduler may be started again, and others
beside it."""

import json
import pathlib
import sys
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
from control_plane import ControlPlane  # noqa: E402
from processes import Program, free_port  # noqa: E402
from service import BINARY, wait_for  # noqa: E402

PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/gpu-scheduler/leases"
ALLOCATED = "gpu.scheduling/allocated"
SIZE = {"nodes": 3, "gpus": 4}  # of the cluster; to be changed before the first question
_plane = []
_schedulers = {}


def cluster():
    """Started with the first question."""
    if not _plane:
        _plane.append(ControlPlane(**SIZE, crds=True).start())
        _plane[0].request("POST", "/api/v1/namespaces", {
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu-scheduler"}})
    return _plane[0]


# ---------------------------------------------------------------- schedulers


class RunningScheduler:
    def __init__(self, program, port):
        self.program, self.port = program, port

    def page(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return answer.read().decode()

    def readiness(self):
        try:
            return json.loads(self.page("/ready"))
        except urllib.error.HTTPError as refused:
            return json.loads(refused.read())
        except OSError:
            return {}


def start_scheduler(name="scheduler", *flags, kubeconfig=None, environment=None, ready=True):
    plane, port = cluster(), free_port()
    command = [BINARY, "kube", "--kubeconfig", str(kubeconfig or plane.kubeconfig), "--port",
               str(port), *flags]
    one = RunningScheduler(Program(name, command, plane.folder, environment), port)
    one.program.start()
    _schedulers[name] = one
    if ready:
        wait_for(lambda: one.readiness().get("ready") and one.readiness().get("leads"),
                 f"{name} leads and is ready")
    return one


def scheduler(name="scheduler"):
    return _schedulers[name] if name in _schedulers else start_scheduler(name)


# ---------------------------------------------------------------- pods


def pod(name, gpus, annotations=None, **spec):
    container = {"name": "c", "image": "none"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "annotations": annotations or {}},
            "spec": {"schedulerName": "gpu-scheduler", "terminationGracePeriodSeconds": 0,
                     "containers": [container], **spec}}


def create(*pods):
    for one in pods:
        cluster().request("POST", PODS, one)


def bound(name):
    return cluster().wait_until(f"{PODS}/{name}", lambda one: one["spec"].get("nodeName"),
                                f"{name} is bound")


def delete(*names):
    """With a second of grace: the node ends it then, and nobody but the node. A pod that is deleted without
    any is marked and gone at once; but KWOK, which has seen the mark, deletes whoever has that name a moment
    later, and that may be the next one."""
    for name in names:
        cluster().request("DELETE", f"{PODS}/{name}?gracePeriodSeconds=1")
    for name in names:
        wait_for(lambda: cluster().find(f"{PODS}/{name}") is None, f"{name} is gone")


def condition(name, kind="PodScheduled"):
    status = cluster().get(f"{PODS}/{name}")["status"]
    return next((one for one in status.get("conditions", []) if one["type"] == kind), None)


def allocations():
    """uid -> [(node, GPU)] of every pod that is bound with GPUs."""
    found = {}
    for one in cluster().get(PODS)["items"]:
        text = one["metadata"].get("annotations", {}).get(ALLOCATED)
        if one["spec"].get("nodeName") and text:
            node, ids = text.split(":")
            found[one["metadata"]["uid"]] = [(node, gpu) for gpu in ids.split(",")]
    return found


# ---------------------------------------------------------------- leases


def holders(lease):
    several = lease["metadata"]["annotations"].get("gpu.scheduling/holders")
    return ([one["uid"] for one in json.loads(several)] if several
            else [lease["spec"]["holderIdentity"]])


def holders_by_lease():
    return {one["metadata"]["name"]: holders(one) for one in cluster().get(LEASES)["items"]
            if one["metadata"]["name"].startswith("gpu-node")}


def gpu_leases():
    """Name and holder; the first where several share the GPU."""
    return {name: uids[0] for name, uids in holders_by_lease().items()}


def no_leases():
    wait_for(lambda: not gpu_leases(), "all leases are given back")
