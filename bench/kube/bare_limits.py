#!/usr/bin/env python3
"""Measures the bare limits of a control plane on this machine: Bindings, and leases with Bindings.

    bare_limits.py [--nodes 1000] [--pods 5000] [--rounds 2]

Starts one (etcd with fsync, simulated nodes with 8 GPUs), runs bench/kube/bare_limits against it,
and prints a table; the rows go to the file that BENCH_JSON names (default build/bench/kube-bare.json).
"""

import argparse
import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/kube"), str(ROOT / "scripts")]
import kube_toolchain  # noqa: E402
from control_plane import ControlPlane  # noqa: E402
from processes import wait_for  # noqa: E402


def measure(cluster, pods, leases):
    cluster.binaries["bare-limits"] = kube_toolchain.bench_programs()[0].path
    done = cluster.run("bare-limits", "--kubeconfig", cluster.kubeconfig, "--pods", pods,
                       *(["--leases"] if leases else []), timeout=1800)
    # The next measurement starts when the pods of this one are gone.
    wait_for(lambda: not [one for one in cluster.get("/api/v1/namespaces")["items"]
                          if one["metadata"]["name"].startswith("bare-limits-")],
             "the namespace is gone", 900, 0.5)
    return json.loads(done.out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=2)
    asked = parser.parse_args()
    kube_toolchain.ensure(only=["bare-limits"])
    rows = []
    with ControlPlane(nodes=asked.nodes, fsync=True) as cluster:
        for number in range(asked.rounds):
            for leases in (False, True):
                row = {"round": number, **measure(cluster, asked.pods, leases)}
                rows.append(row)
                created, bound = row["pods_created"], row["pods_bound"]
                print(f"{row['what']:22} {bound['per_second']:7.0f}/s  p50 {bound['p50_ms']:6.1f} ms  "
                      f"p99 {bound['p99_ms']:6.1f} ms  (pods created: {created['per_second']:.0f}/s)",
                      flush=True)
    out = pathlib.Path(os.environ.get("BENCH_JSON") or ROOT / "build/bench/kube-bare.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"nodes": asked.nodes, "pods": asked.pods, "rows": rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
