#!/usr/bin/env python3
"""Rules that pods have about each other, about ports and about volumes, on a real control plane."""

import json
import pathlib
import sys
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
from control_plane import ControlPlane
from processes import Program, free_port
from service import BINARY, check, equal, main, test, wait_for

PODS = "/api/v1/namespaces/default/pods"
HOST, ZONE = "kubernetes.io/hostname", "example.com/zone"
NODES, GPUS = 4, 4
_shared = {}


def cluster():
    if "cluster" not in _shared:
        plane = ControlPlane(nodes=NODES, gpus=GPUS, crds=True).start()
        _shared["cluster"] = plane
        for number, node in enumerate(sorted(nodes())):
            plane.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {ZONE: "ab"[number // 2]}}})
        plane.request("POST", "/api/v1/namespaces",
                      {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu-scheduler"}})
        start_scheduler()
    return _shared["cluster"]


def nodes():
    return {one["metadata"]["name"]: one["metadata"]["labels"]
            for one in _shared["cluster"].get("/api/v1/nodes")["items"]}


def start_scheduler():
    plane, port = _shared["cluster"], free_port()
    program = Program("scheduler", [BINARY, "kube", "--kubeconfig", str(plane.kubeconfig),
                                    "--port", str(port)], plane.folder)
    program.start()
    _shared["scheduler"] = (program, port)
    wait_for(lambda: ready().get("leads") and ready().get("ready"), "the scheduler is ready")


def ready():
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{_shared['scheduler'][1]}/ready", timeout=5) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)
    except OSError:
        return {}


def pod(name, app="web", gpus=1, annotations=None, **spec):
    container = {"name": "c", "image": "none", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    container.update(spec.pop("container", {}))
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": app}, "annotations": annotations or {}},
            "spec": {"schedulerName": "gpu-scheduler", "terminationGracePeriodSeconds": 0,
                     "containers": [container], **spec}}


def create(*pods):
    for one in pods:
        cluster().request("POST", PODS, one)


def bound(name):
    return cluster().wait_until(f"{PODS}/{name}", lambda one: one["spec"].get("nodeName"),
                                f"{name} is bound")["spec"]["nodeName"]


def delete(*names):
    for name in names:
        cluster().request("DELETE", f"{PODS}/{name}")
    for name in names:
        wait_for(lambda: cluster().find(f"{PODS}/{name}") is None, f"{name} is gone")


def told(name):
    status = cluster().get(f"{PODS}/{name}")["status"]
    return next((one["message"] for one in status.get("conditions", [])
                 if one["type"] == "PodScheduled" and one["status"] == "False"), "")


def waits(name, words):
    wait_for(lambda: words in told(name), f"{name} is told: {words}")
    check(not cluster().get(f"{PODS}/{name}")["spec"].get("nodeName"), f"{name} waits")


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


if __name__ == "__main__":
    main()
