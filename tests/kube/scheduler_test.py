#!/usr/bin/env python3
"""`gpu-scheduler kube` on a real control plane: from a pod to its GPUs, leases and words, and back."""

import datetime
import json
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
import scheduled  # noqa: E402
from round_robin import RoundRobin  # noqa: E402
from scheduled import (LEASES, PODS, allocations, bound, cluster, condition, create,  # noqa: E402
                       delete, gpu_leases, no_leases, pod, scheduler, start_scheduler)
from service import BINARY, check, equal, main, test, wait_for  # noqa: E402

CLAIMS = "/apis/gpu.scheduling/v1/namespaces/default/gpuclaims"
GPUS = scheduled.SIZE["gpus"]


def explain(name):
    return json.loads(scheduler().page(f"/explain?pod=default/{name}"))


@test
def a_pod_with_a_gpu_limit_is_bound_with_leases_and_annotations():
    scheduler()
    create(pod("plain", 2))
    one = bound("plain")
    node, ids = one["metadata"]["annotations"]["gpu.scheduling/allocated"].split(":")
    equal(node, one["spec"]["nodeName"])
    equal(one["metadata"]["annotations"]["gpu.scheduling/visible-devices"], ids)
    equal(len(ids.split(",")), 2)
    equal(one["metadata"]["annotations"]["gpu.scheduling/ib-hca"],
          ",".join(f"mlx5_{gpu}" for gpu in ids.split(",")), "the adapters near its GPUs")
    equal(gpu_leases(), {f"gpu-{node}-{gpu}": one["metadata"]["uid"] for gpu in ids.split(",")})
    lease = cluster().get(f"{LEASES}/gpu-{node}-{ids.split(',')[0]}")
    equal(lease["metadata"]["labels"]["gpu.scheduling/managed"], "true")
    told = f"Successfully assigned default/plain to {node}: GPUs {ids}"
    wait_for(lambda: told in cluster().kubectl("describe", "pod", "plain").out, "its events say where it is")
    delete("plain")
    no_leases()


@test
def a_claim_is_waited_for_and_its_status_kept_true():
    create(pod("claimed", 0, {"gpu.scheduling/claim": "two"}))
    wait_for(lambda: "two does not exist" in (condition("claimed") or {}).get("message", ""),
             "the pod is told that its claim is missing")
    cluster().request("POST", CLAIMS, {
        "apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim", "metadata": {"name": "two"},
        "spec": {"devices": {"count": 2, "exclusivity": "Exclusive"}}})
    one = bound("claimed")
    allocated = one["metadata"]["annotations"]["gpu.scheduling/allocated"]
    claim = cluster().wait_until(f"{CLAIMS}/two", lambda c: c.get("status", {}).get("phase") == "Bound",
                                 "the claim is bound")
    equal(claim["status"]["allocated"], allocated)
    equal(claim["status"]["nodeName"], one["spec"]["nodeName"])
    delete("claimed")
    cluster().wait_until(f"{CLAIMS}/two", lambda c: c["status"]["phase"] == "Pending",
                         "the claim is free again")
    no_leases()


@test
def a_gang_is_bound_when_it_is_whole():
    gang = {"gpu.scheduling/gang": "ring", "gpu.scheduling/gang-size": "3"}
    members = [pod(f"ring-{i}", GPUS, gang) for i in range(3)]
    create(*members[:2])
    wait_for(lambda: "2 of 3" in (condition("ring-0") or {}).get("message", ""),
             "the gang is told that it is not whole")
    equal(gpu_leases(), {})
    create(members[2])
    nodes = {bound(f"ring-{i}")["spec"]["nodeName"] for i in range(3)}
    equal(len(nodes), 3)
    equal(len(gpu_leases()), 3 * GPUS)
    delete(*(f"ring-{i}" for i in range(3)))
    no_leases()


@test
def what_does_not_fit_is_told_why():
    create(pod("large", GPUS + 1))
    wait_for(lambda: condition("large"), "the pod has a condition")
    said = condition("large")
    equal((said["status"], said["reason"]), ("False", "Unschedulable"))
    check(f"{GPUS + 1} GPUs" in said["message"], said["message"])
    check(f"{GPUS + 1} GPUs" in explain("large")["why"]["sentence"])
    told = cluster().kubectl("describe", "pod", "large").out
    check("FailedScheduling" in told, told)
    delete("large")


def expected_start(text):
    """Of a message that says it once."""
    equal(text.count("expected start "), 1, text)
    return datetime.datetime.strptime(text.split("expected start ")[1][:20] + "+0000",
                                      "%Y-%m-%d %H:%M:%SZ%z")


@test
def who_waits_is_told_when_it_starts():
    scheduler()
    hour = {"gpu.scheduling/expected-runtime": "1h"}
    running = [pod("hour-0", GPUS, hour), pod("hour-1", GPUS, hour),
               pod("limited", GPUS, activeDeadlineSeconds=600)]
    create(*running)
    for one in running:
        bound(one["metadata"]["name"])
    create(pod("next", GPUS))
    wait_for(lambda: "; expected start " in (condition("next") or {}).get("message", ""),
             "it is told when it starts")
    said = condition("next")
    equal((said["status"], said["reason"]), ("False", "Unschedulable"))
    ahead = (expected_start(said["message"]) - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
    check(0 < ahead <= 601, f"limited ends within 10 minutes, not {ahead} s: {said['message']}")
    expected_start(explain("next")["why"]["sentence"])
    check(explain("next")["expected_start"], "and /explain has it")

    def events():
        return [line for line in cluster().kubectl("describe", "pod", "next").out.splitlines()
                if "FailedScheduling" in line and "; expected start " in line]
    wait_for(events, "an event says it")
    expected_start(events()[0])
    delete("limited")
    bound("next")
    delete("hour-0", "hour-1", "next")
    no_leases()


@test
def a_runtime_that_can_not_be_read_is_told():
    scheduler()
    create(pod("vague", 1, {"gpu.scheduling/expected-runtime": "soon"}))
    wait_for(lambda: condition("vague"), "the pod has a condition")
    said = condition("vague")
    equal((said["status"], said["reason"]), ("False", "InvalidRequest"))
    check("gpu.scheduling/expected-runtime must be a time such as 90m" in said["message"]
          and "got 'soon'" in said["message"], said["message"])
    cluster().patch(f"{PODS}/vague", {"metadata": {"annotations": {
        "gpu.scheduling/expected-runtime": "90m"}}})
    bound("vague")
    delete("vague")
    no_leases()


def cli(*words, port=None):
    server = f"http://127.0.0.1:{port or scheduler().port}"
    done = subprocess.run([str(pathlib.Path(BINARY).parent / "gpu-cli"), "--server", server, *words],
                          capture_output=True, text=True, timeout=30)
    return done.stdout + done.stderr


@test
def gpu_cli_says_why_a_pod_waits_and_how_the_cluster_is():
    create(pod("small", 1), pod("giant", GPUS + 1))
    one = bound("small")
    wait_for(lambda: condition("giant"), "the pod is told")
    said = cli("why", "pod/giant")
    check(f"{GPUS + 1} GPUs" in said and "pod default/giant cannot start" in said, said)
    check(one["spec"]["nodeName"] in cli("why", "pod/default/small"), cli("why", "pod/small"))
    check("there is no pod default/nobody" in cli("why", "pod/nobody"), cli("why", "pod/nobody"))
    said = cli("status", "--kube")
    check(f"GPUs: {3 * GPUS} usable, {3 * GPUS - 1} free" in said, said)
    check("Pods: 1 bound, 0 being bound, 1 waiting" in said and "default/giant" in said, said)
    create(pod("unclaimed", 0, {"gpu.scheduling/claim": "nobody"}))
    wait_for(lambda: condition("unclaimed"), "the pod is told")
    said = cli("why", "pod/unclaimed")
    check("waits: GpuClaim default/nobody does not exist" in said, said)
    check("expected start" not in said, said)  # it depends on nobody's end
    delete("small", "giant", "unclaimed")
    no_leases()


@test
def gpu_cli_finds_the_leader_behind_a_service():
    standby = start_scheduler("standby", ready=False)
    wait_for(lambda: standby.readiness() == {"ready": True, "leads": False}, "it stands by")
    leader = json.loads(scheduler().page("/status"))["leader"]
    service = RoundRobin(standby.port, standby.port, scheduler().port)
    create(pod("giant", GPUS + 1))
    wait_for(lambda: condition("giant"), "the pod is told")
    check("pod default/giant cannot start" in cli("why", "pod/giant", port=service.port))
    check("1 waiting" in cli("status", "--kube", port=service.port))
    for words in (["why", "pod/giant"], ["status", "--kube"]):
        said = cli(*words, port=standby.port)
        check(f"this scheduler stands by; {leader} leads" in said, said)
    service.close()
    standby.program.stop()
    delete("giant")


@test
def metrics_have_the_promised_names():
    text = scheduler().page("/metrics")
    for name, kind in {"topology_scheduler_latency_seconds": "histogram",
                       "topology_scheduler_placement_duration_seconds": "histogram",
                       "topology_scheduler_recovery_duration_seconds": "histogram",
                       "topology_scheduler_domain_fragmentation_ratio": "gauge",
                       "topology_domain_utilization_ratio": "gauge",
                       "topology_gpu_allocation_ratio": "gauge",
                       "topology_placement_decisions_total": "counter"}.items():
        check(f"# TYPE {name} {kind}\n" in text, f"{name} is missing in:\n{text}")
    bound_ones = [line for line in text.splitlines()
                  if line.startswith('topology_placement_decisions_total{result="bound"}')]
    check(bound_ones and float(bound_ones[0].split()[-1]) > 0, text)


def taken_leases():
    """How often the scheduler found a GPU that it gave out in another pod's hands."""
    lines = [line for line in scheduler().page("/metrics").splitlines()
             if line.startswith('topology_placement_decisions_total{result="lease_taken"}')]
    return float(lines[0].split()[-1]) if lines else 0


@test
def the_gpus_of_pods_that_go_are_taken_over_at_once():
    first, second = [f"first-{i}" for i in range(3 * GPUS)], [f"second-{i}" for i in range(3 * GPUS)]
    create(*(pod(name, 1) for name in first))
    for name in first:
        bound(name)
    create(*(pod(name, 1) for name in second))
    delete(*first)
    for name in second:
        bound(name)
    equal(taken_leases(), 0, "places that were refused because of a lease that goes")
    delete(*second)
    no_leases()


@test
def a_scheduler_that_was_killed_finds_what_runs():
    create(*(pod(f"keep-{i}", GPUS) for i in range(2)))
    nodes = {bound(f"keep-{i}")["spec"]["nodeName"] for i in range(2)}
    equal(len(nodes), 2)
    scheduler().program.kill()
    create(*(pod(f"more-{i}", GPUS) for i in range(2)))
    start_scheduler()
    wait_for(lambda: any(cluster().get(f"{PODS}/more-{i}")["spec"].get("nodeName") for i in range(2)),
             "one of the new pods is bound")
    wait_for(lambda: sum(condition(f"more-{i}") is not None and
                         condition(f"more-{i}")["status"] == "False" for i in range(2)) == 1,
             "the other one is told to wait")
    equal(len(gpu_leases()), 3 * GPUS)
    delete("keep-0", "keep-1", "more-0", "more-1")
    no_leases()


def given():
    """Every GPU that some pod has, as often as it is given out."""
    return [gpu for gpus in allocations().values() for gpu in gpus]


@test
def schedulers_without_leader_election_never_give_a_gpu_twice():
    others = [start_scheduler(name, "--no-leader-elect") for name in ("second", "third")]
    names = [f"many-{i}" for i in range(4 * GPUS)]
    create(*(pod(name, 1) for name in names))
    wait_for(lambda: len(given()) == 3 * GPUS, "every GPU is given out")
    equal(len(set(given())), 3 * GPUS)
    wait_for(lambda: len(gpu_leases()) == 3 * GPUS, "every GPU that is given out has its lease")
    delete(*names[:GPUS * 2])
    rest = names[GPUS * 2:]
    wait_for(lambda: len(given()) == 2 * GPUS, "the others are bound")
    equal(len(set(given())), 2 * GPUS)
    delete(*rest)
    no_leases()
    for one in others:
        one.program.stop()


def lead_of(name):
    return (cluster().find(f"{LEASES}/{name}") or {"spec": {}})["spec"].get("holderIdentity")


def of_scheduler(name, gpus, scheduler_name, annotations=None):
    return pod(name, gpus, annotations, schedulerName=scheduler_name)


@test
def schedulers_of_different_names_lead_side_by_side():
    scheduler()
    other = start_scheduler("other", "--scheduler-name", "team-b")
    check(scheduler().readiness()["leads"], "both lead")
    check(lead_of("gpu-scheduler") and lead_of("team-b"), "each has a Lease")
    check(lead_of("gpu-scheduler") != lead_of("team-b"), "not the same one leads")
    names = [f"side-{i}" for i in range(3 * GPUS)]
    create(*(of_scheduler(name, 1, ("gpu-scheduler", "team-b")[i % 2]) for i, name in enumerate(names)))
    for name in names:
        bound(name)
    equal(len(set(given())), 3 * GPUS, "different GPUs")
    wait_for(lambda: len(gpu_leases()) == 3 * GPUS, "every GPU that is given out has its lease")
    third = start_scheduler("third", "--scheduler-name", "team-b", ready=False)
    wait_for(lambda: third.readiness() == {"ready": True, "leads": False}, "of the same name one stands by")
    third.program.stop()
    delete(*names)
    no_leases()
    other.program.stop()


@test
def a_claim_hears_from_the_scheduler_of_its_pods_alone():
    scheduler()
    other = start_scheduler("other", "--scheduler-name", "team-b")
    cluster().request("POST", CLAIMS, {
        "apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim", "metadata": {"name": "theirs"},
        "spec": {"devices": {"count": 1, "exclusivity": "Exclusive"}}})
    create(of_scheduler("user", 0, "team-b", {"gpu.scheduling/claim": "theirs"}))
    bound("user")
    before = cluster().wait_until(f"{CLAIMS}/theirs", lambda one: one.get("status", {}).get("phase") == "Bound",
                                  "the claim is bound")
    time.sleep(3)  # so long nobody contradicts
    equal(cluster().get(f"{CLAIMS}/theirs")["metadata"]["resourceVersion"],
          before["metadata"]["resourceVersion"])
    delete("user")
    cluster().wait_until(f"{CLAIMS}/theirs", lambda one: one["status"]["phase"] == "Pending",
                         "the claim is free again")
    cluster().request("DELETE", f"{CLAIMS}/theirs")
    no_leases()
    other.program.stop()


@test
def schedulers_of_different_names_that_are_told_one_lease_share_the_lead():
    scheduler()
    flags = ("--scheduler-name", "team-b", "--leader-elect-lease", "gpu-scheduler")
    other = start_scheduler("other", *flags, ready=False)
    wait_for(lambda: other.readiness() == {"ready": True, "leads": False}, "it stands by")
    other.program.stop()


@test
def a_lease_that_looks_like_that_of_a_gpu_is_refused():
    done = subprocess.run([BINARY, "kube", "--leader-elect-lease", "gpu-node-0-1"], capture_output=True,
                          text=True, timeout=30)
    check(done.returncode != 0 and "the lease of a GPU" in done.stderr, done)


if __name__ == "__main__":
    sys.exit(main())
