#!/usr/bin/env python3
"""Measures how fast pods are bound on a real control plane: ours, the stock kube-scheduler, and the
bare limits, in one run.

    bound_rate.py [--nodes 1000] [--pods 5000] [--only WORD]

Each measurement gets a control plane of its own (etcd with fsync, simulated nodes with 8 GPUs).
Prints a table; the rows go to the file that BENCH_JSON names (default build/bench/kube.json).
"""

import argparse
import json
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/kube"), str(ROOT / "scripts"), str(ROOT / "bench/kube")]
import contenders  # noqa: E402
import kube_toolchain  # noqa: E402
from bound_pods import BoundPods  # noqa: E402
from control_plane import ControlPlane  # noqa: E402
from processes import wait_for  # noqa: E402

GANG_ASK = 10  # pods of 8 GPUs that a cluster without room is asked for


class Report:
    """Rows in the form of every benchmark here."""

    def __init__(self):
        self.rows = []

    def add(self, name, unit, ours, anchor=0.0, anchor_name="", lower_is_better=False):
        ratio = 0.0
        if anchor > 0 and ours > 0:
            ratio = anchor / ours if lower_is_better else ours / anchor
        self.rows.append({"name": name, "unit": unit, "ours": ours, "anchor": anchor or None,
                          "anchor_name": anchor_name, "ratio": ratio or None})
        beside = f"{anchor:10.2f}  {anchor_name:34} {ratio:6.2f}x" if anchor > 0 else ""
        print(f"{name:58} {ours:10.2f} {unit:7} {beside}", flush=True)

    def write(self):
        out = pathlib.Path(os.environ.get("BENCH_JSON") or ROOT / "build/bench/kube.json")
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps({"rows": self.rows}, indent=1))


class Measured:
    def __init__(self, rate, whole_s, cpu_s, peak_mib):
        self.rate, self.whole_s, self.cpu_s, self.peak_mib = rate, whole_s, cpu_s, peak_mib


class Bench:
    def __init__(self, nodes, pods, only):
        self.nodes, self.pods, self.only = nodes, pods, only
        self.limits = {}
        self.report = Report()

    def wants(self, word):
        return not self.only or any(one in word for one in self.only)

    def cluster(self):
        cluster = ControlPlane(nodes=self.nodes, fsync=True, crds=True)
        cluster.binaries["bare-limits"] = kube_toolchain.bench_programs()[0].path
        return cluster

    def create(self, cluster, contender, pods, gpus=1, gang_size=0, prefix="p"):
        done = cluster.run("bare-limits", "--kubeconfig", cluster.kubeconfig, "--for",
                           contender.pods_of, "--pods", pods, "--gpus", gpus, "--gang-size",
                           gang_size, "--prefix", prefix, timeout=1800)
        return json.loads(done.out)["pods_created"]["per_second"]

    # The pods are there before the scheduler is (backlog), or come while it runs.
    def bound(self, make, pods, gpus=1, gang_size=0, backlog=True):
        with self.cluster() as cluster:
            contender = make(cluster)
            if backlog:
                self.create(cluster, contender, pods, gpus, gang_size)
                time.sleep(2)  # the machine has settled
            seen = BoundPods(cluster)
            begin = time.monotonic()
            contender.start()
            if not backlog:
                time.sleep(8)  # it has seen the nodes
                begin = time.monotonic()
                self.create(cluster, contender, pods, gpus, gang_size)
            created = time.monotonic()
            last = seen.wait(pods)
            # From the very start: who takes all leases first must not gain by it.
            measured = Measured(pods / (last - begin), last - (begin if backlog else created),
                                contender.cpu_s(), contender.peak_mib())
            contender.stop()
            return measured

    def limit(self, leases):
        """Measured once."""
        if leases not in self.limits:
            with self.cluster() as cluster:
                done = cluster.run("bare-limits", "--kubeconfig", cluster.kubeconfig, "--pods",
                                   self.pods, *(["--leases"] if leases else []), timeout=1800)
            self.limits[leases] = json.loads(done.out)["pods_bound"]["per_second"]
            self.report.add(f"bare limit: {'lease and Binding' if leases else 'Bindings only'}",
                            "pods/s", self.limits[leases])
        return self.limits[leases]

    # ------------------------------------------------------------ what is measured

    def one_gpu_backlog(self):
        self.one_gpu("backlog", True, "start to last bound")

    def one_gpu_created(self):
        self.one_gpu("while created", False, "last created to last bound")

    def one_gpu(self, words, backlog, whole):
        what = f"{self.pods} one-GPU pods, {words}"
        bare, bare_leases = self.limit(False), self.limit(True)
        stock = self.bound(contenders.stock, self.pods, backlog=backlog)
        off = self.bound(lambda c: contenders.ours(c, leases=False), self.pods, backlog=backlog)
        on = self.bound(contenders.ours, self.pods, backlog=backlog)
        add = self.report.add
        add(f"{what}, leases off", "pods/s", off.rate, bare, "Bindings only")
        add(f"{what}, leases on", "pods/s", on.rate, bare_leases, "lease and Binding")
        for name, one in (("leases off", off), ("leases on", on)):
            add(f"{what}, {name}", "pods/s", one.rate, stock.rate, "kube-scheduler")
            add(f"{what}, {name}: CPU", "s", one.cpu_s, stock.cpu_s, "kube-scheduler", True)
            add(f"{what}, {name}: memory", "MiB", one.peak_mib, stock.peak_mib, "kube-scheduler",
                True)
            add(f"{what}, {name}: {whole}", "s", one.whole_s, stock.whole_s, "kube-scheduler", True)

    def eight_gpus(self):
        count = self.nodes // 2
        ours = self.bound(contenders.ours, count, gpus=8)
        stock = self.bound(contenders.stock, count, gpus=8)
        self.report.add(f"{count} eight-GPU pods, backlog, leases on", "pods/s", ours.rate,
                        stock.rate, "kube-scheduler")
        self.report.add(f"{count} eight-GPU pods: CPU", "s", ours.cpu_s, stock.cpu_s,
                        "kube-scheduler", True)

    def gangs(self):
        count = min(40, self.nodes // 8)  # what there is room for
        many = self.bound(contenders.ours, count * 64, gang_size=64, backlog=False)
        self.report.add(f"{count} gangs of 64: last created to last bound", "s", many.whole_s,
                        30 if count == 40 else 0, "Volcano, 2-core machine", True)
        one = self.bound(contenders.ours, 512, gang_size=512, backlog=False)
        self.report.add("one gang of 512: last created to last bound", "s", one.whole_s, 5,
                        "Volcano, 2-core machine", True)

    def restart(self):
        ours, stock = self.restarted(contenders.ours), self.restarted(contenders.stock)
        what = f"restart with {self.pods} bound pods: start to next one bound"
        self.report.add(what, "s", ours.whole_s, stock.whole_s, "kube-scheduler", True)
        self.report.add(f"{what}: CPU", "s", ours.cpu_s, stock.cpu_s, "kube-scheduler", True)

    def restarted(self, make):
        """A pod comes while the scheduler is away, and is bound when it knows all others again."""
        with self.cluster() as cluster:
            contender = make(cluster)
            self.create(cluster, contender, self.pods)
            seen = BoundPods(cluster)
            contender.start()
            seen.wait(self.pods)
            time.sleep(2)  # nothing is under way
            contender.stop()
            self.create(cluster, contender, 1, prefix="late")
            begin = time.monotonic()
            contender.start()
            took = seen.wait(self.pods + 1) - begin
            measured = Measured(1 / took, took, contender.cpu_s(), contender.peak_mib())
            contender.stop()
            return measured

    def take_over(self):
        ours = self.taken_over(contenders.ours)
        stock = self.taken_over(lambda c, name: contenders.stock(c, elects=True, name=name))
        self.report.add(f"leader killed with {self.pods} bound pods: until the next one is bound", "s",
                        ours, stock, "kube-scheduler, as it comes", True)

    def taken_over(self, make):
        """The leader is killed, a pod comes, and one that stood by binds it."""
        with self.cluster() as cluster:
            first, second = make(cluster, name="first"), make(cluster, name="second")
            self.create(cluster, first, self.pods)
            seen = BoundPods(cluster)
            first.start()
            seen.wait(self.pods)
            second.start()
            time.sleep(5)  # it knows everything, and nothing is under way
            begin = time.monotonic()
            first.kill()
            self.create(cluster, first, 1, prefix="late")
            took = seen.wait(self.pods + 1) - begin
            second.stop()
            return took

    def full(self):
        self.told("full cluster: a 10 x 8 gang is told why it waits", 8, 0.1, "KAI, 2-core machine")
        message = self.told("7 of 8 GPUs busy everywhere: a 10 x 8 gang is told what would move", 1)
        if f"{GANG_ASK * 7} running tasks" not in message:
            raise AssertionError(f"not told what would have to move: {message}")

    def told(self, what, gpus, anchor=0, anchor_name=""):
        """A gang comes to a cluster that pods of so many GPUs fill, but for one on each node where
        each has one."""
        with self.cluster() as cluster:
            contender = contenders.ours(cluster)
            running = self.nodes * 8 // gpus
            self.create(cluster, contender, running, gpus=gpus, prefix="busy")
            seen = BoundPods(cluster)
            contender.start()
            seen.wait(running)
            if gpus == 1:
                running -= self.remove_one_from_each_node(cluster)
            time.sleep(2)
            self.create(cluster, contender, GANG_ASK, gpus=8, gang_size=GANG_ASK, prefix="late")
            begin = time.monotonic()
            message = self.reason(cluster)
            self.report.add(what, "s", time.monotonic() - begin, anchor, anchor_name, True)
            before = contender.cpu_s()
            time.sleep(10)
            self.report.add(f"{what}: CPU in 10 s after", "s", contender.cpu_s() - before)
            left = len(self.bound_pods(cluster))
            if left != running:
                raise AssertionError(f"{running - left} running pods were removed")
            print(f"    {message}\n    {left} of {running} pods still run", flush=True)
            contender.stop()
            return message

    def bound_pods(self, cluster):
        """Pod to node."""
        pods = cluster.get("/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName%21%3D")
        return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods["items"]}

    def remove_one_from_each_node(self, cluster):
        one_of = {node: pod for pod, node in self.bound_pods(cluster).items()}
        for pod in one_of.values():
            cluster.request("DELETE",
                            f"/api/v1/namespaces/default/pods/{pod}?gracePeriodSeconds=0")
        return len(one_of)

    def reason(self, cluster):
        """Of the last of the gang's pods that is told."""
        def told(name):
            pod = cluster.get(f"/api/v1/namespaces/default/pods/{name}")
            for one in pod.get("status", {}).get("conditions", []):
                if one["type"] == "PodScheduled" and "has room for" in one.get("message", ""):
                    return one["message"]
            return None
        for index in range(GANG_ASK):
            wait_for(lambda: told(f"late-{index}"), f"late-{index} is told", 60, 0.005)
        return told("late-0")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--only", action="append", default=[],
                        help="one_gpu (or one_gpu_backlog, one_gpu_created), eight_gpus, gangs, "
                             "restart, take_over or full; may be given several times")
    asked = parser.parse_args()
    kube_toolchain.ensure(only=["bare-limits", "kube-scheduler"])
    bench = Bench(asked.nodes, asked.pods, asked.only)
    for name in ("one_gpu_backlog", "one_gpu_created", "eight_gpus", "gangs", "restart", "take_over",
                 "full"):
        if bench.wants(name):
            getattr(bench, name)()
    bench.report.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
