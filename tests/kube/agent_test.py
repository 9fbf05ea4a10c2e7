#!/usr/bin/env python3
"""`gpu-scheduler agent --kube` on a real control plane, with simulated GPUs and no more rights than
docs/kubernetes.md names: a GpuNodeStatus that is made, kept true and alive, and goes with its node."""

import json
import pathlib
import sys
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
from control_plane import ControlPlane
from gpu_nodes import gpu_node
from processes import Program, free_port
from service import BINARY, check, equal, main, test, wait_for

NODE = "node-0"
GPUS = 2
PODS = "/api/v1/namespaces/default/pods"
STATUSES = "/apis/gpu.scheduling/v1/gpunodestatuses"
RIGHTS = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: gpu-scheduler-agent, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gpu-scheduler-agent}
rules:
  - {apiGroups: [""], resources: [nodes], verbs: [get]}
  - {apiGroups: [""], resources: [pods], verbs: [list, watch]}
  - {apiGroups: [gpu.scheduling], resources: [gpunodestatuses], verbs: [create, patch]}
  - {apiGroups: [gpu.scheduling], resources: [gpunodestatuses/status], verbs: [patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: gpu-scheduler-agent}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gpu-scheduler-agent}
subjects: [{kind: ServiceAccount, name: gpu-scheduler-agent, namespace: default}]
"""
_shared = {}


def cluster():
    if "cluster" not in _shared:
        plane = ControlPlane(nodes=1, gpus=GPUS).start()
        _shared["cluster"] = plane
        plane.apply(RIGHTS)
        _shared["account"] = plane.service_account_kubeconfig("default", "gpu-scheduler-agent")
    return _shared["cluster"]


def simulate(**gpus):
    """Writes what the simulated GPUs are like: simulate(gpu1={...})."""
    path = cluster().folder / "gpus.json"
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"gpus": {name[3:]: said for name, said in gpus.items()}}))
    fresh.rename(path)
    return path


def start_agent(*flags):
    port = free_port()
    command = [BINARY, "agent", "--kube", "--node-name", NODE, "--kubeconfig", cluster_account(),
               "--port", str(port), "--simulate", f"{GPUS}xH100-SXM5-80GB",
               "--simulate-file", cluster().folder / "gpus.json",
               "--pod-resources-socket", cluster().folder / "none.sock", *flags]
    _shared["agent"] = (Program("agent", command, cluster().folder).start(), port)


def cluster_account():
    cluster()
    return _shared["account"]


def ask(path, program="agent"):
    """The status and body of the program's own page."""
    _shared[program][0].check_running()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{_shared[program][1]}{path}",
                                    timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()
    except OSError:
        return 0, ""


def ready():
    return ask("/ready")[0] == 200


def restart_agent(*flags):
    _shared["agent"][0].stop()
    start_agent(*flags)
    wait_for(ready, "the agent is ready")


def written(question, what):
    return cluster().wait_until(f"{STATUSES}/{NODE}",
                                lambda one: "status" in one and question(one["status"]["devices"]),
                                what)


def version():
    return cluster().get(f"{STATUSES}/{NODE}")["metadata"]["resourceVersion"]


@test
def without_the_definition_it_says_what_is_missing_and_waits():
    simulate()
    start_agent()
    wait_for(lambda: "CustomResourceDefinition is missing" in ask("/ready")[1],
             "the agent says what is missing")
    equal(ask("/ready")[0], 503)
    equal(ask("/health")[0], 200, "it lives")
    cluster().apply_crds()
    wait_for(ready, "the agent is ready")


@test
def the_object_says_what_the_node_has():
    one = written(lambda devices: len(devices) == GPUS, "the object is there")
    equal(one["spec"], {"nodeName": NODE})
    node = cluster().get(f"/api/v1/nodes/{NODE}")
    equal(one["metadata"]["ownerReferences"], [{"apiVersion": "v1", "kind": "Node", "name": NODE,
                                               "uid": node["metadata"]["uid"]}])
    equal({each["manager"] for each in one["metadata"]["managedFields"]}, {"gpu-scheduler-agent"})
    equal(one["status"]["total"], GPUS)
    check("simulated" in one["status"]["source"], one["status"])
    equal(one["status"]["devices"][1], {
        "id": 1, "health": "Healthy", "inUseBy": [], "island": "nvlink-0", "bandwidthGBps": 900,
        "model": "H100-SXM5-80GB", "memoryMiB": 81559, "temperatureC": 36,
        "uuid": "GPU-51300000-0000-4000-8000-000000000001"})
    told = cluster().kubectl("get", "gns").out
    check("H100-SXM5-80GB" in told, told)


@test
def it_is_written_when_something_changed():
    restart_agent("--heartbeat-ms", "3600000")
    time.sleep(2)
    before = version()
    simulate(gpu1={"temperature_c": 38})  # two degrees
    time.sleep(4)
    equal(version(), before, "nothing that matters has changed")
    simulate(gpu1={"temperature_c": 60, "health": "unhealthy", "last_error": "XID 79"})
    device = written(lambda devices: devices[1]["health"] == "Unhealthy",
                     "the broken GPU is told")["status"]["devices"][1]
    equal((device["message"], device["temperatureC"]), ("XID 79", 60))
    simulate(gpu1={"temperature_c": 88})
    device = written(lambda devices: devices[1]["temperatureC"] == 88,
                     "the temperature is told")["status"]["devices"][1]
    equal(device["health"], "Healthy")
    check("message" not in device, device)
    metrics = ask("/metrics")[1]
    check('gpu_scheduler_agent_gpu_temperature_celsius{gpu="1",' in metrics, metrics)
    check('gpu_scheduler_agent_reports_total{why="heartbeat"} 0' in metrics, metrics)


@test
def a_heartbeat_comes_while_nothing_changes():
    restart_agent("--heartbeat-ms", "1000")
    first = cluster().get(f"{STATUSES}/{NODE}")["status"]["heartbeatTime"]
    for _ in range(2):
        now = cluster().wait_until(f"{STATUSES}/{NODE}",
                                   lambda one: one["status"]["heartbeatTime"] > first, "it beats")
        first = now["status"]["heartbeatTime"]


def bind(name, ids):
    cluster().request("POST", PODS, {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"schedulerName": "nobody", "terminationGracePeriodSeconds": 0,
                 "containers": [{"name": "c", "image": "none"}]}})
    cluster().request("POST", f"{PODS}/{name}/binding", {
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": name, "annotations": {"gpu.scheduling/allocated": f"{NODE}:{ids}"}},
        "target": {"apiVersion": "v1", "kind": "Node", "name": NODE}})
    return cluster().get(f"{PODS}/{name}")["metadata"]["uid"]


@test
def a_pod_without_a_device_plugin_uses_what_the_scheduler_gave_it():
    restart_agent("--heartbeat-ms", "3600000")
    uid = bind("user", "1")
    one = written(lambda devices: devices[1]["inUseBy"] == [uid], "the user is told")
    equal(one["status"]["devices"][0]["inUseBy"], [])
    cluster().end_pod("user")
    written(lambda devices: not devices[1]["inUseBy"], "the user has gone")
    cluster().request("DELETE", f"{PODS}/user")


@test
def a_killed_agent_goes_on_where_it_was():
    uid = bind("stays", "0")
    before = written(lambda devices: devices[0]["inUseBy"] == [uid], "the user is told")
    _shared["agent"][0].kill()
    wait_for(lambda: not _shared["agent"][0].is_running(), "it is dead")
    start_agent("--heartbeat-ms", "3600000")
    wait_for(ready, "the agent is ready")
    after = cluster().get(f"{STATUSES}/{NODE}")
    equal(after["metadata"]["uid"], before["metadata"]["uid"])
    equal(after["metadata"]["generation"], before["metadata"]["generation"])
    equal(after["status"]["devices"], before["status"]["devices"], "nobody lost a GPU")
    cluster().request("DELETE", f"{PODS}/stays")
    written(lambda devices: not devices[0]["inUseBy"], "the user has gone")


@test
def what_changed_while_the_api_server_was_away_is_told_when_it_is_back():
    cluster().programs["kube-apiserver"].kill()
    simulate(gpu0={"health": "unhealthy", "last_error": "XID 48"})
    wait_for(lambda: '"problem"' in ask("/ready")[1], "the agent knows that nobody listens")
    cluster().start_apiserver()
    device = written(lambda devices: devices[0]["health"] == "Unhealthy",
                     "the broken GPU is told")["status"]["devices"][0]
    equal(device["message"], "XID 48")
    wait_for(lambda: '"problem"' not in ask("/ready")[1], "all is well again")
    # A server that has just started refuses for a moment what it allows later.
    equal(cluster().get(f"{STATUSES}/{NODE}")["metadata"]["ownerReferences"][0]["name"], NODE)
    simulate()
    written(lambda devices: devices[0]["health"] == "Healthy", "the GPU is told to be well")


@test
def the_object_goes_with_the_node_and_comes_with_it():
    restart_agent("--heartbeat-ms", "1000")
    before = cluster().get(f"{STATUSES}/{NODE}")
    cluster().request("DELETE", f"/api/v1/nodes/{NODE}")
    wait_for(lambda: cluster().find(f"{STATUSES}/{NODE}") is None, "the object is collected")
    wait_for(lambda: f"there is no node {NODE}" in ask("/ready")[1], "the agent says why")
    equal(cluster().find(f"{STATUSES}/{NODE}"), None)
    node = cluster().request("POST", "/api/v1/nodes", gpu_node(NODE, 0, GPUS))
    after = written(lambda devices: len(devices) == GPUS, "the object is there again")
    check(after["metadata"]["uid"] != before["metadata"]["uid"], "another one")
    equal(after["metadata"]["ownerReferences"][0]["uid"], node["metadata"]["uid"])


@test
def an_object_that_somebody_deleted_is_made_again():
    before = cluster().get(f"{STATUSES}/{NODE}")["metadata"]["uid"]
    cluster().request("DELETE", f"{STATUSES}/{NODE}")
    cluster().wait_until(f"{STATUSES}/{NODE}", lambda one: one["metadata"]["uid"] != before and
                         one.get("status", {}).get("total") == GPUS, "it is made again")


def pod(name, gpus):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"schedulerName": "gpu-scheduler", "terminationGracePeriodSeconds": 0,
                     "containers": [{"name": "c", "image": "none", "resources": {
                         "limits": {"nvidia.com/gpu": str(gpus)}}}]}}


@test
def the_scheduler_gives_no_work_to_a_gpu_that_the_agent_calls_unhealthy():
    simulate(gpu0={"health": "unhealthy", "last_error": "XID 79"})
    written(lambda devices: devices[0]["health"] == "Unhealthy", "the broken GPU is told")
    cluster().request("POST", "/api/v1/namespaces", {
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu-scheduler"}})
    port = free_port()
    _shared["scheduler"] = (Program("scheduler", [
        BINARY, "kube", "--kubeconfig", str(cluster().kubeconfig), "--port", str(port)],
        cluster().folder).start(), port)
    for name, gpus in (("small", 1), ("large", 2)):
        cluster().request("POST", PODS, pod(name, gpus))
    one = cluster().wait_until(f"{PODS}/small", lambda p: p["spec"].get("nodeName"), "it is bound")
    equal(one["metadata"]["annotations"]["gpu.scheduling/allocated"], f"{NODE}:1")
    written(lambda devices: devices[1]["inUseBy"] == [one["metadata"]["uid"]], "its user is told")
    cluster().request("DELETE", f"{PODS}/small")
    wait_for(lambda: any(c["type"] == "PodScheduled" and c["status"] == "False" for c in
                         cluster().get(f"{PODS}/large")["status"].get("conditions", [])),
             "the large one is told to wait")
    equal(cluster().get(f"{PODS}/large")["spec"].get("nodeName"), None)
    simulate()
    cluster().wait_until(f"{PODS}/large", lambda p: p["spec"].get("nodeName"), "both GPUs are well")


if __name__ == "__main__":
    sys.exit(main())
