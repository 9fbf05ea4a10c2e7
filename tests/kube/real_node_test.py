#!/usr/bin/env python3
"""A real kubelet with real containers beside the simulated nodes: what a Binding says arrives in the
container, and nothing of it is left behind."""

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
from control_plane import ControlPlane
from real_node import SHELL, RealNode, why_not
from service import check, equal, main, test, wait_for

PODS = "/api/v1/namespaces/default/pods"
_shared = {}


def cluster():
    if "cluster" not in _shared:
        _shared["cluster"] = ControlPlane(nodes=2).start()
        _shared["node"] = RealNode(_shared["cluster"], gpus=4).start()
    return _shared["cluster"]


def pod(name, script, gpus):
    """As the webhook makes it: the devices come from the annotation that the Binding brings."""
    source = {"fieldRef": {"fieldPath": "metadata.annotations['gpu.scheduling/visible-devices']"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "schedulerName": "nobody", "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
        "containers": [{
            "name": "c", "image": SHELL, "imagePullPolicy": "Never",
            "command": ["sh", "-c", script],
            "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
            "env": [{"name": "CUDA_VISIBLE_DEVICES", "valueFrom": source}]}]}}


def bind(name, node, ids):
    cluster().request("POST", f"{PODS}/{name}/binding", {
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": name, "annotations": {
            "gpu.scheduling/allocated": f"{node}:{ids}", "gpu.scheduling/visible-devices": ids}},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node}})


@test
def the_real_node_stands_beside_the_simulated_ones():
    nodes = cluster().get("/api/v1/nodes")["items"]
    equal(sorted(one["metadata"]["name"] for one in nodes), ["node-0", "node-1", "real-node"])
    real = next(one for one in nodes if one["metadata"]["name"] == "real-node")
    check(real["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://"))
    equal(real["status"]["nodeInfo"]["kubeletVersion"], f"v{cluster().version}")
    equal(real["status"]["allocatable"]["nvidia.com/gpu"], "4")


@test
def what_the_binding_says_arrives_in_the_container():
    cluster().request("POST", PODS, pod("prints", "echo CVD=$CUDA_VISIBLE_DEVICES", 2))
    bind("prints", "real-node", "1,3")
    cluster().wait_until(f"{PODS}/prints", lambda one: one["status"]["phase"] == "Succeeded",
                         "the pod ends", 120)
    wait_for(lambda: _shared["node"].log_of("default", "prints") == "CVD=1,3", "the log says so")


@test
def containers_run_until_they_are_deleted():
    cluster().request("POST", PODS, pod("stays", "echo here; sleep 100000", 1))
    bind("stays", "real-node", "0")
    cluster().wait_until(f"{PODS}/stays", lambda one: one["status"]["phase"] == "Running",
                         "the pod runs", 120)
    check(_shared["node"].pod_resources_socket.is_socket(), "no pod-resources socket")
    cluster().kubectl("delete", "pod", "stays", "--timeout=60s")
    equal(cluster().find(f"{PODS}/stays"), None)


def those_of(folder):
    """Processes that have the folder in their command line."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


@test
def nothing_is_left_behind():
    cluster().request("POST", PODS, pod("left", "sleep 100000", 1))
    bind("left", "real-node", "0")
    cluster().wait_until(f"{PODS}/left", lambda one: one["status"]["phase"] == "Running",
                         "the pod runs", 120)
    node = _shared["node"]
    check(len(those_of(node.folder)) >= 4, "kubelet, containerd and shims run")
    node.stop()
    wait_for(lambda: not those_of(node.folder), "all of them end")
    mounted = [line for line in pathlib.Path("/proc/mounts").read_text().splitlines()
               if str(node.folder) in line]
    equal(mounted, [])


if __name__ == "__main__":
    reason = why_not(os.environ.get("KUBE_VERSION") or "1.36.3")
    if reason:
        print(f"skipped: {reason}\n0 passed, 0 failed, 4 skipped")
        sys.exit(0)
    try:
        code = main()
    finally:
        for name in ("node", "cluster"):
            if name in _shared:
                _shared[name].stop()
    sys.exit(code)
