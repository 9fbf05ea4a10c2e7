#!/usr/bin/env python3
"""The custom resources on a real control plane: what is right is accepted, what is wrong is refused
with a reason; kubectl explain and kubectl get say what a user needs."""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
from control_plane import ControlPlane
from gpu_nodes import gpu_node_status
from service import check, equal, main, test

_shared = {}


def cluster():
    if "cluster" not in _shared:
        _shared["cluster"] = ControlPlane(crds=True, kwok=False).start()
    return _shared["cluster"]


def claim(name="a", **spec):
    return {"apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim",
            "metadata": {"name": name}, "spec": spec}


def devices(**fields):
    return claim(devices={"count": 1, **fields})


def node_status(name="n", node="n", **status):
    return {"apiVersion": "gpu.scheduling/v1", "kind": "GpuNodeStatus", "metadata": {"name": name},
            "spec": {"nodeName": node}, "status": status}


def tenant(**spec):
    return {"apiVersion": "gpu.scheduling/v1", "kind": "GpuTenant", "metadata": {"name": "team"},
            "spec": spec}


def config(**spec):
    return {"apiVersion": "topology.scheduler/v1alpha1", "kind": "SchedulerConfig",
            "metadata": {"name": "c"}, "spec": spec}


def try_it(body, check_it=False):
    return cluster().kubectl("create", "--dry-run=server", "-o", "json", "-f", "-",
                             stdin=json.dumps(body), check=check_it)


def accepted(body):
    return try_it(body, check_it=True).json()


def refused(body, *words):
    answer = try_it(body)
    check(answer.code != 0, f"was accepted: {json.dumps(body['spec'])}")
    for word in words:
        check(word in answer.err, f"{json.dumps(body['spec'])}: the answer lacks {word!r}: {answer.err}")


# ---------------------------------------------------------------- served as promised


@test
def names_and_scopes():
    listed = cluster().kubectl("api-resources", "--no-headers").out.splitlines()
    rows = {" ".join(line.split()) for line in listed}
    for row in ("gpuclaims gclaim gpu.scheduling/v1 true GpuClaim",
                "gpunodestatuses gns gpu.scheduling/v1 false GpuNodeStatus",
                "gputenants gtenant gpu.scheduling/v1 false GpuTenant",
                "schedulerconfigs schedcfg topology.scheduler/v1alpha1 false SchedulerConfig",
                "topologyschedulerconfigs tschedcfg topology.scheduler/v1alpha1 false "
                "TopologySchedulerConfig"):
        check(row in rows, row, "is not among", rows)


@test
def schemas_keep_everything_that_they_allow():
    """The API server drops nothing silently and reports no violation of structural schemas."""
    for crd in cluster().get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]:
        bad = [one for one in crd["status"]["conditions"]
               if one["type"] == "NonStructuralSchema" and one["status"] == "True"]
        equal(bad, [], crd["metadata"]["name"])


@test
def every_field_is_described():
    def walk(schema, path):
        for name, one in schema.get("properties", {}).items():
            if path or name != "metadata":
                check(one.get("description"), f"{path}.{name} has no description")
            walk(one, f"{path}.{name}")
            walk(one.get("items", {}), f"{path}.{name}[]")
    for crd in cluster().get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]:
        walk(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "")


# ---------------------------------------------------------------- accepted and refused


@test
def claims_with_defaults():
    equal(accepted(devices())["spec"]["devices"]["exclusivity"], "Exclusive")
    full = claim(devices={"count": 2, "exclusivity": "Shared", "shareMilli": 250, "memoryMiB": 8192},
                 selector={"matchLabels": {"gpu-type": "a100"}}, topology={"minBandwidthGBps": 600},
                 fabric={"rdma": "Required", "minNetworkGbps": 400}, gangRef="training-job-123")
    spec = accepted(full)["spec"]
    equal(spec["topology"]["mode"], "Preferred")
    equal(spec["fabric"], {"rdma": "Required", "cufile": "Ignore", "minNetworkGbps": 400})
    sliced = accepted(claim(devices={"count": 3, "exclusivity": "MIG", "migProfiles": [
        {"profile": "1g.10gb", "count": 2}, {"profile": "3g.40gb"}]}))
    accepted(devices(count=2, exclusivity="MIG", migProfile="nvidia.com/mig-1g.10gb"))
    accepted(devices(models=["H100-SXM5-80GB"], minMemoryMiB=40000))
    equal(sliced["spec"]["devices"]["migProfiles"][1], {"profile": "3g.40gb", "count": 1})


@test
def wrong_claims():
    refused(claim(), "spec.devices", "Required value")
    refused(claim(devices={}), "spec.devices.count", "Required value")
    refused(devices(count=0), "spec.devices.count", "greater than or equal to 1")
    refused(devices(count="two"), "spec.devices.count", "integer")
    refused(devices(policy="packed"), "spec.devices.policy", '"contiguous", "spread", "preferIds"')
    refused(devices(exclusivity="exclusive"), "spec.devices.exclusivity",
            '"Exclusive", "Shared", "MIG"')
    refused(devices(policy="preferIds"), "spec.devices.preferIds",
            "policy preferIds needs preferIds")
    refused(devices(preferIds=[1]), "preferIds is used with policy: preferIds only")
    refused(devices(policy="preferIds", preferIds=[1, 1]), "Duplicate value")
    refused(devices(policy="preferIds", preferIds=[-1]), "greater than or equal to 0")
    refused(devices(shareMilli=500), "set exclusivity: Shared or leave shareMilli out")
    refused(devices(memoryMiB=500), "set exclusivity: Shared or leave memoryMiB out")
    refused(devices(exclusivity="Shared", shareMilli=1001), "less than or equal to 1000")
    refused(devices(exclusivity="MIG"), "exclusivity MIG needs migProfile")
    refused(devices(exclusivity="MIG", migProfile="1g.10gb", policy="spread"), "leave it out with exclusivity: MIG")
    refused(claim(devices={"count": 1, "exclusivity": "MIG", "migProfile": "1g.10gb"}, topology={"mode": "Required"}),
            "nothing connects MIG instances")
    refused(devices(migProfile="1g.10gb"), "set exclusivity: MIG or leave them out")
    refused(devices(exclusivity="MIG", migProfiles=[{"profile": "big"}]), "migProfiles[0].profile")
    refused(devices(exclusivity="MIG", migProfile="1g.10gb",
                    migProfiles=[{"profile": "1g.10gb"}]), "and not both")
    refused(devices(count=2, exclusivity="MIG", migProfiles=[{"profile": "1g.10gb"}]),
            "count must be the sum of migProfiles[].count")
    refused(claim(devices={"count": 1}, selector={"matchExpressions": [
        {"key": "a", "operator": "In"}]}), "In, NotIn, Gt and Lt need values")
    refused(claim(devices={"count": 1}, topology={"mode": "Strict"}), "spec.topology.mode",
            '"Required", "Preferred", "Ignore"')
    refused(claim(devices={"count": 1}, topology={"minBandwidthGBps": -1}),
            "spec.topology.minBandwidthGBps")
    refused(claim(devices={"count": 1}, fabric={"rdma": "yes"}), "spec.fabric.rdma",
            '"Required", "Preferred", "Ignore"')
    refused(claim(devices={"count": 1}, gangRef="Not A Name"), "spec.gangRef")
    refused(claim(devices={"count": 1, "gpus": 1}), 'unknown field "spec.devices.gpus"')


@test
def wrong_node_statuses():
    accepted(node_status())
    refused(node_status(node="other"), "must both be the name of the node")
    refused(node_status(node=""), "spec.nodeName")
    path = "/apis/gpu.scheduling/v1/gpunodestatuses"
    cluster().request("POST", path, node_status("wrong", "wrong"))
    for status, words in ((dict(total=-1), "status.total"),
                          (dict(devices=[{"id": 0}, {"id": 0}]), "Duplicate value"),
                          (dict(devices=[{"id": 0, "health": "Good"}]), "Unsupported value"),
                          (dict(devices=[{"health": "Healthy"}]), "id: Required value")):
        try:
            cluster().patch(f"{path}/wrong/status", {"status": status})
        except Exception as answer:
            check(words in str(answer), words, answer)
        else:
            raise AssertionError(f"was accepted: {status}")


@test
def tenants():
    made = accepted(tenant(namespaces=["a", "b"], guaranteedGPUs=8, maxGPUs=16, maxCPU="64",
                           maxMemory="1Ti", maxGPUsByModel={"A100": 4}, maxQueuedJobs=100))
    equal(made["spec"]["tier"], "medium")
    equal(made["spec"]["allowPreemption"], True)
    refused(tenant(guaranteedGPUs=8, maxGPUs=4), "guaranteedGPUs must not be more than maxGPUs")
    refused(tenant(parent="team"), "can't be its own parent")
    refused(tenant(tier="gold"), '"low", "medium", "high", "critical"')
    refused(tenant(maxCPU="many"), "spec.maxCPU")
    refused(tenant(namespaces=["a", "a"]), "Duplicate value")
    refused(tenant(weight=-1), "spec.weight")


@test
def configurations():
    equal(accepted(config(scoringWeights={"topologyAlignment": 1}))["spec"]["scoringWeights"],
          {"resourceAvailability": 0.4, "topologyAlignment": 1, "domainUtilization": 0.2,
           "historicalPerformance": 0.1})
    accepted(config(deviceNaming="uuid"))
    accepted(config(schedulerNames=["mine"], leases=False, topology={
        "levels": [{"name": "spine", "labels": ["net/spine"]},
                   {"name": "leaf", "labels": ["net/leaf", "net/rack"]}],
        "domains": [{"name": "spine-1"},
                    {"name": "leaf-1", "parent": "spine-1", "nodes": ["node-0"]}]}))
    refused(config(scoringWeights={"resourceAvailability": -1}), "greater than or equal to 0")
    refused(config(scoringWeights={"resourceAvailability": 0, "topologyAlignment": 0,
                                   "domainUtilization": 0, "historicalPerformance": 0}),
            "at least one weight must be more than 0")
    refused(config(topologyConstraints={"maxNodesPerLeaf": -1}), "maxNodesPerLeaf")
    refused(config(placementStrategy="dense"), '"consolidated", "distributed", "balanced"')
    refused(config(topology={"levels": [{"name": "node", "labels": ["a"]}]}),
            "the innermost level is always called node")
    refused(config(topology={"domains": [{"name": "a", "parent": "a"}]}),
            "can't be its own parent")
    refused(config(schedulerNames=[]), "spec.schedulerNames")
    refused(config(deviceNaming="name"), '"index", "uuid"')


@test
def a_status_is_written_apart_from_the_spec():
    path = "/apis/gpu.scheduling/v1/namespaces/default/gpuclaims"
    body = claim("with-status", devices={"count": 2, "policy": "contiguous"},
                 topology={"mode": "Required"})
    made = cluster().request("POST", path, {**body, "status": {"phase": "Bound"}})
    check("status" not in made, "only the scheduler writes a status:", made)
    status = {"phase": "Bound", "nodeName": "node-a", "gpuIds": [0, 1], "allocated": "node-a:0,1",
              "message": "Successfully allocated",
              "allocations": [{"pod": "p", "nodeName": "node-a", "gpuIds": [0, 1]}]}
    equal(cluster().patch(f"{path}/with-status/status", {"status": status})["status"], status)
    try:
        cluster().patch(f"{path}/with-status/status", {"status": {"phase": "Done"}})
    except Exception as answer:
        check('"Pending", "Reserved", "Bound", "Failed"' in str(answer).replace("\\", ""), answer)
    else:
        raise AssertionError("the phase Done was accepted")


# ---------------------------------------------------------------- what people read


@test
def columns():
    rows = cluster().kubectl("get", "gclaim", "with-status").out.splitlines()
    equal(rows[0].split(), ["NAME", "REQ", "POLICY", "TOPOLOGY", "PHASE", "ALLOCATED", "AGE"])
    equal(rows[1].split()[:6], ["with-status", "2", "contiguous", "Required", "Bound", "node-a:0,1"])
    wide = cluster().kubectl("get", "gclaim", "with-status", "-o", "wide").out
    check("Successfully allocated" in wide, wide)
    cluster().report_gpus([("node-a", gpu_node_status("node-a", 8, unhealthy=[5]))])
    rows = cluster().kubectl("get", "gns").out.splitlines()
    equal(rows[0].split(), ["NAME", "GPUS", "MODEL", "MEMORY", "FIRSTUNHEALTHY", "RDMA",
                            "HEARTBEAT", "AGE"])
    check(["node-a", "8", "H100-SXM5-80GB", "81559", "5", "8"] in [row.split()[:6] for row in rows],
          rows)
    equal(cluster().kubectl("get", "gtenant", "-A").code, 0)
    equal(cluster().kubectl("get", "gpu", "-A").code, 0, "the category gpu lists all of them")


@test
def explanations():
    for path, words in (("gclaim", ["gpu.scheduling/claim", "spec", "status"]),
                        ("gclaim.spec.devices.policy", ["contiguous", "preferIds", "adjacent"]),
                        ("gclaim.spec.devices.exclusivity", ["Exclusive", "recommended", "MIG"]),
                        ("gclaim.spec.topology", ["mode", "minBandwidthGBps", "NVLink"]),
                        ("gclaim.status.phase", ["Reserved", "message says"]),
                        ("gns.status.devices", ["island", "inUseBy", "health", "peers"]),
                        ("gtenant.spec", ["maxGPUsByModel", "guaranteedGPUs"]),
                        ("schedulerconfig.spec.scoringWeights", ["resourceAvailability"]),
                        ("tschedcfg.spec", ["topologyConstraints", "scoringWeights"])):
        told = " ".join(cluster().kubectl("explain", path).out.split())
        for word in words:
            check(word in told, f"kubectl explain {path} lacks {word!r}:\n{told}")


if __name__ == "__main__":
    sys.exit(main())
