#!/usr/bin/env python3
"""A real kubelet with real containers beside the simulated nodes: what a Binding says arrives in the
container, the agent sees who has which device, and nothing of it is left behind."""

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
from control_plane import ControlPlane
from processes import Program, free_port
from real_node import SHELL, RealNode, why_not
from service import BINARY, check, equal, main, test, wait_for

GPUS = [f"GPU-51300000-0000-4000-8000-{index:012x}" for index in range(4)]  # as `--simulate` has them
PODS = "/api/v1/namespaces/default/pods"
_shared = {}


def cluster():
    if "cluster" not in _shared:
        _shared["cluster"] = ControlPlane(nodes=2, crds=True).start()
        _shared["node"] = RealNode(_shared["cluster"], devices=GPUS).start()
    return _shared["cluster"]


def pod(name, script, gpus):
    """As the webhook makes it: the devices come from the annotation that the Binding brings."""
    source = {"fieldRef": {"fieldPath": "metadata.annotations['gpu.scheduling/visible-devices']"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "schedulerName": "nobody", "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
        "containers": [{
            "name": "c", "image": SHELL, "imagePullPolicy": "Never",
            "command": ["sh", "-c", script],
            "resources": {"limits": {"nvidia.com/gpu": str(gpus)} if gpus else {}},
            "env": [{"name": "CUDA_VISIBLE_DEVICES", "valueFrom": source}]}]}}


def bind(name, node, ids=None):
    said = {"gpu.scheduling/allocated": f"{node}:{ids}", "gpu.scheduling/visible-devices": ids}
    cluster().request("POST", f"{PODS}/{name}/binding", {
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": name, "annotations": said if ids else {}},
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


def run_on_node(name, script, gpus, ids=None):
    cluster().request("POST", PODS, pod(name, script, gpus))
    bind(name, "real-node", ids)
    return cluster().wait_until(f"{PODS}/{name}", lambda one: one["status"]["phase"] == "Running",
                                f"{name} runs", 120)["metadata"]["uid"]


@test
def the_agent_tells_from_the_kubelet_who_has_which_device():
    agent = start_agent()
    path = "/apis/gpu.scheduling/v1/gpunodestatuses/real-node"

    def users(status):
        agent.check_running()
        return {device["uuid"]: device["inUseBy"] for device in status.get("devices", [])}

    def until(expected, what):
        cluster().wait_until(path, lambda one: users(one.get("status", {})) == expected, what)
    try:
        nobody = {gpu: [] for gpu in GPUS}
        until(nobody, "all four are free")
        # Somebody else's pod: only the kubelet and its plugin know what it got.
        plain = run_on_node("plain", "echo $NVIDIA_VISIBLE_DEVICES; sleep 100000", 2)
        wait_for(lambda: _shared["node"].log_of("default", "plain"), "it says what it got")
        got = _shared["node"].log_of("default", "plain").split(",")
        equal(len(set(got)), 2)
        both = {**nobody, **{gpu: [plain] for gpu in got}}
        until(both, "the kubelet's devices are told")
        # One of ours without a limit: the kubelet knows nothing of it, the scheduler does.
        free = next(index for index, gpu in enumerate(GPUS) if gpu not in got)
        ours = run_on_node("ours", "sleep 100000", 0, str(free))
        until({**both, GPUS[free]: [ours]}, "the scheduler's device is told beside them")
        cluster().kubectl("delete", "pod", "plain", "ours", "--timeout=60s")
        until(nobody, "all four are free again")
    finally:
        agent.stop()


def start_agent():
    return Program("agent", [
        BINARY, "agent", "--kube", "--node-name", "real-node", "--kubeconfig", cluster().kubeconfig,
        "--port", free_port(), "--simulate", f"{len(GPUS)}xH100-SXM5-80GB",
        "--pod-resources-socket", _shared["node"].pod_resources_socket], cluster().folder).start()


def start_scheduler(*flags):
    if cluster().find("/api/v1/namespaces/gpu-scheduler") is None:
        cluster().kubectl("create", "namespace", "gpu-scheduler")
    return Program("scheduler", [BINARY, "kube", "--kubeconfig", cluster().kubeconfig, "--port", free_port(),
                                 *flags], cluster().folder).start()


def our_pod(name, gpus, claim=None):
    one = pod(name, "echo $NVIDIA_VISIBLE_DEVICES; sleep 100000", gpus)
    one["spec"].update(schedulerName="gpu-scheduler", nodeSelector={"type": "real"})
    one["metadata"]["annotations"] = {"gpu.scheduling/claim": claim} if claim else {}
    cluster().request("POST", PODS, one)


def claim(name, count):
    cluster().request("POST", "/apis/gpu.scheduling/v1/namespaces/default/gpuclaims", {
        "apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim", "metadata": {"name": name},
        "spec": {"devices": {"count": count}}})


def waits_because(name, words):
    cluster().wait_until(f"{PODS}/{name}", lambda one: any(
        words in condition.get("message", "") for condition in one["status"].get("conditions", [])),
        f"{name} is told: {words}")


def running(name):
    return cluster().wait_until(f"{PODS}/{name}", lambda one: one["status"]["phase"] == "Running",
                                f"{name} runs", 120)["metadata"]["uid"]


@test
def beside_a_device_plugin_no_more_pods_come_than_it_has_devices():
    """As the first document has it: a claim and a limit that agree. The kubelet chooses the devices, we
    count them; and those of another scheduler's pod."""
    claim("two", 2)
    agent, scheduler = start_agent(), start_scheduler()
    try:
        theirs = run_on_node("theirs", "echo $NVIDIA_VISIBLE_DEVICES; sleep 100000", 1)
        our_pod("claimed", 2, "two")
        claimed = running("claimed")
        our_pod("one-more", 1)
        one_more = running("one-more")

        def who_has_what():
            status = cluster().find("/apis/gpu.scheduling/v1/gpunodestatuses/real-node")["status"]
            return sorted(uid for device in status["devices"] for uid in device["inUseBy"])
        wait_for(lambda: who_has_what() == sorted([theirs, claimed, claimed, one_more]),
                 "the agent tells of all three from the kubelet")
        given = {name: _shared["node"].log_of("default", name).split(",")
                 for name in ("theirs", "claimed", "one-more")}
        equal(sorted(sum(given.values(), [])), GPUS, "each device is somebody's, and nobody's twice")
        our_pod("too-much", 1)
        waits_because("too-much", "0 free GPUs")
        cluster().kubectl("delete", "pod", "theirs", "--timeout=60s")
        running("too-much")
        wait_for(lambda: _shared["node"].log_of("default", "too-much").split(",") == given["theirs"],
                 "it has the device that became free")
        cluster().kubectl("delete", "pod", "claimed", "one-more", "too-much", "--timeout=60s")
        leases = "/apis/coordination.k8s.io/v1/namespaces/gpu-scheduler/leases"
        wait_for(lambda: not [one for one in cluster().get(leases)["items"]
                              if one["metadata"]["name"].startswith("gpu-real-node-")], "no lease is left")
    finally:
        scheduler.stop()
        agent.stop()


@test
def where_the_kubelet_chooses_nobody_is_told_devices_that_it_may_give_to_others():
    """A pod with a limit and one that is told its devices, each of which finds the other on the node."""
    claim("told", 1)
    agent, scheduler = start_agent(), start_scheduler("--kubelet-chooses")
    try:
        our_pod("limited", 1)
        running("limited")
        our_pod("told", 0, "told")
        waits_because("told", "pods whose devices the kubelet chooses leave")
        our_pod("limited-too", 3)
        running("limited-too")
        cluster().kubectl("delete", "pod", "limited", "limited-too", "--timeout=60s")
        running("told")
        our_pod("late", 1)
        waits_because("late", "pods that were told their devices leave")
        cluster().kubectl("delete", "pod", "told", "--timeout=60s")
        running("late")
        cluster().kubectl("delete", "pod", "late", "--timeout=60s")
    finally:
        scheduler.stop()
        agent.stop()


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
    reason = why_not()
    if reason:
        print(f"skipped: {reason}\n0 passed, 0 failed, 7 skipped")
        sys.exit(0)
    try:
        code = main()
    finally:
        for name in ("node", "cluster"):
            if name in _shared:
                _shared[name].stop()
    sys.exit(code)
