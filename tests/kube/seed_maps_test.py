#!/usr/bin/env python3
"""The scheduling map of the documents that the product's public names come from, on a real control plane:
as written, for every kind of owner, its index given back, and every wrong line told."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
import scheduled  # noqa: E402
from gpu_nodes import gpu_node_status  # noqa: E402
from scheduled import LEASES, PODS, cluster, gpu_leases, no_leases, pod  # noqa: E402
from seed_examples import SHARED, completed, documents  # noqa: E402
from seed_rows import (MAP, UNSEEN, add_node, bound, claim, claimed, create, example, given,  # noqa: E402
                       holders, refusal, remove, row, start, variables, waits)
from service import check, equal, main, skip_all, wait_for  # noqa: E402

scheduled.SIZE.update(nodes=0)
GPUS = 4
SINGLE = "0=node1:0\n1=node1:1\n2=node2:0\n"  # the two further maps of the document
SEVERAL = "0=node1:0,1\n1=node2:2,3\n2=node3:0,1,2,3\n"


def prepare():
    for number in range(1, 5):
        name = f"node{number}"
        add_node(name, GPUS, status=gpu_node_status(name, GPUS))
    start()


def places_of(text):
    """Index -> (node, ids), as the map says."""
    lines = (line.split("=") for line in text.split())
    return {int(index): (place.split(":")[0], [int(gpu) for gpu in place.split(":")[1].split(",")])
            for index, place in lines}


def documented():
    """The document's pod, as an object."""
    one = completed(cluster(), example("Pod", "gpu-workload-0", "001"))
    one["spec"]["terminationGracePeriodSeconds"] = 0
    return one


def template(app, annotations):
    return {"metadata": {"labels": {"app": app}, "annotations": annotations},
            "spec": {**pod("unused", 0)["spec"]}}


def owner(kind, name, count, text, on_itself=False, **more):
    """The map is in its pods' template, or only among its own annotations."""
    own, of_pods = ({MAP: text}, {}) if on_itself else ({}, {MAP: text})
    group, version, spec = {
        "StatefulSet": ("apis/apps/v1", "apps/v1", {"replicas": count, "serviceName": name}),
        "Deployment": ("apis/apps/v1", "apps/v1", {"replicas": count}),
        "Job": ("apis/batch/v1", "batch/v1", {"parallelism": count, "completions": count})}[kind]
    spec = {**spec, "template": template(name, of_pods), **more}
    if kind == "Job":
        spec["template"]["spec"]["restartPolicy"] = "Never"
    else:
        spec["selector"] = {"matchLabels": {"app": name}}
    path = f"/{group}/namespaces/default/{kind.lower()}s"
    cluster().request("POST", path, {"apiVersion": version, "kind": kind, "spec": spec,
                                     "metadata": {"name": name, "annotations": own}})
    return f"{path}/{name}"


def pods_of(app):
    found = cluster().get(f"{PODS}?labelSelector=app%3D{app}")["items"]
    return {one["metadata"]["name"]: one for one in found if not one["metadata"].get("deletionTimestamp")
            and one["status"]["phase"] not in ("Succeeded", "Failed")}


def names_of(app, count):
    return wait_for(lambda: len(pods_of(app)) == count and sorted(pods_of(app)), f"{count} pods of {app}")


def remove_owner(path, app):
    cluster().request("DELETE", f"{path}?propagationPolicy=Background")
    wait_for(lambda: not pods_of(app), f"the pods of {app} are gone")
    no_leases()


def lie_as_told(names, places):
    """Each pod has the devices of a line, each line that is not told twice has one pod."""
    equal(sorted(given(name) for name in names), sorted(places.values()))


# ---------------------------------------------------------------- as written


@row
def the_pod_of_the_document_gets_the_devices_of_its_line():
    cluster().apply(example("Pod", "gpu-workload-0", "001").text)
    equal(given("gpu-workload-0"), ("node1", [0, 1]))
    equal(variables("gpu-workload-0")["CUDA_VISIBLE_DEVICES"], "0,1")
    uid = bound("gpu-workload-0")["metadata"]["uid"]
    equal(gpu_leases(), {"gpu-node1-0": uid, "gpu-node1-1": uid})
    remove("gpu-workload-0")
    no_leases()


@row
def pods_of_all_its_lines_lie_as_told_and_two_share_a_gpu():
    one = documented()
    places = places_of(one["metadata"]["annotations"][MAP])
    equal(len(places), 5)
    names = []
    for index in places:
        one["metadata"]["name"] = f"gpu-workload-{index}"
        names.append(one["metadata"]["name"])
        create(one)
    for index, name in enumerate(names):
        equal(given(name), places[index], name)
    uids = {bound(name)["metadata"]["uid"] for name in names[3:]}
    equal(set(holders(cluster().get(f"{LEASES}/gpu-node4-3"))), uids, "holders of node4:3")
    remove(names[3])
    equal(set(holders(cluster().get(f"{LEASES}/gpu-node4-3"))), uids & lease_uids(names[4]))
    remove(names[4], *names[:3])
    no_leases()


def lease_uids(name):
    return {bound(name)["metadata"]["uid"]}


@row
def a_gpu_that_two_lines_share_is_nobody_elses():
    text = documented()["metadata"]["annotations"][MAP]
    names = ["share-3", "share-4"]
    create(*(pod(name, 0, {MAP: text}) for name in names))
    for name in names:
        equal(given(name), ("node4", [3]))
    create(pod("other-0", 0, {MAP: "0=node4:3"}))
    waits("other-0", "node4")
    remove(*names)
    equal(given("other-0"), ("node4", [3]))
    remove("other-0")
    no_leases()


# ---------------------------------------------------------------- owners


@row
def ordinals_of_a_stateful_set_are_its_indexes():
    text = documented()["metadata"]["annotations"][MAP]
    path = owner("StatefulSet", "gpu-workload", 5, text, podManagementPolicy="Parallel")
    for index, place in places_of(text).items():
        cluster().wait_until(f"{PODS}/gpu-workload-{index}", bool, "its pod is there")
        equal(given(f"gpu-workload-{index}"), place)
    remove_owner(path, "gpu-workload")


@row
def completion_indexes_of_a_job_are_its_indexes():
    path = owner("Job", "indexed", 3, SEVERAL, completionMode="Indexed")
    for name in names_of("indexed", 3):
        index = int(bound(name)["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"])
        equal(given(name), places_of(SEVERAL)[index])
    for name in names_of("indexed", 3):
        cluster().end_pod(name)
    no_leases()
    remove_owner(path, "indexed")


@row
def a_job_without_indexes_takes_the_lowest_that_are_free():
    path = owner("Job", "plain", 3, SINGLE)
    lie_as_told(names_of("plain", 3), places_of(SINGLE))
    remove_owner(path, "plain")


@row
def a_deployment_takes_the_lowest_that_are_free_and_gives_them_back():
    path = owner("Deployment", "replicas", 3, SINGLE)
    names = names_of("replicas", 3)
    lie_as_told(names, places_of(SINGLE))
    middle = next(name for name in names if given(name) == ("node1", [1]))
    cluster().request("DELETE", f"{PODS}/{middle}")
    wait_for(lambda: len(pods_of("replicas")) == 3 and middle not in pods_of("replicas"), "it is replaced")
    lie_as_told(names_of("replicas", 3), places_of(SINGLE))
    cluster().patch(path, {"spec": {"replicas": 4}})
    extra = wait_for(lambda: [name for name, one in pods_of("replicas").items()
                              if not one["spec"].get("nodeName")], "a fourth pod")[0]
    waits(extra, "gpu-scheduling-map has no line for index 3")
    cluster().patch(path, {"spec": {"replicas": 3}})
    remove_owner(path, "replicas")


@row
def a_rolling_update_takes_the_spare_line_and_then_those_of_the_pods_that_went():
    path = owner("Deployment", "rolling", 2, SINGLE, strategy={
        "type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
    old = names_of("rolling", 2)
    lie_as_told(old, dict(list(places_of(SINGLE).items())[:2]))
    cluster().patch(path, {"spec": {"template": {"metadata": {"annotations": {"example.com/round": "2"}}}}})
    wait_for(lambda: len(pods_of("rolling")) == 2 and not set(pods_of("rolling")) & set(old),
             "all pods are new")
    places = [given(name) for name in names_of("rolling", 2)]
    check(all(place in places_of(SINGLE).values() for place in places) and places[0] != places[1], places)
    remove_owner(path, "rolling")


@row
def a_map_on_a_deployment_counts_for_its_pods():
    path = owner("Deployment", "outer", 3, SINGLE, on_itself=True)
    lie_as_told(names_of("outer", 3), places_of(SINGLE))
    remove_owner(path, "outer")


@row
def a_map_on_a_stateful_set_or_an_indexed_job_counts_for_its_pods():
    path = owner("StatefulSet", "ordered", 3, SEVERAL, on_itself=True)
    for index, place in places_of(SEVERAL).items():
        cluster().wait_until(f"{PODS}/ordered-{index}", bool, "its pod is there")
        equal(given(f"ordered-{index}"), place)
        refers = cluster().get(f"{PODS}/ordered-{index}")["spec"]["containers"][0]["env"][0]["valueFrom"]
        equal(refers["fieldRef"]["fieldPath"], "metadata.annotations['gpu.scheduling/visible-devices']")
    remove_owner(path, "ordered")
    path = owner("Job", "counted", 3, SEVERAL, on_itself=True, completionMode="Indexed")
    for name in names_of("counted", 3):
        index = int(bound(name)["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"])
        equal(given(name), places_of(SEVERAL)[index])
    remove_owner(path, "counted")


@row
def an_index_is_free_again_when_its_pod_has_ended():
    path = owner("Job", "thrice", 1, "0=node2:1\n", completions=3)
    done = set()
    for _ in range(3):
        name = wait_for(lambda: next(iter(set(pods_of("thrice")) - done), None), "the next pod")
        equal(given(name), ("node2", [1]))
        cluster().end_pod(name)
        done.add(name)
    cluster().wait_until(path, lambda one: one["status"].get("succeeded") == 3, "the Job is complete")
    remove_owner(path, "thrice")


# ---------------------------------------------------------------- beside limits and claims


@row
def a_map_agrees_with_limits_and_claims_or_is_refused():
    create(pod("equal-0", 2, {MAP: SEVERAL}))
    equal(given("equal-0"), ("node1", [0, 1]))
    claim("pair", 2)
    create(claimed("pair-1", "pair", **{MAP: SEVERAL}))
    equal(given("pair-1"), ("node2", [2, 3]))
    said = "line 1 gives the pod 2 GPUs but the containers' nvidia.com/gpu limits ask for 1"
    check(said in refusal(pod("less-0", 1, {MAP: SEVERAL})))
    create(pod("less-0", 1, {MAP: SEVERAL}), namespace=UNSEEN)
    waits("less-0", said, namespace=UNSEEN)
    remove("equal-0", "pair-1")
    remove("less-0", namespace=UNSEEN)


# ---------------------------------------------------------------- what is wrong is told


WRONG = {
    "0=node1:0\nnonsense": "line 2 ('nonsense'): must look like <index>=<node>:<gpu ids>",
    "x=node1:0": "line 1 ('x=node1:0'): 'x' is no pod index",
    "0=node1:": "line 1 ('0=node1:'): no GPU ids after the ':'",
    "0=node1:a": "'a' is no GPU id",
    "0=node1:1,1": "GPU 1 is listed twice",
    "0=node1:0\n0=node2:0": "line 2: index 0 is given in line 1 already",
    "1=node1:0": "has no line for index 0",
    "": "has no line; they look like 0=node1:0,1",
}


@row
def wrong_lines_are_refused_at_creation_and_told_by_an_event():
    for text, words in WRONG.items():
        check(words in refusal(pod("wrong-0", 0, {MAP: text})), refusal(pod("wrong-0", 0, {MAP: text})))
    names = {f"wrong{number}-0": words for number, words in enumerate(WRONG.values())}
    for name, text in zip(names, WRONG):
        create(pod(name, 0, {MAP: text}), namespace=UNSEEN)
    for name, words in names.items():
        waits(name, words, namespace=UNSEEN)
    remove(*names, namespace=UNSEEN)


@row
def a_pod_waits_for_its_node_and_its_gpu():
    create(pod("early-0", 0, {MAP: "# later\n0=node9:5"}))
    waits("early-0", "line 2: there is no node 'node9'")
    add_node("node9", GPUS, status=gpu_node_status("node9", GPUS))
    waits("early-0", "line 2: node 'node9' has no GPU 5; its GPUs are 0..3")
    cluster().report_gpus([("node9", gpu_node_status("node9", 8))])
    equal(given("early-0"), ("node9", [5]))
    remove("early-0")


@row
def a_gpu_that_is_taken_is_waited_for():
    create(pod("first-0", 0, {MAP: "0=node3:2"}))
    bound("first-0")
    create(pod("second-0", 0, {MAP: "0=node3:1,2"}))
    waits("second-0", "node3")
    remove("first-0")
    equal(given("second-0"), ("node3", [1, 2]))
    remove("second-0")
    no_leases()


if __name__ == "__main__":
    if len(documents()) < 4:
        sys.exit(skip_all(f"{SHARED}/seeds lacks 000_*.txt ... 003_*.txt"))
    prepare()
    sys.exit(main())
