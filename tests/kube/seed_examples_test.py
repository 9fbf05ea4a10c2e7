#!/usr/bin/env python3
"""Every manifest of the documents that the product's public names come from, applied as written to a
real control plane. Skipped where the documents are not there (SHARED names their folder)."""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
from control_plane import ControlPlane
from seed_examples import SHARED, apply_with_status, completed, documents, examples
from service import check, equal, main, test

OURS = ("gpu.scheduling/v1", "topology.scheduler/v1alpha1")
_shared = {}


def cluster():
    if "cluster" not in _shared:
        _shared["cluster"] = ControlPlane(crds=True, kwok=False).start()
        for namespace in ("gpu-scheduler", "ml-workloads"):
            _shared["cluster"].kubectl("create", "namespace", namespace)
    return _shared["cluster"]


@test
def our_resources_apply_as_written():
    found = [example for example in examples() if example.api_version in OURS]
    check(len(found) >= 8, f"only {len(found)} examples: is SHARED right?")
    for example in found:
        answer = cluster().apply(example.text, "--validate=strict")
        check(" created" in answer.out or " configured" in answer.out or "unchanged" in answer.out,
              example, answer)


@test
def workloads_apply_as_written():
    """Kubernetes itself refuses those that lack what it demands; it must be only that, and with
    that they are accepted."""
    demanded = ("restartPolicy", "image", "selector", "spec.template.metadata.labels",
                "spec.template.spec.containers")
    for example in [one for one in examples() if one.kind in ("Pod", "Job", "Deployment", "Lease")]:
        answer = cluster().apply(example.text, "--dry-run=server", check=False)
        print(f"      {example}: {'applied' if answer.code == 0 else 'refused by Kubernetes'}")
        if answer.code == 0:
            continue
        check(example.kind in ("Job", "Deployment"), example, answer)
        reasons = answer.err.split("is invalid:")[-1].strip()
        for line in reasons.splitlines():
            check(any(word in line for word in demanded), f"{example}: {line}")
        body = completed(cluster(), example)
        cluster().kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(body))


@test
def a_node_status_arrives_whole():
    example = next(one for one in examples() if one.kind == "GpuNodeStatus")
    apply_with_status(cluster(), example)
    status = cluster().get("/apis/gpu.scheduling/v1/gpunodestatuses/node-a")["status"]
    equal(status["total"], 8)
    equal([one["id"] for one in status["devices"]], list(range(8)))
    equal(status["devices"][0]["inUseBy"], ["pod-abc-123"])
    equal(status["devices"][7]["health"], "Unhealthy")
    equal(status["devices"][4]["island"], "nvlink-group-1")


if __name__ == "__main__":
    if len(documents()) < 4:
        print(f"skipped: {SHARED}/seeds lacks 000_*.txt ... 003_*.txt\n0 passed, 0 failed, 3 skipped")
        sys.exit(0)
    sys.exit(main())
