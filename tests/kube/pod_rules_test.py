#!/usr/bin/env python3
"""Rules that pods have about each other, about ports and about volumes, on a real control plane."""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
import scheduled  # noqa: E402
from api_client import Answer  # noqa: E402
from control_plane import ControlPlane  # noqa: E402
from processes import Program, free_port  # noqa: E402
from scheduled import PODS, RunningScheduler, create, delete  # noqa: E402
from service import BINARY, check, equal, main, test, wait_for  # noqa: E402
from volumes import VOLUME_CLAIMS, storage_class, volume, volume_claim  # noqa: E402

HOST, ZONE = "kubernetes.io/hostname", "example.com/zone"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
NODES, GPUS = 4, 4
scheduled.SIZE.update(nodes=NODES, gpus=GPUS)
_zoned = []


def cluster():
    """Two nodes in each zone."""
    plane = scheduled.cluster()
    if not _zoned:
        _zoned.append(True)
        for number, node in enumerate(sorted(nodes())):
            plane.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {ZONE: "ab"[number // 2]}}})
        scheduled.scheduler()
    return plane


def nodes():
    return {one["metadata"]["name"]: one["metadata"]["labels"]
            for one in scheduled.cluster().get("/api/v1/nodes")["items"]}


def pod(name, app="web", gpus=1, annotations=None, container=None, **spec):
    made = scheduled.pod(name, gpus, annotations, **spec)
    made["metadata"]["labels"] = {"app": app}
    made["spec"]["containers"][0].update(container or {})
    return made


def bound(name):
    return scheduled.bound(name)["spec"]["nodeName"]


def told(name):
    status = cluster().get(f"{PODS}/{name}")["status"]
    return next((one["message"] for one in status.get("conditions", [])
                 if one["type"] == "PodScheduled" and one["status"] == "False"), "")


def reason(name):
    return scheduled.condition(name)["reason"]


def waits(name, words):
    wait_for(lambda: words in told(name), f"{name} is told: {words}")
    check(not cluster().get(f"{PODS}/{name}")["spec"].get("nodeName"), f"{name} waits")


def add_priority_class(name):
    cluster().request("POST", PRIORITY_CLASSES, {
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
        "value": 1000})


def term(app, key):
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def affinity(kind, app, key):
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term(app, key)]}}


@test
def a_host_port_is_given_once_a_node():
    port = {"ports": [{"containerPort": 80, "hostPort": 8088}]}
    names = [f"port-{i}" for i in range(NODES + 1)]
    create(*(pod(name, container=port) for name in names[:NODES]))
    equal(len({bound(name) for name in names[:NODES]}), NODES)
    create(pod(names[NODES], container=port))
    waits(names[NODES], "host port 8088/TCP")
    delete(names[0])
    bound(names[NODES])
    delete(*names[1:])


@test
def a_pod_goes_where_the_pods_are_that_it_wants_to_be_near_to():
    create(pod("follower", affinity=affinity("podAffinity", "cache", ZONE)))
    waits("follower", "affinity to other pods leaves 0 of 4 nodes")
    create(pod("cache", app="cache", gpus=GPUS))
    zone = nodes()[bound("cache")][ZONE]
    equal(nodes()[bound("follower")][ZONE], zone)
    delete("follower", "cache")


@test
def the_first_of_a_group_that_wants_to_be_together_may_begin():
    together = affinity("podAffinity", "group", ZONE)
    names = [f"group-{i}" for i in range(4)]
    create(*(pod(name, app="group", affinity=together) for name in names))
    equal(len({nodes()[bound(name)][ZONE] for name in names}), 1)
    delete(*names)


@test
def pods_that_keep_apart_get_a_node_each_and_the_next_waits():
    apart = affinity("podAntiAffinity", "lonely", HOST)
    names = [f"lonely-{i}" for i in range(NODES + 1)]
    create(*(pod(name, app="lonely", affinity=apart) for name in names[:NODES]))
    equal(len({bound(name) for name in names[:NODES]}), NODES)
    create(pod(names[NODES], app="lonely", affinity=apart))
    waits(names[NODES], "leaves 0 of 4 nodes")
    delete(names[0])
    bound(names[NODES])
    delete(*names[1:])


@test
def a_newcomer_keeps_away_from_those_that_want_it_so():
    create(pod("hermit", app="hermit", affinity=affinity("podAntiAffinity", "web", ZONE)))
    zone = nodes()[bound("hermit")][ZONE]
    names = [f"web-{i}" for i in range(2 * GPUS)]
    create(*(pod(name) for name in names))
    equal({nodes()[bound(name)][ZONE] for name in names}, {"b" if zone == "a" else "a"})
    delete("hermit", *names)


@test
def namespaces_are_selected_by_their_labels():
    for name, team in (("blue", "ml"), ("red", "web")):
        cluster().request("POST", "/api/v1/namespaces", {
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": team}}})
        cluster().request("POST", f"/api/v1/namespaces/{name}/pods", pod("cache", app="cache"))
    at = {name: cluster().wait_until(f"/api/v1/namespaces/{name}/pods/cache",
                                     lambda one: one["spec"].get("nodeName"), "bound")["spec"]["nodeName"]
          for name in ("blue", "red")}
    rule = affinity("podAffinity", "cache", HOST)
    rule["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["namespaceSelector"] = {
        "matchLabels": {"team": "web"}}
    create(pod("follower", affinity=rule))
    equal(bound("follower"), at["red"])
    delete("follower")
    for name in ("blue", "red"):
        cluster().request("DELETE", f"/api/v1/namespaces/{name}/pods/cache")


@test
def pods_spread_over_domains():
    rule = [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
             "labelSelector": {"matchLabels": {"app": "spread"}}}]
    names = [f"spread-{i}" for i in range(6)]
    create(*(pod(name, app="spread", topologySpreadConstraints=rule) for name in names))
    zones = [nodes()[bound(name)][ZONE] for name in names]
    equal((zones.count("a"), zones.count("b")), (3, 3))
    delete(*names)


@test
def a_gang_that_keeps_apart_starts_as_a_whole():
    ring = {"gpu.scheduling/gang": "ring", "gpu.scheduling/gang-size": str(NODES)}
    apart = affinity("podAntiAffinity", "ring", HOST)
    names = [f"ring-{i}" for i in range(NODES)]
    create(*(pod(name, app="ring", annotations=ring, affinity=apart) for name in names))
    equal(len({bound(name) for name in names}), NODES)
    delete(*names)


@test
def a_gang_that_can_not_keep_apart_binds_nothing():
    ring = {"gpu.scheduling/gang": "three", "gpu.scheduling/gang-size": "3"}
    apart = affinity("podAntiAffinity", "three", ZONE)
    names = [f"three-{i}" for i in range(3)]
    create(*(pod(name, app="three", annotations=ring, affinity=apart) for name in names))
    wait_for(lambda: any(told(name) for name in names), "it is told why it waits")
    check(not any(cluster().get(f"{PODS}/{name}")["spec"].get("nodeName") for name in names),
          "nothing is bound")
    delete(*names)


# ---------------------------------------------------------------- volumes

def with_claim(name, claim_name, **options):
    return pod(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}],
               **options)


@test
def a_claim_that_waits_for_its_pod_gets_a_volume_of_the_pods_node():
    cluster()
    node = sorted(nodes())[2]
    create(with_claim("storing", "data"))
    waits("storing", "PersistentVolumeClaim default/data does not exist")
    volume_claim("data", "local")
    waits("storing", "StorageClass local of PersistentVolumeClaim default/data does not exist")
    storage_class("local")
    waits("storing", "its volume claims leave 0 of 4 nodes")
    volume("disk-1", node, "local")
    equal(bound("storing"), node)
    one = cluster().get(f"{VOLUME_CLAIMS}/data")
    equal((one["status"]["phase"], one["spec"]["volumeName"]), ("Bound", "disk-1"))
    delete("storing")
    create(with_claim("again", "data"))
    equal(bound("again"), node)
    delete("again")


@test
def an_unbound_claim_that_does_not_wait_is_waited_for():
    cluster()
    storage_class("at-once", "Immediate")
    volume_claim("slow", "at-once")
    create(with_claim("patient", "slow"))
    waits("patient", "PersistentVolumeClaim default/slow is not bound to a volume yet")
    node = sorted(nodes())[1]
    volume("disk-2", node, "at-once")
    equal(bound("patient"), node)
    delete("patient")


@test
def a_block_claim_takes_no_volume_that_is_a_file_system():
    cluster()
    storage_class("raw")
    node = sorted(nodes())[1]
    volume("files", node, "raw", size="6Gi")
    volume_claim("blocks", "raw", volumeMode="Block")
    create(with_claim("raw", "blocks"))
    waits("raw", "its volume claims leave 0 of 4 nodes")
    volume("device", node, "raw", size="10Gi", volumeMode="Block")
    equal(bound("raw"), node)
    one = cluster().get(f"{VOLUME_CLAIMS}/blocks")
    equal((one["status"]["phase"], one["spec"]["volumeName"]), ("Bound", "device"))
    files = cluster().get("/api/v1/persistentvolumes/files")
    equal((files["status"]["phase"], files["spec"].get("claimRef")), ("Available", None))
    delete("raw")


@test
def a_claim_for_one_pod_serves_one_pod_at_a_time():
    cluster()
    storage_class("once")
    node = sorted(nodes())[0]
    volume("disk-3", node, "once", modes=("ReadWriteOncePod",))
    volume_claim("mine", "once", modes=("ReadWriteOncePod",))
    create(with_claim("first", "mine"))
    equal(bound("first"), node)
    create(with_claim("second", "mine"))
    waits("second", "ReadWriteOncePod")
    delete("first")
    equal(bound("second"), node)
    delete("second")


# ---------------------------------------------------------------- gates and taints

@test
def a_pod_waits_until_its_scheduling_gate_is_gone():
    create(pod("gated", schedulingGates=[{"name": "example.com/later"}]))
    waits("gated", "scheduling gate example.com/later is closed")
    equal(reason("gated"), "SchedulingGated")
    cluster().patch(f"{PODS}/gated", {"spec": {"schedulingGates": []}})
    bound("gated")
    delete("gated")


@test
def a_tainted_node_is_for_those_who_tolerate_it():
    *others, kept = sorted(nodes())
    taint = {"key": "dedicated", "value": "research", "effect": "NoSchedule"}
    cluster().patch(f"/api/v1/nodes/{kept}", {"spec": {"taints": [taint]}})
    plain = [f"plain-{i}" for i in range(NODES)]
    create(*(pod(name, gpus=GPUS) for name in plain[:-1]))
    equal({bound(name) for name in plain[:-1]}, set(others))
    create(pod(plain[-1], gpus=GPUS))
    waits(plain[-1], "taint")
    create(pod("tolerant", gpus=1, tolerations=[{**taint, "operator": "Equal"}]))
    equal(bound("tolerant"), kept)
    delete("tolerant")
    waits(plain[-1], "taint")
    cluster().patch(f"/api/v1/nodes/{kept}", {"spec": {"taints": None}})
    equal(bound(plain[-1]), kept)
    delete(*plain)


# ---------------------------------------------------------------- pod groups

def crd(group, version, kind="PodGroup"):
    plural = kind.lower() + "s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}",
                         "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}},
            "spec": {"group": group, "scope": "Namespaced",
                     "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                     "versions": [{"name": version, "served": True, "storage": True,
                                   "schema": {"openAPIV3Schema": schema}}]}}


def served(path):
    try:
        return cluster().find(path) is not None
    except Answer:  # its storage is being made
        return False


def install(group, version, kind="PodGroup"):
    """Serves such objects, and gives their path."""
    cluster().request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                      crd(group, version, kind))
    path = f"/apis/{group}/{version}/namespaces/default/{kind.lower()}s"
    wait_for(lambda: served(path), f"{group} is served")
    return path


@test
def pod_groups_say_how_large_a_gang_is():
    cluster()
    styles = [("scheduling.x-k8s.io", "v1alpha1", {"labels": {"scheduling.x-k8s.io/pod-group": "trio"}}),
              ("scheduling.volcano.sh", "v1beta1",
               {"annotations": {"scheduling.k8s.io/group-name": "trio"}}),
              ("scheduling.run.ai", "v2alpha2", {"annotations": {"pod-group-name": "trio"}})]
    for group, version, meta in styles:
        names = [f"{version}-{i}" for i in range(3)]
        members = [pod(name) for name in names]
        for member in members:
            for kind, pairs in meta.items():
                member["metadata"][kind].update(pairs)
        create(*members[:2])
        waits(names[0], "the size of gang 'trio' is not known")
        path = install(group, version)
        cluster().request("POST", path, {"apiVersion": f"{group}/{version}", "kind": "PodGroup",
                                         "metadata": {"name": "trio"}, "spec": {"minMember": 3}})
        waits(names[0], "2 of 3 pods are there")
        create(members[2])
        for name in names:
            bound(name)
        delete(*names)
        cluster().request("DELETE", f"{path}/trio")


VOLCANO = "scheduling.volcano.sh/v1beta1"


def of_group(name, group, **options):
    one = pod(name, **options)
    one["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = group
    return one


def add_pod_group(name, **spec):
    path = f"/apis/{VOLCANO}/namespaces/default/podgroups"
    cluster().request("POST", path, {"apiVersion": VOLCANO, "kind": "PodGroup",
                                     "metadata": {"name": name}, "spec": spec})
    return f"{path}/{name}"


@test
def the_queue_of_a_pod_group_is_its_tenant():
    tenants = "/apis/gpu.scheduling/v1/gputenants"
    for name, namespaces in (("gold", ["default"]), ("closed", ["elsewhere"])):
        cluster().request("POST", tenants, {
            "apiVersion": "gpu.scheduling/v1", "kind": "GpuTenant", "metadata": {"name": name},
            "spec": {"namespaces": namespaces, "maxGPUs": 2}})
    groups = [add_pod_group("pair", minMember=2, queue="gold"), add_pod_group("more", minMember=1, queue="gold"),
              add_pod_group("intruder", minMember=1, queue="closed")]
    create(of_group("pair-0", "pair"), of_group("pair-1", "pair"))
    bound("pair-0")
    bound("pair-1")
    create(of_group("more-0", "more"), of_group("intruder-0", "intruder"))
    waits("more-0", "quota exceeded for tenant gold")
    waits("intruder-0", "GpuTenant closed does not take namespace default")
    delete("pair-0", "pair-1")
    bound("more-0")
    delete("more-0", "intruder-0")
    for path in (*groups, f"{tenants}/gold", f"{tenants}/closed"):
        cluster().request("DELETE", path)


@test
def the_priority_class_of_a_pod_group_is_that_of_its_pods():
    fillers = [f"filler-{i}" for i in range(NODES)]
    create(*(pod(name, gpus=GPUS) for name in fillers))
    for name in fillers:
        bound(name)
    group = add_pod_group("urgent", minMember=2, priorityClassName="soon")
    create(of_group("urgent-0", "urgent", gpus=GPUS), of_group("urgent-1", "urgent", gpus=GPUS))
    waits("urgent-0", "PriorityClass soon, which does not exist")
    add_priority_class("soon")
    bound("urgent-0")
    bound("urgent-1")
    left = [name for name in fillers if cluster().find(f"{PODS}/{name}")]
    equal(len(left), NODES - 2, "pods that were not in its way")
    delete("urgent-0", "urgent-1", *left)
    cluster().request("DELETE", group)
    cluster().request("DELETE", f"{PRIORITY_CLASSES}/soon")


# ---------------------------------------------------------------- all pods of an owner

JOBS = "/apis/batch/v1/namespaces/default/jobs"


def child_job(name, parallelism, owner):
    """As the controller of a JobSet makes it."""
    meta = {"name": name, "ownerReferences": [
        {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
         "uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": False}]}
    spec = {**pod("unused")["spec"], "restartPolicy": "Never"}
    cluster().request("POST", JOBS, {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": meta,
        "spec": {"parallelism": parallelism, "completions": parallelism,
                 "template": {"metadata": {"labels": {"app": "set"}}, "spec": spec}}})


def pods_of_set():
    return sorted(one["metadata"]["name"] for one in cluster().get(f"{PODS}?labelSelector=app%3Dset")["items"])


@test
def all_pods_of_a_job_set_start_together():
    path = install("jobset.x-k8s.io", "v1alpha2", "JobSet")  # after the scheduler has begun
    owner = cluster().request("POST", path, {
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {"name": "train", "annotations": {"gpu.scheduling/gang": "true"}},
        "spec": {"replicatedJobs": [
            {"name": "leader", "template": {"spec": {"template": {}}}},
            {"name": "workers", "replicas": 2,
             "template": {"spec": {"parallelism": 2, "completions": 2, "template": {}}}}]}})
    child_job("train-leader-0", 1, owner)
    child_job("train-workers-0", 2, owner)
    first = wait_for(lambda: len(pods_of_set()) == 3 and pods_of_set(), "the pods of two Jobs")
    for name in first:
        waits(name, "gang default/JobSet/train is not whole: 3 of 5 pods are there")
    child_job("train-workers-1", 2, owner)
    for name in wait_for(lambda: len(pods_of_set()) == 5 and pods_of_set(), "the pods of all Jobs"):
        bound(name)
    cluster().request("DELETE", f"{JOBS}?propagationPolicy=Background")
    cluster().request("DELETE", f"{path}/train")
    wait_for(lambda: not pods_of_set(), "its pods are gone")


# ---------------------------------------------------------------- what administrators say

CONFIG_MAPS = "/api/v1/namespaces/gpu-scheduler/configmaps"
CONFIGS = "/apis/topology.scheduler/v1alpha1/schedulerconfigs"
TOPOLOGY_CONFIGS = "/apis/topology.scheduler/v1alpha1/topologyschedulerconfigs"


def config(kind, names, **spec):
    return {"apiVersion": "topology.scheduler/v1alpha1", "kind": kind,
            "metadata": {"name": "topology-scheduler-config"},
            "spec": {"schedulerNames": ["gpu-scheduler", *names], **spec}}


def of_scheduler(name, scheduler):
    one = pod(name)
    one["spec"]["schedulerName"] = scheduler
    return one


def config_map(text):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "topology-scheduler-config"},
            "data": {"config.yaml": text}}


def events(reason):
    return [one for space in ("gpu-scheduler", "default")
            for one in cluster().get(f"/apis/events.k8s.io/v1/namespaces/{space}/events")["items"]
            if one["reason"] == reason]


@test
def a_configuration_is_taken_over_while_the_scheduler_runs():
    create(of_scheduler("by-map", "map-scheduler"), of_scheduler("by-object", "object-scheduler"))
    cluster().request("POST", CONFIG_MAPS, config_map(json.dumps(config("SchedulerConfig", ["map-scheduler"]))))
    bound("by-map")
    cluster().request("POST", CONFIGS, config("SchedulerConfig", ["object-scheduler"]))
    bound("by-object")
    cluster().wait_until(f"{CONFIGS}/topology-scheduler-config",
                         lambda one: one.get("status", {}).get("accepted") is True, "it is said to hold")
    delete("by-map", "by-object")
    cluster().request("DELETE", f"{CONFIGS}/topology-scheduler-config")


def notes_about(one, reason):
    uid = one["metadata"]["uid"]
    return [event["note"] for event in events(reason) if event["regarding"]["uid"] == uid]


def config_status(path, **wanted):
    cluster().wait_until(f"{path}/topology-scheduler-config",
                         lambda one: one.get("status", {}).items() >= wanted.items(),
                         f"its status says {wanted}")


@test
def whoever_is_outranked_is_told_so_and_later_that_it_holds():
    outranked = "outranked by SchedulerConfig topology-scheduler-config"
    path = f"{CONFIG_MAPS}/topology-scheduler-config"
    if cluster().find(path):
        cluster().request("DELETE", path)
    one = cluster().request("POST", CONFIG_MAPS, config_map(json.dumps(config("SchedulerConfig", []))))
    wait_for(lambda: "in force" in notes_about(one, "ConfigurationTaken"), "the map holds")
    cluster().request("POST", CONFIGS, config("SchedulerConfig", []))
    wait_for(lambda: f"{outranked}; it was in force" in notes_about(one, "ConfigurationOutranked"),
             "the map is told that it holds no more")
    cluster().request("POST", TOPOLOGY_CONFIGS, config("TopologySchedulerConfig", []))
    config_status(TOPOLOGY_CONFIGS, accepted=True, inForce=False, message=outranked)
    config_status(CONFIGS, accepted=True, inForce=True, message="in force")
    cluster().request("DELETE", f"{CONFIGS}/topology-scheduler-config")
    config_status(TOPOLOGY_CONFIGS, accepted=True, inForce=True, message="in force")
    cluster().request("DELETE", f"{TOPOLOGY_CONFIGS}/topology-scheduler-config")
    wait_for(lambda: any(note.startswith("in force; it was outranked")
                         for note in notes_about(one, "ConfigurationTaken")),
             "the map is told that it holds again")
    cluster().request("DELETE", path)


@test
def names_of_the_command_line_stay_and_the_object_says_so():
    scheduled.scheduler().program.stop()
    named = scheduled.start_scheduler("named", "--scheduler-name", "gpu-scheduler")
    cluster().request("POST", CONFIGS, config("SchedulerConfig", ["object-scheduler"]))
    config_status(CONFIGS, accepted=True, inForce=True,
                  message="in force, except for schedulerNames (--scheduler-name counts more)")
    cluster().request("DELETE", f"{CONFIGS}/topology-scheduler-config")
    named.program.stop()
    scheduled.start_scheduler()


@test
def a_wrong_configuration_is_refused_and_the_old_one_stays():
    path = f"{CONFIG_MAPS}/topology-scheduler-config"
    if cluster().find(path) is None:
        cluster().request("POST", CONFIG_MAPS, config_map(json.dumps(
            config("SchedulerConfig", ["map-scheduler"]))))
    cluster().patch(path, {"data": {"config.yaml": json.dumps(
        config("SchedulerConfig", ["x"], scoringWeights={"topologyAlignment": 7}))}})
    wait_for(lambda: any("topologyAlignment" in one["note"] for one in events("ConfigurationRefused")),
             "an event says what is wrong")
    create(of_scheduler("still", "map-scheduler"))
    bound("still")
    delete("still")
    cluster().request("DELETE", path)


def urgent(name):
    """A pod that takes a whole node, if need be from somebody else."""
    one = pod(name, app="urgent", gpus=GPUS, priorityClassName="urgent")
    if cluster().find(f"{PRIORITY_CLASSES}/urgent") is None:
        add_priority_class("urgent")
        wait_for(lambda: is_admitted(one), "the API server has heard of its class")
    return one


def is_admitted(one):
    try:
        return cluster().request("POST", f"{PODS}?dryRun=All", one)
    except Answer:
        return False


def leaving():
    return [one["metadata"]["name"] for one in cluster().get(PODS)["items"]
            if one["metadata"].get("deletionTimestamp")]


@test
def who_evicts_is_nominated_while_its_victim_ends():
    names = [f"slow-{i}" for i in range(NODES)]
    for name in names:
        slow = pod(name, app="slow", gpus=GPUS)
        slow["metadata"]["finalizers"] = ["example.com/slow"]  # simulated nodes know no grace period
        create(slow)
    at = {bound(name): name for name in names}
    create(urgent("urgent"))
    status = cluster().wait_until(f"{PODS}/urgent", lambda one: one["status"].get("nominatedNodeName"),
                                  "its future node is named")["status"]
    victim = at[status["nominatedNodeName"]]
    wait_for(lambda: leaving() == [victim], f"{victim} is told to go")
    check(not cluster().get(f"{PODS}/urgent")["spec"].get("nodeName"), "the GPUs are not free yet")
    for name in names:
        cluster().patch(f"{PODS}/{name}", {"metadata": {"finalizers": None}})
    equal(bound("urgent"), status["nominatedNodeName"])
    delete("urgent", *(set(names) - {victim}))


@test
def a_pod_that_its_budget_keeps_is_not_evicted_while_others_can_be():
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    cluster().request("POST", budgets, {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "kept"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}})
    names = [f"low-{i}" for i in range(NODES - 1)]
    create(*(pod(name, app="low", gpus=GPUS) for name in names))
    for name in names:
        bound(name)
    create(pod("kept", app="kept", gpus=GPUS))  # the youngest: it would go first
    bound("kept")
    cluster().wait_until(f"{budgets}/kept", lambda one: one.get("status", {}).get("currentHealthy") == 1,
                         "the budget has counted it")
    create(urgent("urgent"))
    bound("urgent")
    left = {one["metadata"]["name"] for one in cluster().get(PODS)["items"]}
    check("kept" in left and not left >= set(names), f"{left} are left")
    delete(*(left & {*names, "kept", "urgent"}))


# ---------------------------------------------------------------- what is missing

@test
def a_missing_namespace_or_definition_is_named():
    with ControlPlane(nodes=1, gpus=1) as plane:
        port = free_port()
        for flags, words in ((["--leader-elect"], "namespace gpu-scheduler does not exist"),
                             (["--no-leader-elect"], "kubectl apply -f api/crds")):
            program = Program("bare", [BINARY, "kube", "--kubeconfig", str(plane.kubeconfig), "--port",
                                       str(port), *flags], plane.folder)
            program.start()
            bare = RunningScheduler(program, port)
            wait_for(lambda: words in bare.readiness().get("reason", ""), f"/ready says: {words}")
            check(not bare.readiness()["ready"], "it is not ready")
            program.stop()


if __name__ == "__main__":
    cluster()
    sys.exit(main())
