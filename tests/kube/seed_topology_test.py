#!/usr/bin/env python3
"""Every row about topology in the documents that the product's public names come from, on a real control
plane: annotations, strategies, rules of 2, 4, 8 and 16 nodes, configuration, metrics."""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
import scheduled  # noqa: E402
from gpu_nodes import gpu_node, gpu_node_status  # noqa: E402
from scheduled import PODS, cluster, no_leases, pod, scheduler  # noqa: E402
from seed_examples import SHARED, documents  # noqa: E402
from seed_rows import (UNSEEN, apply_example, bound, create, example, given, lease_holders,  # noqa: E402
                       refusal, remove, row, start, waits)
from service import BINARY, check, equal, main, skip_all, wait_for  # noqa: E402

GPUS, IN_LEAF, LEAVES = 8, 4, 5  # two spines of five leaves of four nodes
scheduled.SIZE.update(nodes=0, gpus=GPUS)
NOTE = "topology.scheduler/"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def prepare():
    plane = cluster()
    names = [(f"node-{spine}-{leaf}-{number}", spine, leaf)
             for spine in (1, 2) for leaf in range(1, LEAVES + 1) for number in range(IN_LEAF)]
    plane.create_all("/api/v1/nodes", [gpu_node(name, 0, GPUS, labels(spine, leaf))
                                       for name, spine, leaf in names])
    plane.report_gpus([(name, report(name, spine, leaf)) for name, spine, leaf in names])
    wait_for(lambda: not any(one["spec"].get("taints") for one in plane.get("/api/v1/nodes")["items"]),
             "nodes are ready")
    start()


def labels(spine, leaf):
    """leaf-1 ... leaf-5 below spine-1, leaf-6 ... leaf-10 below spine-2."""
    return {NOTE + "spine": f"spine-{spine}", NOTE + "leaf": f"leaf-{(spine - 1) * LEAVES + leaf}"}


def report(name, spine, leaf):
    """The network of the last leaf is slow."""
    status = gpu_node_status(name, GPUS)
    slow = (spine, leaf) == (2, LEAVES)
    status["fabric"].update(rdmaPorts=1, rdmaGbps=50 if slow else 400)
    return status


def leaf_of(node):
    """Its number."""
    _, spine, leaf, _ = node.split("-")
    return (int(spine) - 1) * LEAVES + int(leaf)


def spine_of(node):
    return int(node.split("-")[1])


def workload(kind, name, count, gpus, notes, pod_notes=None):
    spec = pod("unused", gpus)["spec"]
    spec["schedulerName"] = "topology-aware-scheduler"
    template = {"metadata": {"labels": {"app": name}, "annotations": pod_notes or {}}, "spec": spec}
    body = {"metadata": {"name": name, "annotations": {NOTE + key: value for key, value in notes.items()}}}
    if kind == "Job":
        spec["restartPolicy"] = "Never"
        body.update(apiVersion="batch/v1", kind=kind,
                    spec={"parallelism": count, "completions": count, "template": template})
        cluster().request("POST", JOBS, body)
        return f"{JOBS}/{name}"
    body.update(apiVersion="apps/v1", kind=kind, spec={
        "replicas": count, "selector": {"matchLabels": {"app": name}}, "template": template})
    cluster().request("POST", DEPLOYMENTS, body)
    return f"{DEPLOYMENTS}/{name}"


def alive(selector):
    """Name -> uid."""
    found = cluster().get(f"{PODS}?labelSelector={selector.replace('=', '%3D')}")["items"]
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in found
            if not one["metadata"].get("deletionTimestamp")}


def pods_of(selector):
    return sorted(alive(selector))


def nodes_of(selector, count):
    """Where its pods lie, each with as many devices as it was given."""
    names = wait_for(lambda: len(pods_of(selector)) == count and pods_of(selector), f"{count} pods")
    return [given(name)[0] for name in names]


def drop(path, selector):
    uids = set(alive(selector).values())
    cluster().request("DELETE", f"{path}?propagationPolicy=Background")
    wait_for(lambda: not pods_of(selector) and not uids & lease_holders(), "its pods and leases are gone")


def plain(name, gpus=1, **notes):
    one = pod(name, gpus, {NOTE + key.replace("_", "-"): value for key, value in notes.items()})
    one["spec"]["schedulerName"] = "topology-aware-scheduler"
    return one


# ---------------------------------------------------------------- examples


@row
def the_examples_run_as_written():
    apply_example("Job", "single-gpu-job", "002")
    equal(len(given(pods_when("job-name=single-gpu-job", 1)[0])[1]), 1)
    for name in ("multi-gpu-job", "gpu-job"):
        apply_example("Job", name, "002")
        node, ids = given(pods_when(f"job-name={name}", 1)[0])
        equal((leaf_of(node), len(ids)), (1, 8), f"leaf and GPUs of {name}")
    for name in ("single-gpu-job", "multi-gpu-job", "gpu-job"):
        for one in pods_of(f"job-name={name}"):
            cluster().end_pod(one)
        cluster().wait_until(f"{JOBS}/{name}", lambda one: one["status"].get("succeeded") == 1, "it is done")
    no_leases()
    for name in ("single-gpu-job", "multi-gpu-job", "gpu-job"):
        drop(f"{JOBS}/{name}", f"job-name={name}")


def pods_when(selector, count):
    return wait_for(lambda: len(pods_of(selector)) == count and pods_of(selector), f"{count} pods")


@row
def the_inference_service_gets_its_gpus():
    apply_example("Deployment", "gpu-inference-service", "002")
    (name,) = pods_when("app=gpu-inference-service", 1)
    equal(len(given(name)[1]), 4)
    drop(f"{DEPLOYMENTS}/gpu-inference-service", "app=gpu-inference-service")


@row
def the_training_job_lies_together_in_its_spine():
    apply_example("Job", "multi-node-training", "002")
    names = pods_when("job-name=multi-node-training", 4)
    places = [given(name) for name in names]
    equal([len(ids) for _, ids in places], [4] * 4, "16 GPUs of four pods")
    equal({spine_of(node) for node, _ in places}, {1})
    equal(len({leaf_of(node) for node, _ in places}), 1, "leaves")
    equal(len({node for node, _ in places}), 2, "nodes: consolidated")
    drop(f"{JOBS}/multi-node-training", "job-name=multi-node-training")


# ---------------------------------------------------------------- rules


def by_rule(name, count, leaves):
    """A job of whole nodes lies in so many leaves, side by side."""
    path = workload("Job", name, count, GPUS, {"gpu-count": str(count * GPUS)},
                    {"gpu.scheduling/gang": "true"})
    nodes = nodes_of(f"app={name}", count)
    equal(len(set(nodes)), count, "nodes")
    used = sorted({leaf_of(node) for node in nodes})
    equal(used, list(range(used[0], used[0] + leaves)), f"leaves of {name}")
    equal(len({spine_of(node) for node in nodes}), 1, f"spines of {name}")
    drop(path, f"app={name}")


def beside_busy(leaf, name, count, leaves):
    """The same while somebody has a GPU in a leaf, which is then not complete."""
    create(plain("busy", preferred_domain=f"leaf-{leaf}"))
    equal(leaf_of(given("busy")[0]), leaf)
    by_rule(name, count, leaves)
    remove("busy")


@row
def two_nodes_are_of_one_leaf():
    beside_busy(1, "two", 2, 1)


@row
def four_nodes_are_a_complete_leaf():
    beside_busy(1, "four", 4, 1)


@row
def eight_nodes_are_two_adjacent_leaves():
    beside_busy(2, "eight", 8, 2)


@row
def sixteen_nodes_are_four_adjacent_leaves():
    beside_busy(1, "sixteen", 16, 4)


# ---------------------------------------------------------------- annotations


@row
def gpu_count_is_the_total_of_the_job():
    path = workload("Job", "total", 4, 0, {"gpu-count": "8"})
    for name in pods_when("app=total", 4):
        equal(len(given(name)[1]), 2)
    drop(path, "app=total")
    path = workload("Deployment", "served", 2, 0, {"gpu-count": "2"})
    for name in pods_when("app=served", 2):
        equal(len(given(name)[1]), 1)
    drop(path, "app=served")
    create(plain("alone", 0, gpu_count="3"))
    equal(len(given("alone")[1]), 3)
    remove("alone")


@row
def a_total_that_does_not_divide_is_refused():
    notes = {"gpu-count": "7"}
    try:
        workload("Job", "odd", 2, 0, notes)
        raise AssertionError("7 GPUs for 2 pods were accepted")
    except Exception as answer:
        check("must divide by their number: 7 GPUs, 2 pods" in str(answer), answer)


@row
def a_domain_of_any_level_is_preferred():
    for domain, where in (("leaf-4", lambda node: f"leaf-{leaf_of(node)}"),
                          ("spine-2", lambda node: f"spine-{spine_of(node)}"),
                          ("leaf-10", lambda node: f"leaf-{leaf_of(node)}")):
        create(plain("there", preferred_domain=domain))
        equal(where(given("there")[0]), domain)
        remove("there")
    names = [f"full-{i}" for i in range(IN_LEAF + 1)]
    create(*(plain(name, GPUS, preferred_domain="leaf-7") for name in names))
    leaves = sorted(leaf_of(given(name)[0]) for name in names)
    equal(leaves.count(7), IN_LEAF, "while there is room")
    remove(*names)


@row
def network_bandwidth_is_a_minimum():
    for text in ("100Gb", "100Gbps", "12.5GB/s"):
        create(plain("wide", preferred_domain="leaf-10", network_bandwidth=text))
        check(leaf_of(given("wide")[0]) != 10, f"{text} is more than leaf-10 has")
        remove("wide")
    create(plain("narrow", preferred_domain="leaf-10", network_bandwidth="50Gb"))
    equal(leaf_of(given("narrow")[0]), 10)
    remove("narrow")
    create(plain("impossible", network_bandwidth="900Gb"))
    waits("impossible", "900 Gbit/s")
    remove("impossible")


@row
def latency_sensitive_work_keeps_away_from_busy_leaves():
    noise = [f"noise-{i}" for i in range(IN_LEAF - 1)]
    create(*(plain(name, GPUS, preferred_domain="leaf-1") for name in noise))
    equal({leaf_of(given(name)[0]) for name in noise}, {1})
    create(plain("quiet", latency_sensitive="true"))
    check(leaf_of(given("quiet")[0]) != 1, "it is beside busy ones")
    path = workload("Job", "ring", 2, GPUS, {"latency-sensitive": "true"}, {"gpu.scheduling/gang": "true"})
    equal(len({leaf_of(node) for node in nodes_of("app=ring", 2)}), 1)
    drop(path, "app=ring")
    remove("quiet", *noise)


@row
def strategies_pack_or_spread():
    for strategy, nodes in (("consolidated", 1), ("distributed", 4)):
        path = workload("Deployment", strategy, 4, 2, {"placement-strategy": strategy})
        equal(len(set(nodes_of(f"app={strategy}", 4))), nodes, f"nodes of a {strategy} service")
        drop(path, f"app={strategy}")
    path = workload("Deployment", "balanced", 4, 2, {"placement-strategy": "balanced"})
    balanced = sorted(nodes_of("app=balanced", 4))
    drop(path, "app=balanced")
    path = workload("Deployment", "default", 4, 2, {})
    equal(len(set(nodes_of("app=default", 4))), len(set(balanced)), "balanced is the default")
    drop(path, "app=default")


@row
def a_pods_own_annotation_counts_more_than_its_owners():
    path = workload("Deployment", "own", 1, 1, {"preferred-domain": "leaf-3"},
                    {NOTE + "preferred-domain": "leaf-8"})
    (node,) = nodes_of("app=own", 1)
    equal(leaf_of(node), 8)
    drop(path, "app=own")


WRONG = {"gpu-count": ("many", 'must be a whole number from 1 to 1000000, such as "8", got \'many\''),
         "network-bandwidth": ("fast", "must be a bandwidth such as 100Gb, 100Gbps or 12.5GB/s, got 'fast'"),
         "latency-sensitive": ("yes", 'must be "true" or "false", got \'yes\''),
         "placement-strategy": ("loose", "must be one of consolidated, distributed, balanced, got 'loose'")}


@row
def wrong_values_are_refused_with_the_valid_ones():
    for key, (value, words) in WRONG.items():
        one = plain(key, **{key: value})
        check(f"annotation {NOTE}{key} {words}" in refusal(one), refusal(one))
        create(one, namespace=UNSEEN)
        waits(key, f"annotation {NOTE}{key} {words}", namespace=UNSEEN)
    remove(*WRONG, namespace=UNSEEN)


@row
def an_unknown_domain_is_refused_with_the_known_ones():
    create(plain("lost", preferred_domain="leaf-77"))
    waits("lost", "preferred-domain must be one of ", "leaf-1, ", "spine-2", "got 'leaf-77'")
    cluster().patch("/api/v1/nodes/node-1-1-0", {"metadata": {"labels": {NOTE + "leaf": "leaf-77"}}})
    equal(given("lost")[0], "node-1-1-0")
    remove("lost")
    cluster().patch("/api/v1/nodes/node-1-1-0", {"metadata": {"labels": labels(1, 1)}})


# ---------------------------------------------------------------- configuration and metrics

CONFIGS = "/apis/topology.scheduler/v1alpha1/{}s/topology-scheduler-config"


def taken(kind):
    return cluster().wait_until(CONFIGS.format(kind.lower()),
                                lambda one: one.get("status", {}).get("accepted") is True, "it is in force")


@row
def the_configurations_of_the_document_are_taken():
    for kind in ("TopologySchedulerConfig", "SchedulerConfig"):
        cluster().apply(example(kind, "topology-scheduler-config", "002").text)
        taken(kind)
    for kind in ("TopologySchedulerConfig", "SchedulerConfig"):
        cluster().request("DELETE", CONFIGS.format(kind.lower()))


@row
def its_limits_hold_while_they_are_in_force_and_no_longer():
    """maxNodesPerLeaf, as an object and as the ConfigMap of the troubleshooting section."""
    text = example("SchedulerConfig", "topology-scheduler-config", "002").text
    text = text.replace("maxNodesPerLeaf: 4", "maxNodesPerLeaf: 1")
    check("maxNodesPerLeaf: 1" in text, text)

    def leaves():
        path = workload("Job", "pair", 2, GPUS, {}, {"gpu.scheduling/gang": "true"})
        used = {leaf_of(node) for node in nodes_of("app=pair", 2)}
        drop(path, "app=pair")
        return len(used)
    equal(leaves(), 1)
    cluster().apply(text)
    taken("SchedulerConfig")
    equal(leaves(), 2)
    cluster().request("DELETE", CONFIGS.format("schedulerconfig"))
    wait_for(lambda: leaves() == 1, "the limit is gone with its object")
    maps = "/api/v1/namespaces/kube-system/configmaps"
    cluster().request("POST", maps, {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "topology-scheduler-config"},
        "data": {"config.yaml": text}})
    wait_for(lambda: leaves() == 2, "the limit of the ConfigMap holds")
    shown = cluster().kubectl("get", "configmap", "-n", "kube-system", "topology-scheduler-config",
                              "-o", "yaml").out
    check("maxNodesPerLeaf: 1" in shown, shown)
    cluster().request("DELETE", f"{maps}/topology-scheduler-config")
    wait_for(lambda: leaves() == 1, "the limit is gone with the ConfigMap")


@row
def domains_of_the_configuration_count_more_than_labels():
    cluster().request("POST", CONFIGS.format("schedulerconfig").rsplit("/", 1)[0], {
        "apiVersion": "topology.scheduler/v1alpha1", "kind": "SchedulerConfig",
        "metadata": {"name": "topology-scheduler-config"},
        "spec": {"topology": {"domains": [{"name": "row-7"}, {
            "name": "rack-7", "parent": "row-7", "nodes": ["node-1-3-2", "node-2-4-1"]}]}}})
    taken("SchedulerConfig")
    path = workload("Job", "racked", 2, GPUS, {"preferred-domain": "rack-7"}, {"gpu.scheduling/gang": "true"})
    equal(sorted(nodes_of("app=racked", 2)), ["node-1-3-2", "node-2-4-1"])
    drop(path, "app=racked")
    cluster().request("DELETE", CONFIGS.format("schedulerconfig"))


@row
def metrics_tell_what_has_happened():
    create(plain("measured", GPUS, preferred_domain="leaf-2"))
    bound("measured")

    def sample(begin):
        lines = [line for line in scheduler().page("/metrics").splitlines() if line.startswith(begin)]
        return [float(line.split()[-1]) for line in lines]
    for name in ("topology_scheduler_latency_seconds_count",
                 "topology_scheduler_placement_duration_seconds_count"):
        check(sum(sample(name)) > 0, name)
    check(sum(sample('topology_placement_decisions_total{result="bound"}')) > 0, "decisions")
    full = GPUS / (IN_LEAF * GPUS)
    wait_for(lambda: any(abs(value - full) < 1e-6 for value in sample("topology_domain_utilization_ratio")),
             "a leaf is used by a quarter")
    all_gpus = 2 * LEAVES * IN_LEAF * GPUS
    wait_for(lambda: any(abs(value - GPUS / all_gpus) < 1e-6
                         for value in sample("topology_gpu_allocation_ratio")), "as much is allocated")
    check(sample("topology_scheduler_domain_fragmentation_ratio"), "fragmentation")
    remove("measured")


# ---------------------------------------------------------------- commands


@row
def the_commands_of_the_document_start_it():
    """bin/scheduler --kubeconfig=config --scheduler-name=..., bin/controller --kubeconfig=config"""
    folder = cluster().folder / "bin"
    folder.mkdir()
    for name in ("scheduler", "controller"):
        (folder / name).symlink_to(BINARY)
    config = f"--kubeconfig={cluster().kubeconfig}"
    equal(scheduler().program.is_running(), True)
    other = scheduled.Program("other", [folder / "scheduler", config, "--scheduler-name=one-of-mine",
                                        "--no-leader-elect", "--port", scheduled.free_port()],
                              cluster().folder).start()
    one = plain("mine")
    one["spec"]["schedulerName"] = "one-of-mine"
    create(one)
    bound("mine")
    other.check_running()
    other.stop()
    remove("mine")
    controller = subprocess.run([str(folder / "controller"), "--help"], capture_output=True, text=True,
                                timeout=30)
    equal(controller.returncode, 0, controller)
    check("--kubeconfig" in controller.stdout, controller)


if __name__ == "__main__":
    if len(documents()) < 4:
        sys.exit(skip_all(f"{SHARED}/seeds lacks 000_*.txt ... 003_*.txt"))
    prepare()
    sys.exit(main())
