#!/usr/bin/env python3
"""Tenants of namespaces on a real control plane: quotas, fair share, and the status of GpuTenants."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
import scheduled  # noqa: E402
from scheduled import cluster, pod  # noqa: E402
from seed_rows import bound, create, path_of, refusal, remove, waits  # noqa: E402
from service import check, equal, main, test, wait_for  # noqa: E402

TENANTS = "/apis/gpu.scheduling/v1/gputenants"
GPUS = 8
scheduled.SIZE.update(nodes=2, gpus=GPUS // 2)


def add_namespace(name, **labels):
    cluster().request("POST", "/api/v1/namespaces", {
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})


def add_tenant(name, **spec):
    cluster().request("POST", TENANTS, {"apiVersion": "gpu.scheduling/v1", "kind": "GpuTenant",
                                        "metadata": {"name": name}, "spec": spec})


def remove_tenants(*names):
    for name in names:
        cluster().request("DELETE", f"{TENANTS}/{name}")


def shows(name, **wanted):
    """Waits until its status says all of this; the words of the message are among others."""
    words = wanted.pop("message", "")
    return cluster().wait_until(
        f"{TENANTS}/{name}",
        lambda one: all(one.get("status", {}).get(field) == value for field, value in wanted.items()) and
        words in one.get("status", {}).get("message", ""), f"{name} shows {wanted} {words}")["status"]


def running(namespace):
    return [one["metadata"]["name"] for one in cluster().get(path_of(namespace))["items"]
            if one["spec"].get("nodeName") and one["status"]["phase"] not in ("Succeeded", "Failed")]


def reasons(name):
    return {one["reason"] for one in cluster().get("/apis/events.k8s.io/v1/namespaces/default/events")["items"]
            if one["regarding"].get("name") == name}


@test
def namespaces_of_one_tenant_share_its_quota():
    scheduled.scheduler()
    add_namespace("vision")
    add_namespace("speech", **{"gpu.scheduling/tenant": "research"})
    add_tenant("research", namespaces=["vision"], maxGPUs=2)
    shows("research", accepted=True, message="in force")
    create(pod("one", 1), namespace="vision")
    create(pod("two", 1), namespace="speech")
    bound("one", "vision")
    bound("two", "speech")
    create(pod("three", 1), namespace="speech")
    waits("three", "quota exceeded for tenant research", "quota=2", namespace="speech")
    shows("research", usedGPUs="2", waitingJobs=1)
    rows = cluster().kubectl("get", "gtenant", "research").out.splitlines()
    equal(rows[1].split()[:6], ["research", "2", "1", "medium", "2", "1"])
    cluster().end_pod("one", "vision")
    bound("three", "speech")
    shows("research", usedGPUs="2", waitingJobs=0)


@test
def a_deleted_tenant_limits_nobody():
    create(pod("four", 1), namespace="speech")
    waits("four", "quota exceeded for tenant research", namespace="speech")
    remove_tenants("research")
    bound("four", "speech")
    remove("two", "three", "four", namespace="speech")


@test
def a_tenant_waits_for_its_parent():
    add_namespace("team-a")
    add_tenant("team-a", parent="org", maxGPUs=4)
    shows("team-a", accepted=False, message="there is no GpuTenant org, its parent")
    wait_for(lambda: "TenantRefused" in reasons("team-a"), "an event says it")
    create(pod("early", 1), pod("late", 1), namespace="team-a")
    waits("early", "tenant team-a is not accepted: there is no GpuTenant org", namespace="team-a")
    add_tenant("org", maxGPUs=1)
    shows("team-a", accepted=True)
    wait_for(lambda: running("team-a"), "one of them runs")
    left = ({"early", "late"} - set(running("team-a"))).pop()
    waits(left, "quota exceeded for tenant org", namespace="team-a")
    shows("org", usedGPUs="1", waitingJobs=1)
    scheduled.scheduler().program.kill()
    scheduled.start_scheduler()
    shows("team-a", accepted=True, usedGPUs="1", waitingJobs=1)
    equal(len(running("team-a")), 1, "after a restart, too")
    remove("early", "late", namespace="team-a")
    remove_tenants("team-a", "org")


@test
def another_parent_counts_when_no_pod_is_left():
    add_namespace("team-b")
    add_tenant("old", maxGPUs=4)
    add_tenant("new", maxGPUs=1)
    add_tenant("team-b", parent="old")
    shows("team-b", accepted=True)
    create(pod("stays", 1), namespace="team-b")
    bound("stays", "team-b")
    cluster().patch(f"{TENANTS}/team-b", {"spec": {"parent": "new"}})
    shows("team-b", accepted=False, message="it goes below new when no pod is left")
    remove("stays", namespace="team-b")
    shows("team-b", accepted=True)
    create(pod("first", 1), pod("second", 1), namespace="team-b")
    wait_for(lambda: running("team-b"), "one of them runs")
    left = ({"first", "second"} - set(running("team-b"))).pop()
    waits(left, "quota exceeded for tenant new", namespace="team-b")
    remove("first", "second", namespace="team-b")
    remove_tenants("team-b", "old", "new")


@test
def priorities_decide_among_namespaces_without_a_tenant():
    """Nobody has asked for shares: no pod goes for another namespace's share, but for a more important one."""
    cluster().request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "soon"}, "value": 1000})
    for name in ("plain-a", "plain-b"):
        add_namespace(name)
    names = [f"fill-{i}" for i in range(GPUS)]
    create(*(pod(name, 1) for name in names), namespace="plain-a")
    for name in names:
        bound(name, "plain-a")
    create(pod("same", 1), namespace="plain-b")
    waits("same", "0 free GPUs", namespace="plain-b")
    equal(sorted(running("plain-a")), names)
    urgent = pod("urgent", 1, priorityClassName="soon")
    wait_for(lambda: not refusal(urgent, "plain-b"), "the API server has heard of its class")
    create(urgent, namespace="plain-b")
    bound("urgent", "plain-b")
    waits("same", "0 free GPUs", namespace="plain-b")
    equal(len(running("plain-a")), GPUS - 1)
    remove("same", "urgent", namespace="plain-b")
    remove(*running("plain-a"), namespace="plain-a")


@test
def a_backlog_is_served_by_weight():
    """A full cluster; GPU by GPU becomes free."""
    for name, weight in (("filler", 1), ("heavy", 3), ("light", 1)):
        add_namespace(name)
        add_tenant(name, namespaces=[name], weight=weight, allowPreemption=False)
        shows(name, accepted=True)
    fillers = [f"fill-{i}" for i in range(GPUS)]
    create(*(pod(name, 1) for name in fillers), namespace="filler")
    for name in fillers:
        bound(name, "filler")
    for namespace in ("light", "heavy"):
        create(*(pod(f"{namespace}-{i}", 1) for i in range(GPUS)), namespace=namespace)
        shows(namespace, usedGPUs="0", waitingJobs=GPUS)
    for done, name in enumerate(fillers, start=1):
        cluster().end_pod(name, "filler")
        wait_for(lambda: len(running("heavy")) + len(running("light")) == done, f"{done} GPUs are taken")
    equal((len(running("heavy")), len(running("light"))), (GPUS * 3 // 4, GPUS // 4))
    check(shows("heavy", usedGPUs=str(GPUS * 3 // 4))["waitingJobs"] == GPUS // 4)


if __name__ == "__main__":
    sys.exit(main())
