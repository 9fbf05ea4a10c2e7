#!/usr/bin/env python3
"""The control plane that the other tests stand on: is it real, does it break as they need, and does
it leave nothing behind?"""

import http.client
import json
import pathlib
import shutil
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
from control_plane import Answer, ControlPlane, is_ready
from service import check, equal, main, test, wait_for

_shared = {}


def cluster():
    if "cluster" not in _shared:
        _shared["cluster"] = ControlPlane(nodes=20, crds=True).start()
    return _shared["cluster"]


def pod(name, node=None, **metadata):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata},
            "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "i"}],
                     **({"nodeName": node} if node else {})}}


@test
def versions_are_right():
    told = cluster().kubectl("version", "-o", "json").json()
    equal(told["clientVersion"]["gitVersion"], f"v{cluster().version}")
    equal(told["serverVersion"]["gitVersion"], f"v{cluster().version}")
    equal(told["serverVersion"]["minor"], cluster().version.split(".")[1])


@test
def nodes_have_gpus_and_labels():
    nodes = cluster().get("/api/v1/nodes")["items"]
    equal(len(nodes), 20)
    for node in nodes:
        check(is_ready(node), node["metadata"]["name"])
        equal(node["status"]["allocatable"]["nvidia.com/gpu"], "8")
    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in nodes}
    equal(labels["node-17"]["topology.scheduler/leaf"], "leaf-4")
    equal(labels["node-17"]["topology.scheduler/spine"], "spine-1")
    equal(len(cluster().get("/apis/gpu.scheduling/v1/gpunodestatuses")["items"]), 20)


@test
def both_administrators_may_do_everything():
    for kubeconfig in (cluster().kubeconfig, cluster().token_kubeconfig):
        equal(cluster().kubectl("auth", "can-i", "*", "*", kubeconfig=kubeconfig).out.strip(),
              "yes")


@test
def a_service_account_may_do_what_its_roles_say():
    cluster().kubectl("create", "serviceaccount", "reader")
    cluster().kubectl("create", "clusterrole", "reads-pods", "--verb=get,list", "--resource=pods")
    cluster().kubectl("create", "clusterrolebinding", "reader", "--clusterrole=reads-pods",
                      "--serviceaccount=default:reader")
    own = cluster().service_account_kubeconfig("default", "reader")
    equal(cluster().kubectl("get", "pods", "-A", kubeconfig=own).code, 0)
    answer = cluster().kubectl("get", "secrets", kubeconfig=own, check=False)
    check("forbidden" in answer.err, answer)
    who = cluster().kubectl("auth", "whoami", "-o", "json", kubeconfig=own).json()
    equal(who["status"]["userInfo"]["username"], "system:serviceaccount:default:reader")


@test
def pods_get_the_token_of_their_service_account():
    made = cluster().request("POST", "/api/v1/namespaces/default/pods", pod("with-token"))
    check(any("serviceAccountToken" in source for volume in made["spec"]["volumes"]
              for source in volume["projected"]["sources"]), made["spec"]["volumes"])


@test
def pods_run_end_and_go():
    path = "/api/v1/namespaces/default/pods"
    for name in ("runs", "breaks"):
        cluster().request("POST", path, pod(name))
        cluster().request("POST", f"{path}/{name}/binding", {
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": name, "annotations": {"gpu.scheduling/allocated": "node-3:0"}},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "node-3"}})
        made = cluster().wait_until(f"{path}/{name}", lambda one: one["status"]["phase"] == "Running",
                                    f"{name} runs")
        equal(made["spec"]["nodeName"], "node-3")
        equal(made["metadata"]["annotations"]["gpu.scheduling/allocated"], "node-3:0")
    equal(cluster().end_pod("runs")["status"]["phase"], "Succeeded")
    equal(cluster().end_pod("breaks", failed=True)["status"]["phase"], "Failed")
    cluster().kubectl("delete", "pod", "runs", "breaks", "--timeout=30s")
    equal(cluster().find(f"{path}/runs"), None)


@test
def nodes_go_down_and_come_back():
    node = cluster().set_node_ready("node-5", False)
    check(not is_ready(node))
    cluster().wait_until("/api/v1/nodes/node-5", lambda one: any(
        taint["key"] == "node.kubernetes.io/not-ready" for taint in one["spec"].get("taints", [])),
        "the controller-manager taints it")
    cluster().set_node_ready("node-5", True)
    cluster().wait_until("/api/v1/nodes/node-5", lambda one: not one["spec"].get("taints"),
                         "the taint goes")


@test
def the_api_server_comes_back_with_everything():
    before = cluster().get("/api/v1/nodes")
    pid = cluster().programs["kube-apiserver"].pid
    cluster().restart_apiserver()
    check(cluster().programs["kube-apiserver"].pid != pid)
    after = cluster().get("/api/v1/nodes")
    equal([one["metadata"]["uid"] for one in after["items"]],
          [one["metadata"]["uid"] for one in before["items"]])


@test
def history_is_gone_after_a_compaction():
    old = cluster().get("/api/v1/namespaces/default/configmaps")["metadata"]["resourceVersion"]
    for number in range(3):
        cluster().request("POST", "/api/v1/namespaces/default/configmaps", {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"later-{number}"}})
    cluster().compact_etcd()
    cluster().restart_apiserver()
    watch = f"/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=5&resourceVersion={old}"
    try:
        first = json.loads(cluster().request("GET", watch, parse=False).splitlines()[0])
        equal(first["object"].get("code"), 410, "the watch's first event")
    except Answer as answer:
        equal(answer.code, 410)


@test
def a_stopped_api_server_is_noticed():
    cluster().programs["kube-apiserver"].stop()
    try:
        cluster().get("/api/v1/nodes")
    except (OSError, http.client.HTTPException):
        pass
    else:
        raise AssertionError("it answered")
    cluster().start_apiserver()
    cluster().get("/api/v1/nodes")


def running(pids):
    """Those of the processes that are there and not only waiting to be collected."""
    def is_there(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] != "Z"
        except OSError:
            return False
    return [pid for pid in pids if is_there(pid)]


def children(pid):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(one) for one in found.stdout.split()]


@test
def nothing_outlives_a_run_however_it_ends():
    for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        starter = subprocess.Popen([sys.executable, str(HERE / "control_plane.py"), "up",
                                    "--nodes", "1", "--no-crds"], stdout=subprocess.PIPE, text=True)
        try:
            first = starter.stdout.readline() + starter.stdout.readline()
            check("KUBECONFIG" in first, first)
            pids = children(starter.pid)
            equal(len(running(pids)), 4)
            starter.send_signal(how)
            starter.wait(60)
            wait_for(lambda: not running(pids), f"{pids} end after {how.name}")
        finally:
            starter.kill()
            starter.communicate()
            shutil.rmtree(first.split("Logs: ")[1].split()[0], ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
