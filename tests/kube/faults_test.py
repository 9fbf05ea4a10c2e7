#!/usr/bin/env python3
"""Bad moments of `gpu-scheduler kube` on a real control plane: killed at every single write, killed
beside one that stands by, the API server restarted, watches cut, history compacted, the clock jumping.
After each: no GPU twice, no lease without its pod, no pod stuck."""

import base64
import datetime
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
from cutting_proxy import CuttingProxy  # noqa: E402
from scheduled import (LEASES, allocations, bound, cluster, create, delete,  # noqa: E402
                       holders_by_lease, no_leases, pod, scheduler, start_scheduler)
from service import check, equal, main, test, wait_for  # noqa: E402
from volumes import storage_class, volume, volume_claim  # noqa: E402

CLAIMS = "/apis/gpu.scheduling/v1/namespaces/default/gpuclaims"
GANG = {"gpu.scheduling/gang": "ring", "gpu.scheduling/gang-size": "2"}
NAMES = ["one", "two", "ring-0", "ring-1"]
NOT_ELECTED = "--no-leader-elect"  # who was killed holds the lead for seconds
MOST_WRITES = 60
_proxy = []


def proxy():
    if not _proxy:
        _proxy.append(CuttingProxy(cluster()))
    return _proxy[0]


def create_all():
    create(pod("one", 1), pod("two", 2), pod("ring-0", 2, GANG), pod("ring-1", 2, GANG))


def consistent():
    """Every GPU once; every pod that has GPUs has their leases, and nobody else has any."""
    given = allocations()
    all_gpus = [gpu for gpus in given.values() for gpu in gpus]
    equal(len(all_gpus), len(set(all_gpus)), "GPUs given out and different GPUs")
    held = holders_by_lease()
    for uid, gpus in given.items():
        for node, gpu in gpus:
            equal(held.get(f"gpu-{node}-{gpu}"), [uid], f"holders of {node}:{gpu}")
    return len(all_gpus), len(held)


def all_settle(names=NAMES, gpus=7):
    for name in names:
        bound(name)
    wait_for(lambda: consistent() == (gpus, gpus), "every lease is that of a pod")


def each_gpu_once():
    gpus = [gpu for held in allocations().values() for gpu in held]
    equal(len(gpus), len(set(gpus)), "GPUs given out and different GPUs, after the kill")


def killed_at(number, when, names, create_them, holds, settle):
    """False where the scheduler has finished without that many writes."""
    one = start_scheduler("doomed", NOT_ELECTED, kubeconfig=proxy().kubeconfig)
    proxy().strike_at(number, when, one.program.kill)
    create_them()
    # Writes travel side by side: all may be done while the one of that number is on its way still.
    wait_for(lambda: not one.program.is_running() or (len(allocations()) == len(names)
                                                      and len(proxy().writes) < number),
             "killed, or done", pause=0.02)
    struck = not one.program.is_running()
    holds()
    one.program.kill()
    heir = start_scheduler("heir", NOT_ELECTED)
    settle()
    delete(*names)
    no_leases()
    heir.program.stop()
    return struck


def killed_at_every_write(least, names, create_them, holds, settle, moments=("before", "after")):
    for when in moments:
        number = 1
        while killed_at(number, when, names, create_them, holds, settle):
            check(number < MOST_WRITES, "the scheduler writes without end")
            number += 1
        check(number > least, f"it wrote only {number - 1} times: leases and bindings are more")
        print(f"      killed {when} each of {number - 1} writes", flush=True)


@test
def a_kill_before_or_after_any_write_loses_nothing():
    killed_at_every_write(7, NAMES, create_all, each_gpu_once, all_settle)


SHARING = ["left", "right"]


@test
def a_kill_at_any_write_of_pods_that_share_a_gpu_loses_nothing():
    for name in SHARING:
        cluster().request("POST", CLAIMS, {
            "apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim", "metadata": {"name": name},
            "spec": {"devices": {"count": 1, "exclusivity": "Shared"}}})

    def create_sharing():
        create(*(pod(name, 0, {"gpu.scheduling/claim": name}) for name in SHARING))

    def one_gpu_is_enough():
        check(len({gpu for held in allocations().values() for gpu in held}) <= 1, "they share one GPU")

    def settle():
        uids = {bound(name)["metadata"]["uid"] for name in SHARING}
        one_gpu_is_enough()
        wait_for(lambda: [set(one) for one in holders_by_lease().values()] == [uids],
                 "both have the lease, and there is no other")

    # A pod waits 10 s for whoever may be about to bind it by the lease that it finds: a long round.
    killed_at_every_write(3, SHARING, create_sharing, one_gpu_is_enough, settle, moments=("after",))
    for name in SHARING:
        cluster().request("DELETE", f"{CLAIMS}/{name}")


@test
def a_kill_at_any_write_of_a_pod_that_chooses_its_volume_loses_nothing():
    storage_class("faulty")
    rounds = []

    def create_storing():
        """The volume of the last round keeps the claim that it was for."""
        rounds.append(f"round-{len(rounds)}")
        volume(rounds[-1], "node-1", "faulty")
        volume_claim(rounds[-1], "faulty")
        create(pod("storing", 1, volumes=[
            {"name": "data", "persistentVolumeClaim": {"claimName": rounds[-1]}}]))

    def settle():
        equal(bound("storing")["spec"]["nodeName"], "node-1")
        chosen = cluster().get(f"/api/v1/persistentvolumes/{rounds[-1]}")
        equal(chosen["spec"]["claimRef"]["name"], rounds[-1])
        wait_for(lambda: consistent() == (1, 1), "the lease is that of the pod")

    killed_at_every_write(2, ["storing"], create_storing, each_gpu_once, settle)


def start_standby(**where):
    one = start_scheduler("standby", ready=False, **where)
    wait_for(lambda: one.readiness() == {"ready": True, "leads": False}, "it has listed and stands by")
    return one


@test
def a_standby_follows_and_writes_nothing():
    leader = start_scheduler("leader")
    proxy().strike_at(0, "never", None)
    standby = start_standby(kubeconfig=proxy().kubeconfig)
    create_all()
    all_settle()
    delete(*NAMES)
    no_leases()
    equal(proxy().writes, [], "what the one that stands by wrote")
    check("topology_" not in standby.page("/metrics"), "it counts what another one decides")
    leader.program.stop()  # in order: the lead is free at once
    wait_for(lambda: standby.readiness().get("leads"), "the other one leads")
    create_all()
    all_settle()
    delete(*NAMES)
    no_leases()
    standby.program.stop()


@test
def a_standby_takes_over_what_was_half_done():
    for number in (2, 5, 8):  # leases, and Bindings of a gang
        leader = start_scheduler("leader", kubeconfig=proxy().kubeconfig)
        standby = start_standby()
        proxy().strike_at(number, "after", leader.program.kill)
        create_all()
        wait_for(lambda: not leader.program.is_running(), "the leader is killed", pause=0.02)
        begin = time.monotonic()
        wait_for(lambda: standby.readiness().get("leads"), "the other one leads", pause=0.02)
        leads = time.monotonic() - begin
        all_settle()
        print(f"      killed after write {number}: led after {leads:.1f} s, all bound after "
              f"{time.monotonic() - begin:.1f} s", flush=True)
        delete(*NAMES)
        no_leases()
        standby.program.stop()


@test
def watches_that_are_cut_go_on():
    one = start_scheduler("cut", NOT_ELECTED, kubeconfig=proxy().kubeconfig)
    proxy().strike_at(0, "never", None)
    for _ in range(3):
        wait_for(lambda: len(proxy().streams) > 3, "everything is followed")
        proxy().cut_streams()
        create_all()
        all_settle()
        proxy().cut_streams()
        delete(*NAMES)
        no_leases()
    one.program.stop()


@test
def a_partition_is_waited_out():
    one = start_scheduler("apart", NOT_ELECTED, kubeconfig=proxy().kubeconfig)
    proxy().open = False
    proxy().cut_streams()
    create_all()
    heir = start_scheduler("heir", NOT_ELECTED)
    all_settle()
    proxy().open = True
    delete(*NAMES)
    no_leases()
    heir.program.stop()
    create_all()
    all_settle()
    delete(*NAMES)
    no_leases()
    one.program.stop()


@test
def the_api_server_may_restart():
    scheduler()
    create(pod("one", 1))
    bound("one")
    cluster().restart_apiserver(crash=True)
    create(pod("two", 2), pod("ring-0", 2, GANG), pod("ring-1", 2, GANG))
    all_settle()
    delete(*NAMES)
    no_leases()


def compact():
    """Forgets all history of etcd, as it does by itself every five minutes."""
    def ask(path, body):
        request = urllib.request.Request(f"http://127.0.0.1:{cluster().etcd_port}{path}",
                                         json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    key = base64.b64encode(b"/registry/none").decode()
    revision = ask("/v3/kv/range", {"key": key})["header"]["revision"]
    ask("/v3/kv/compaction", {"revision": revision, "physical": True})


@test
def history_that_is_gone_is_listed_anew():
    one = start_scheduler("late", NOT_ELECTED, kubeconfig=proxy().kubeconfig)
    proxy().open = False
    proxy().cut_streams()
    create_all()
    delete("one")
    create(pod("one", 1))
    compact()
    cluster().restart_apiserver(crash=True)  # its own memory of the past goes, too
    proxy().open = True
    all_settle()
    delete(*NAMES)
    no_leases()
    one.program.stop()


CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec* out) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int code = real(id, out);
  if (id != CLOCK_REALTIME) return code;
  FILE* file = fopen(getenv("CLOCK_SHIFT"), "r");
  long shift = 0;
  if (file) {
    if (fscanf(file, "%ld", &shift) != 1) shift = 0;
    fclose(file);
  }
  out->tv_sec += shift;
  return code;
}
"""


def hours_ahead():
    """Of the clock by which the lead was renewed."""
    lead = cluster().get(f"{LEASES}/gpu-scheduler")["spec"]["renewTime"]
    renewed = datetime.datetime.fromisoformat(lead.replace("Z", "+00:00"))
    return (renewed - datetime.datetime.now(datetime.timezone.utc)).total_seconds() / 3600


@test
def the_clock_may_jump():
    folder = cluster().folder
    (folder / "clock.c").write_text(CLOCK)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", folder / "clock.so", folder / "clock.c",
                    "-ldl"], check=True)
    shift = folder / "shift"
    shift.write_text("0")
    scheduler().program.stop()
    one = start_scheduler("jumping", environment={
        **os.environ, "LD_PRELOAD": str(folder / "clock.so"), "CLOCK_SHIFT": str(shift),
        "ASAN_OPTIONS": "verify_asan_link_order=0"})
    for hours in (24, -24, 0):
        fresh = folder / "shift.new"
        fresh.write_text(str(3600 * hours))
        fresh.rename(shift)
        wait_for(lambda: abs(hours_ahead() - hours) < 1, "the lead is renewed by that clock")
        create_all()
        all_settle()
        delete(*NAMES)
        no_leases()
    one.program.stop()


if __name__ == "__main__":
    sys.exit(main())
