#!/usr/bin/env python3
"""What a pod and its claim may demand of a node, on a real control plane: labels, room of every kind,
company that it prefers, devices of a kind."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
import scheduled  # noqa: E402
from gpu_nodes import MODEL, gpu_node_status  # noqa: E402
from scheduled import PODS, create  # noqa: E402
from service import check, equal, main, test, wait_for  # noqa: E402

HOST = "kubernetes.io/hostname"
NODES, GPUS = 4, 4
CLAIMS = "/apis/gpu.scheduling/v1/namespaces/default/gpuclaims"
scheduled.SIZE.update(nodes=NODES, gpus=GPUS)


def cluster():
    plane = scheduled.cluster()
    scheduled.scheduler()
    return plane


def pod(name, node=None, requests=None, labels=None, gpus=0, annotations=None, **spec):
    made = scheduled.pod(name, gpus, annotations, **spec)
    made["metadata"]["labels"] = labels or {}
    if node:
        made["spec"]["nodeSelector"] = {HOST: node}
    if requests:
        made["spec"]["containers"][0]["resources"] = {"requests": requests, "limits": requests}
    return made


def bound(name):
    return scheduled.bound(name)["spec"]["nodeName"]


def placed(*pods):
    """One after the other, for each has to do with the ones before."""
    found = []
    for one in pods:
        create(one)
        found.append(bound(one["metadata"]["name"]))
    return found


def waits(one, *words):
    name = one["metadata"]["name"]
    create(one)

    def message():
        return (scheduled.condition(name) or {}).get("message", "")
    wait_for(lambda: all(word in message() for word in words), f"{name} is told {words}")
    check(not cluster().get(f"{PODS}/{name}")["spec"].get("nodeName"), f"{name} waits")


def clean():
    names = [one["metadata"]["name"] for one in cluster().get(PODS)["items"]]
    scheduled.delete(*names)
    for one in cluster().get(CLAIMS)["items"]:
        cluster().request("DELETE", f"{CLAIMS}/{one['metadata']['name']}")


def row(function):
    def with_nobody_else():
        clean()
        function()
    with_nobody_else.__name__ = function.__name__
    return test(with_nobody_else)


def label(node, **labels):
    cluster().patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}})


def node_affinity(*expressions, fields=()):
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": list(expressions), "matchFields": list(fields)}]}}}


def rule(key, operator, *values):
    return {"key": key, "operator": operator, "values": list(values)}


# ---------------------------------------------------------------- which node


@row
def selectors_and_affinity_of_nodes_are_kept():
    label("node-1", disk="ssd")
    label("node-2", cores="16")
    equal(placed(pod("selects", nodeSelector={"disk": "ssd"}),
                 pod("many-cores", affinity=node_affinity(rule("cores", "Gt", "8"))),
                 pod("no-other", affinity=node_affinity(rule(HOST, "NotIn", "node-0", "node-1", "node-2"))),
                 pod("by-name", affinity=node_affinity(fields=[rule("metadata.name", "In", "node-0")]))),
          ["node-1", "node-2", "node-3", "node-0"])
    waits(pod("nowhere", nodeSelector={"disk": "tape"}), "disk")
    label("node-3", disk="tape")
    equal(bound("nowhere"), "node-3")


@row
def a_node_may_be_preferred():
    wish = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 50, "preference": {"matchExpressions": [rule(HOST, "In", "node-3")]}}]}}
    equal(placed(pod("wishes", gpus=1, affinity=wish)), ["node-3"])
    create(pod("whole", "node-3", gpus=GPUS - 1))
    bound("whole")
    check(placed(pod("takes-another", gpus=1, affinity=wish)) != ["node-3"], "it is only a wish")


# ---------------------------------------------------------------- room


def first_takes(resource, amount, too_much, fits, name=None):
    """On one node: after a pod with `amount` there is no room for `too_much`, but for `fits`."""
    placed(pod("first", "node-0", {resource: amount}))
    waits(pod("second", "node-0", {resource: too_much}), name or resource)
    placed(pod("third", "node-0", {resource: fits}))


@row
def processors_are_counted():
    first_takes("cpu", "100", "28001m", "28", "free cores")


@row
def memory_is_counted():
    first_takes("memory", "1000Gi", "25Gi", "24Gi")


@row
def disks_are_counted():
    first_takes("ephemeral-storage", "1000Gi", "25Gi", "24Gi")


@row
def resources_of_any_name_are_counted():
    amounts = {"example.com/dongle": "3"}
    cluster().patch("/api/v1/nodes/node-0/status", {"status": {"allocatable": amounts, "capacity": amounts}})
    first_takes("example.com/dongle", "2", "2", "1")


@row
def the_most_that_init_containers_need_is_counted():
    first = pod("first", "node-0", {"cpu": "1"})
    resources = {"requests": {"cpu": "100"}, "limits": {"cpu": "100"}}
    first["spec"]["initContainers"] = [{"name": "prepares", "image": "none", "resources": resources}]
    placed(first)
    waits(pod("second", "node-0", {"cpu": "29"}), "free cores")
    placed(pod("third", "node-0", {"cpu": "28"}))


@row
def the_overhead_of_a_runtime_is_counted():
    cluster().request("POST", "/apis/node.k8s.io/v1/runtimeclasses", {
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "heavy"},
        "handler": "heavy", "overhead": {"podFixed": {"cpu": "99"}}})
    placed(pod("first", "node-0", {"cpu": "1"}, runtimeClassName="heavy"))
    waits(pod("second", "node-0", {"cpu": "29"}), "free cores")
    placed(pod("third", "node-0", {"cpu": "28"}))


def bind_by_hand(one, node):
    name = one["metadata"]["name"]
    one["spec"]["schedulerName"] = "nobody"
    create(one)
    cluster().request("POST", f"{PODS}/{name}/binding", {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node}})


@row
def what_others_pods_take_is_counted():
    bind_by_hand(pod("theirs", requests={"cpu": "100"}), "node-0")
    bind_by_hand(pod("their-gpus", gpus=GPUS - 1), "node-0")
    waits(pod("second", "node-0", {"cpu": "29"}), "free cores")
    waits(pod("two", "node-0", gpus=2), "1 free GPU")
    placed(pod("third", "node-0", {"cpu": "28"}), pod("one", "node-0", gpus=1))
    scheduled.delete("their-gpus")
    equal(bound("two"), "node-0")


# ---------------------------------------------------------------- company


def wishes_about(kind, app):
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 100, "podAffinityTerm": {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOST}}]}}


@row
def company_may_be_preferred_or_avoided():
    web = {"app": "web"}
    equal(placed(pod("web", "node-2", labels=web),
                 pod("near", affinity=wishes_about("podAffinity", "web"))), ["node-2", "node-2"])
    far = [pod(f"far-{i}", labels={"app": "far"}, affinity=wishes_about("podAntiAffinity", "far"))
           for i in range(NODES)]
    equal(sorted(placed(*far)), [f"node-{i}" for i in range(NODES)])
    placed(pod("one-more", labels={"app": "far"}, affinity=wishes_about("podAntiAffinity", "far")))


def spread(app, when, **more):
    return [{"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": when,
             "labelSelector": {"matchLabels": {"app": app}}, **more}]


@row
def spreading_may_be_a_wish():
    pods = [pod(f"s-{i}", labels={"app": "s"}, topologySpreadConstraints=spread("s", "ScheduleAnyway"))
            for i in range(NODES)]
    equal(sorted(placed(*pods)), [f"node-{i}" for i in range(NODES)])


@row
def spreading_may_need_more_domains_than_there_are():
    def one(number, **more):
        return pod(f"d-{number}", labels={"app": "d"},
                   topologySpreadConstraints=spread("d", "DoNotSchedule", **more))
    equal(len(set(placed(*(one(i, minDomains=NODES + 1) for i in range(NODES))))), NODES)
    waits(one(NODES, minDomains=NODES + 1), "spread")
    placed(one(NODES + 1))


@row
def spreading_counts_those_of_the_same_revision():
    def one(name, revision, **more):
        return pod(name, "node-0", labels={"app": "r", "revision": revision}, topologySpreadConstraints=spread(
            "r", "DoNotSchedule", nodeAffinityPolicy="Ignore", **more))
    placed(pod("old", "node-0", labels={"app": "r", "revision": "1"}))
    waits(one("all", "2"), "spread")
    placed(one("own", "2", matchLabelKeys=["revision"]))


# ---------------------------------------------------------------- devices


def claimed(name, node=None, fabric=None, selector=None, **devices):
    """A pod and the claim that it alone has."""
    spec = {"devices": devices}
    if fabric:
        spec["fabric"] = fabric
    if selector:
        spec["selector"] = {"matchExpressions": selector}
    cluster().request("POST", CLAIMS, {"apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim",
                                       "metadata": {"name": name}, "spec": spec})
    return pod(name, node, annotations={"gpu.scheduling/claim": name})


def gpus_of(name):
    node, ids = scheduled.bound(name)["metadata"]["annotations"][scheduled.ALLOCATED].split(":", 1)
    return node, [int(one) for one in ids.split(",")]


@row
def claims_name_models_and_memory():
    placed(claimed("model", count=1, models=["A100-SXM4-80GB", MODEL]),
           claimed("memory", count=1, minMemoryMiB=80_000))
    waits(claimed("other-model", count=1, models=["A100-SXM4-80GB"]), "A100-SXM4-80GB")
    waits(claimed("more-memory", count=1, minMemoryMiB=100_000), "100000 MiB")
    status = gpu_node_status("node-2", GPUS)
    for device in status["devices"][2:]:
        device.update(model="A100-SXM4-80GB", memoryMiB=140_000)
    cluster().report_gpus([("node-2", status)])
    equal(sorted([gpus_of("other-model"), gpus_of("more-memory")]), [("node-2", [2]), ("node-2", [3])])
    clean()
    cluster().report_gpus([("node-2", gpu_node_status("node-2", GPUS))])


@row
def claims_share_by_compute_and_by_memory():
    parts = [claimed(f"part-{i}", "node-0", count=1, exclusivity="Shared", shareMilli=600) for i in range(GPUS)]
    placed(*parts)
    equal(sorted(gpus_of(f"part-{i}")[1] for i in range(GPUS)), [[i] for i in range(GPUS)])
    waits(claimed("too-much", "node-0", count=1, exclusivity="Shared", shareMilli=500), "node-0")
    placed(claimed("compute", "node-0", count=1, exclusivity="Shared", shareMilli=400))
    waits(claimed("too-big", "node-0", count=1, exclusivity="Shared", shareMilli=100, memoryMiB=40_000), "node-0")
    placed(claimed("memory", "node-0", count=1, exclusivity="Shared", shareMilli=100, memoryMiB=30_000))


@row
def claims_ask_for_a_fabric():
    all_ports = GPUS * 400  # of a node: one of 400 Gbit/s for each GPU
    placed(claimed("enough", count=1, fabric={"rdma": "Required", "minNetworkGbps": all_ports}))
    waits(claimed("too-fast", count=1, fabric={"rdma": "Required", "minNetworkGbps": all_ports + 1}),
          f"{all_ports + 1} Gbit/s")


@row
def claims_select_nodes_by_expressions():
    label("node-1", pool="a")
    label("node-2", pool="b")
    equal(placed(claimed("in", count=1, selector=[rule("pool", "In", "b", "c")]),
                 claimed("exists", count=1, selector=[{"key": "pool", "operator": "Exists"},
                                                      rule("pool", "NotIn", "b")])), ["node-2", "node-1"])
    waits(claimed("none", count=1, selector=[rule("pool", "In", "c")]), "pool")


@row
def claims_take_instances_of_several_profiles():
    status = gpu_node_status("node-3", GPUS)
    cut = [{"profile": "3g.40gb", "start": 0, "uuid": "MIG-a"}, {"profile": "1g.10gb", "start": 4, "uuid": "MIG-b"},
           {"profile": "1g.10gb", "start": 5, "uuid": "MIG-c"}]
    status["devices"][1]["mig"] = {"enabled": True, "instances": cut}
    cluster().report_gpus([("node-3", status)])
    wanted = [{"profile": "3g.40gb", "count": 1}, {"profile": "1g.10gb", "count": 1}]
    equal(placed(claimed("mixed", count=2, exclusivity="MIG", migProfiles=wanted)), ["node-3"])
    seen = scheduled.bound("mixed")["metadata"]["annotations"]["gpu.scheduling/visible-devices"].split(",")
    check("MIG-a" in seen and len(set(seen) & {"MIG-b", "MIG-c"}) == 1, seen)
    waits(claimed("again", count=2, exclusivity="MIG", migProfiles=wanted), "3g.40gb")
    scheduled.delete("mixed")
    equal(bound("again"), "node-3")
    clean()
    cluster().report_gpus([("node-3", gpu_node_status("node-3", GPUS))])


if __name__ == "__main__":
    sys.exit(main())
