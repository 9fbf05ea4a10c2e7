#!/usr/bin/env python3
"""A gang whose node or GPU fails starts over elsewhere, whole and under the same constraints."""

import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
import scheduled  # noqa: E402
from gpu_nodes import gpu_node_status  # noqa: E402
from scheduled import (ALLOCATED, PODS, allocations, cluster, no_leases, pod,  # noqa: E402
                       scheduler)
from service import check, equal, main, test, wait_for  # noqa: E402

scheduled.SIZE.update(nodes=8, gpus=4)  # two leaves
SETS = "/apis/apps/v1/namespaces/default/replicasets"
MEMBERS = 3


def submit(name, finalizers=()):
    """Whole nodes in one leaf, by a controller that makes lost pods anew at once."""
    member = pod("unused", scheduled.SIZE["gpus"], {
        "gpu.scheduling/gang": name, "gpu.scheduling/gang-size": str(MEMBERS)})
    template = {"metadata": {"annotations": member["metadata"]["annotations"], "labels": {"job": name},
                             "finalizers": list(finalizers)}, "spec": member["spec"]}
    cluster().request("POST", SETS, {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name},
        "spec": {"replicas": MEMBERS, "selector": {"matchLabels": {"job": name}},
                 "template": template}})


def members(name):
    """node -> uid of those that are bound and alive."""
    found = cluster().get(f"{PODS}?labelSelector=job%3D{name}")["items"]
    return {one["spec"]["nodeName"]: one["metadata"]["uid"] for one in found
            if one["spec"].get("nodeName") and not one["metadata"].get("deletionTimestamp")
            and one["metadata"]["annotations"].get(ALLOCATED)}


def whole(name, without=None):
    nodes = members(name)
    return nodes if len(nodes) == MEMBERS and without not in nodes else None


def leaf_of(node):
    return cluster().get(f"/api/v1/nodes/{node}")["metadata"]["labels"]["topology.scheduler/leaf"]


def remove(name):
    cluster().request("DELETE", f"{SETS}/{name}?propagationPolicy=Background")
    no_leases()


def set_ready(node, is_ready):
    # Nobody else says so while it is not ready.
    cluster().patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {
        "kwok.x-k8s.io/node": "fake" if is_ready else None}}})
    conditions = cluster().get(f"/api/v1/nodes/{node}")["status"]["conditions"]
    for one in conditions:
        if one["type"] == "Ready":
            one["status"] = "True" if is_ready else "False"
    cluster().request("PATCH", f"/api/v1/nodes/{node}/status", {"status": {"conditions": conditions}},
                      "application/strategic-merge-patch+json")
    if is_ready:
        cluster().wait_until(f"/api/v1/nodes/{node}", lambda one: not one["spec"].get("taints"),
                             "the node takes pods again")


def recovers(name, fail, node):
    begin = time.monotonic()
    fail()
    after = wait_for(lambda: whole(name, node), f"{name} is whole without {node}", pause=0.02)
    print(f"      {name}: whole again after {time.monotonic() - begin:.2f} s", flush=True)
    equal(len({leaf_of(one) for one in after}), 1, "leaves")
    gpus = [gpu for held in allocations().values() for gpu in held]
    equal(len(gpus), len(set(gpus)), "GPUs given out and different GPUs")


@test
def a_gang_on_a_node_that_is_not_ready_starts_over():
    scheduler()
    submit("train")
    node = sorted(wait_for(lambda: whole("train"), "the gang is bound"))[0]
    recovers("train", lambda: set_ready(node, False), node)
    set_ready(node, True)
    remove("train")


@test
def a_gang_on_a_gpu_that_fails_starts_over():
    submit("tune")
    node = sorted(wait_for(lambda: whole("tune"), "the gang is bound"))[0]
    gpus = scheduled.SIZE["gpus"]
    recovers("tune", lambda: cluster().report_gpus([(node, gpu_node_status(node, gpus, unhealthy=[1]))]),
             node)
    cluster().report_gpus([(node, gpu_node_status(node, gpus))])
    remove("tune")


@test
def a_member_that_its_dead_node_never_lets_go_is_replaced():
    submit("hang", ["test/never"])  # as a pod hangs whose kubelet does not answer
    before = wait_for(lambda: whole("hang"), "the gang is bound")
    node = sorted(before)[0]
    recovers("hang", lambda: set_ready(node, False), node)
    check(before[node] in allocations(), "the one that hangs still has its devices")
    set_ready(node, True)
    cluster().request("DELETE", f"{SETS}/hang?propagationPolicy=Background")
    for one in cluster().get(f"{PODS}?labelSelector=job%3Dhang")["items"]:
        cluster().patch(f"{PODS}/{one['metadata']['name']}", {"metadata": {"finalizers": None}})
    no_leases()


def offer_gpus(node, gpus):
    amounts = {"nvidia.com/gpu": str(gpus)}
    cluster().patch(f"/api/v1/nodes/{node}/status", {"status": {"allocatable": amounts, "capacity": amounts}})


def runs_on(name, before):
    """The same pods, for a while; another one that asks for a whole node is placed elsewhere meanwhile."""
    taken = {gpu for uid in before.values() for gpu in allocations()[uid]}
    scheduled.create(pod("probe", scheduled.SIZE["gpus"]))
    uid = scheduled.bound("probe")["metadata"]["uid"]
    equal(members(name), before, "its pods and their nodes")
    check(not taken & set(allocations()[uid]), "the probe has its own GPUs")
    scheduled.delete("probe")


@test
def what_a_node_says_of_its_devices_may_change_under_those_who_have_them():
    submit("steady")
    before = wait_for(lambda: whole("steady"), "the gang is bound")
    gpus = scheduled.SIZE["gpus"]
    for node in before:
        cluster().request("DELETE", f"/apis/gpu.scheduling/v1/gpunodestatuses/{node}")
    runs_on("steady", before)
    for offered in (0, gpus):  # the device plugin is restarted
        for node in before:
            offer_gpus(node, offered)
        runs_on("steady", before)
    for model in ("B200-SXM-180GB", "H100-SXM5-80GB"):  # an agent begins to report; a new one knows better
        for node in before:
            status = gpu_node_status(node, gpus)
            for device in status["devices"]:
                device["model"] = model
            cluster().report_gpus([(node, status)])
        runs_on("steady", before)
    remove("steady")


@test
def the_leases_of_a_node_that_vanishes_go_with_its_pods():
    """Kubernetes deletes the pods of a node that is gone, after 40 s; a gang is whole elsewhere before."""
    submit("moves")
    before = wait_for(lambda: whole("moves"), "the gang is bound")
    nodes = {one["metadata"]["name"] for one in cluster().get("/api/v1/nodes")["items"]}
    gone = sorted(before)[0]
    alone = next(one for one in sorted(nodes) if leaf_of(one) != leaf_of(gone))
    scheduled.create(pod("alone", 1, nodeSelector={"kubernetes.io/hostname": alone}))
    scheduled.bound("alone")
    check([lease for lease in scheduled.gpu_leases() if lease.startswith(f"gpu-{alone}-")], "it has a lease")
    cluster().request("DELETE", f"/api/v1/nodes/{alone}")
    recovers("moves", lambda: cluster().request("DELETE", f"/api/v1/nodes/{gone}"), gone)
    wait_for(lambda: not [lease for lease in scheduled.gpu_leases()
                          if lease.startswith((f"gpu-{gone}-", f"gpu-{alone}-"))],
             "no lease of a node that is gone is left")
    remove("moves")


@test
def recoveries_are_measured():
    lines = [line for line in scheduler().page("/metrics").splitlines()
             if line.startswith("topology_scheduler_recovery_duration_seconds_count")]
    check(lines and float(lines[0].split()[-1]) >= 3, lines)


if __name__ == "__main__":
    sys.exit(main())
