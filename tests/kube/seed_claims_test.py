#!/usr/bin/env python3
"""Every row about claims, devices, leases and status in the documents that the product's public names come
from, on a real control plane: claim, allocation, lease, environment, status, cleanup."""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
import scheduled  # noqa: E402
from gpu_nodes import MEMORY_MIB, gpu_node_status  # noqa: E402
from scheduled import LEASES, cluster, gpu_leases, no_leases, pod  # noqa: E402
from seed_examples import SHARED, apply_with_status, documents, examples  # noqa: E402
from seed_rows import (MAP, UNSEEN, add_node, apply_example, bound, claim, claim_in_phase,  # noqa: E402
                       claimed, claims_path, create, example, given, given_by_claim, holders, refusal,
                       remove, row, start, told, variables, waits)
from service import check, equal, main, skip_all, wait_for  # noqa: E402

scheduled.SIZE.update(nodes=0)
HOST = "kubernetes.io/hostname"
ON_A, ON_B, ON_MIG, ON_BARE = ({HOST: name} for name in ("node-a", "node-b", "node-mig", "node-bare"))
MIG_UUIDS = ["MIG-1a", "MIG-2b"]


def with_instances():
    """The first of three GPUs is cut in two, the last could be cut."""
    status = gpu_node_status("node-mig", 3)
    status["devices"][2] |= {"model": "NVIDIA H100 80GB HBM3", "memoryMiB": 81559,
                             "mig": {"enabled": True, "dynamic": True, "instances": []}}
    status["devices"][0]["mig"] = {"enabled": True, "instances": [
        {"profile": "3g.40gb", "start": start, "uuid": uuid}
        for start, uuid in zip((0, 4), MIG_UUIDS)]}
    return status


def prepare():
    """node-a is that of the reference; node-b is what its claims select, node-mig has instances, and
    node-bare has no agent."""
    add_node("node-a", 8)
    apply_with_status(cluster(), example("GpuNodeStatus", "node-a"))
    add_node("node-b", 4, {"gpu-type": "a100", "nvlink": "true"}, gpu_node_status("node-b", 4))
    add_node("node-mig", 3, status=with_instances())
    add_node("node-bare", 2)
    start()


def pinned(name, ids, node="node-a"):
    """A pod that takes these very devices."""
    return pod(f"{name}-0", 0, {MAP: f"0={node}:{ids}"})


# ---------------------------------------------------------------- quick start and examples


@row
def the_quick_start_from_claim_to_cleanup():
    space = "gpu-scheduler"
    apply_example("GpuClaim", "single-gpu", "000", space)
    apply_example("Pod", "gpu-test", "000")
    node, ids = given_by_claim("gpu-test", "single-gpu", space)
    equal(len(ids), 1)
    rows = cluster().kubectl("get", "gclaim", "-n", space).out.splitlines()
    equal(rows[1].split()[:5], ["single-gpu", "1", "Bound", f"{node}:{ids[0]}", rows[1].split()[-1]])
    nodes = cluster().kubectl("get", "gns", "-n", space, "-o", "wide").out
    check(all(name in nodes for name in ("node-a", "node-b", "node-mig")), nodes)
    cluster().end_pod("gpu-test", space)
    no_leases()
    claim_in_phase("Pending", "single-gpu", space)
    cluster().kubectl("delete", "pod/gpu-test", "gclaim/single-gpu", "-n", space)


@row
def the_examples_of_claims_are_given_what_they_say():
    apply_example("GpuClaim", "training-gpus", "003")
    create(claimed("train", "training-gpus", gpus=4), namespace="ml-workloads")
    equal(given_by_claim("train", "training-gpus", "ml-workloads"), ("node-b", [0, 1, 2, 3]))
    apply_example("GpuClaim", "training-gpus", "000")
    create(claimed("topology", "training-gpus"))
    equal(given_by_claim("topology", "training-gpus"), ("node-a", [0, 1, 2, 3]))
    apply_example("GpuClaim", "specific-gpus", "003")
    create(claimed("specific", "specific-gpus"))
    equal(len(given_by_claim("specific", "specific-gpus")[1]), 2)  # 2 and 3 may be taken
    remove("topology", "specific")
    create(claimed("again", "specific-gpus"))
    equal(given_by_claim("again", "specific-gpus")[1], [2, 3])
    remove("again")
    remove("train", namespace="ml-workloads")
    no_leases()


# ---------------------------------------------------------------- devices


@row
def contiguous_ids_are_adjacent():
    create(pinned("odd", "1,3,5"))
    bound("odd-0")
    claim("two", 2, ON_A, policy="contiguous")
    create(claimed("two"))
    waits("two", "adjacent")
    remove("odd-0")
    ids = given_by_claim("two")[1]
    equal(ids, [ids[0], ids[0] + 1])
    remove("two")


@row
def spread_takes_of_every_island():
    claim("apart", 2, ON_A, policy="spread")
    create(claimed("apart"))
    ids = given_by_claim("apart")[1]
    equal([gpu // 4 for gpu in ids], [0, 1], "islands")
    remove("apart")


@row
def preferred_ids_are_taken_or_others():
    claim("mine", 2, ON_A, policy="preferIds", preferIds=[4, 6])
    create(claimed("first", "mine"))
    equal(given("first"), ("node-a", [4, 6]))
    claim("theirs", 2, ON_A, policy="preferIds", preferIds=[4, 5])
    create(claimed("second", "theirs"))
    ids = given_by_claim("second", "theirs")[1]
    check(len(ids) == 2 and not {4, 6} & set(ids), ids)
    remove("first", "second")


@row
def an_exclusive_gpu_has_one_pod():
    for name in ("one", "other"):
        claim(f"{name}-only", 4, ON_B, exclusivity="Exclusive")
        create(claimed(name, f"{name}-only"))
        bound("one")
    equal(given_by_claim("one", "one-only"), ("node-b", [0, 1, 2, 3]))
    waits("other", "4 GPUs")
    claim_in_phase("Pending", "other-only", words="4 GPUs")
    remove("one")
    equal(given_by_claim("other", "other-only")[0], "node-b")
    remove("other")


@row
def a_shared_gpu_has_several_pods_in_its_lease():
    names = ["half", "third", "rest"]
    for name in names:
        claim(name, 1, ON_B, exclusivity="Shared")
        create(claimed(name))
    places = {name: given_by_claim(name) for name in names}
    equal(len({(node, ids[0]) for node, ids in places.values()}), 1, "GPUs that they share")
    node, (gpu,) = places["half"]
    lease = f"{LEASES}/gpu-{node}-{gpu}"
    equal(len(holders(cluster().get(lease))), 3)
    claim("whole", 4, ON_B)
    create(claimed("whole"))
    waits("whole", "4 GPUs")
    remove("half", "third")
    rest = bound("rest")["metadata"]["uid"]
    equal(holders(cluster().get(lease)), [rest])
    remove("rest")
    equal(len(given_by_claim("whole")[1]), 4)
    remove("whole")


@row
def parts_by_memory_share_a_gpu_until_none_is_left():
    """The engine takes as much of the compute; GPUs have 80 GiB."""
    names = ["most", "little"]
    for name, memory in zip(names, (60000, 20000)):
        claim(name, 1, ON_B, exclusivity="Shared", memoryMiB=memory)
        create(claimed(name))
    places = {name: given_by_claim(name) for name in names}
    equal(places["most"], places["little"], "the GPU that they share")
    node, (gpu,) = places["most"]
    lease = cluster().get(f"{LEASES}/gpu-{node}-{gpu}")
    taken = {one["uid"]: (one["milli"], one["memoryMiB"]) for one in
             json.loads(lease["metadata"]["annotations"]["gpu.scheduling/holders"])}
    uids = [bound(name)["metadata"]["uid"] for name in names]
    equal(taken, {uids[0]: (60000 * 1000 // MEMORY_MIB, 60000),
                  uids[1]: (20000 * 1000 // MEMORY_MIB, 20000)})
    claim("over", 1, ON_B, exclusivity="Shared", memoryMiB=2000)
    create(claimed("over"))
    check(given_by_claim("over")[1] != [gpu], "only another GPU has memory left")
    remove(*names, "over")


@row
def an_instance_is_given_by_its_profile():
    names = ["slice-a", "slice-b", "slice-c"]
    for name in names:
        claim(name, 1, ON_MIG, exclusivity="MIG", migProfile="3g.40gb")
    create(*(claimed(name) for name in names[:2]))
    seen = [variables(name).get("CUDA_VISIBLE_DEVICES") for name in names[:2]]
    equal(sorted(seen), MIG_UUIDS, "instances that the containers see")
    uids = {bound(name)["metadata"]["uid"] for name in names[:2]}
    equal(set(holders(cluster().get(f"{LEASES}/gpu-node-mig-0"))), uids)
    create(claimed(names[2]))
    waits(names[2], "3g.40gb")  # nobody would cut an instance where none is
    remove(names[0])
    equal(variables(names[2])["CUDA_VISIBLE_DEVICES"], seen[0])
    remove(*names[1:])
    claim("halved", 2, ON_MIG)
    create(claimed("halved"))
    waits("halved", "2 GPUs")  # those that are cut, or are to be, are not given as a whole
    remove("halved")


# ---------------------------------------------------------------- selector, topology, fabric


@row
def labels_select_nodes():
    claim("picky", 1, {"gpu-type": "h900"})
    create(claimed("picky"))
    waits("picky", "no node qualifies", "node affinity gpu-type=h900")
    cluster().patch("/api/v1/nodes/node-bare", {"metadata": {"labels": {"gpu-type": "h900"}}})
    equal(given_by_claim("picky")[0], "node-bare")
    remove("picky")


@row
def required_topology_waits_and_preferred_does_not():
    needs = {"mode": "Required", "minBandwidthGBps": 600}
    claim("fast", 4, ON_A, topology=needs)
    create(claimed("fast"))
    equal(given_by_claim("fast"), ("node-a", [0, 1, 2, 3]))
    claim("must", 2, ON_A, topology=needs)
    create(claimed("must"))
    waits("must", "600 GB/s")
    claim_in_phase("Pending", "must", words="600 GB/s")
    for mode, count in (("Preferred", 2), ("Ignore", 1)):
        claim(mode.lower(), count, ON_A, topology={"mode": mode, "minBandwidthGBps": 600})
        create(claimed(mode.lower()))
    equal(sorted(given_by_claim("preferred")[1] + given_by_claim("ignore")[1]), [4, 5, 6])
    remove("fast")
    check(set(given_by_claim("must")[1]) < {0, 1, 2, 3}, "an island of 600 GB/s")
    remove("must", "preferred", "ignore")


@row
def fabric_is_found_and_named_in_the_environment():
    claim("fabric", 2, fabric={"rdma": "Required", "cufile": "Required"})
    create(claimed("fabric"))
    node, ids = given_by_claim("fabric")
    check(node in ("node-b", "node-mig"), f"{node} has no fabric")
    found = variables("fabric")
    equal(found["NCCL_IB_HCA"], ",".join(f"mlx5_{gpu}" for gpu in ids))
    check(found["CUFILE_ENV_PATH_JSON"], found)
    for kind in ("rdma", "cufile"):
        claim(f"no-{kind}", 1, ON_A, fabric={kind: "Required"})
        create(claimed(f"no-{kind}"))
        waits(f"no-{kind}", "lacks RDMA or GPUDirect Storage")
        claim(f"any-{kind}", 1, ON_A, fabric={kind: "Preferred"})
        create(claimed(f"any-{kind}"))
        equal(given_by_claim(f"any-{kind}")[0], "node-a")
    remove("fabric", "no-rdma", "no-cufile", "any-rdma", "any-cufile")


# ---------------------------------------------------------------- gangs


@row
def a_gang_shares_a_claim():
    claim("ring", 2, gang="training-job-123")
    create(claimed("ring-0", "ring"))
    waits("ring-0", "training-job-123", "size")
    remove("ring-0")
    sized = {"gpu.scheduling/gang-size": "3"}
    create(*(claimed(f"ring-{i}", "ring", **sized) for i in range(2)))
    waits("ring-1", "2 of 3 pods are there")
    equal(gpu_leases(), {})
    create(claimed("ring-2", "ring", **sized))
    places = {f"ring-{i}": given(f"ring-{i}") for i in range(3)}
    status = claim_in_phase("Bound", "ring")
    equal({one["pod"]: (one["nodeName"], one["gpuIds"]) for one in status["allocations"]}, places)
    equal(status["allocated"].split(), [f"{node}:{','.join(map(str, ids))}"
                                        for _, (node, ids) in sorted(places.items())])
    remove(*places)
    check("allocations" not in claim_in_phase("Pending", "ring"), "nothing is left in its status")


# ---------------------------------------------------------------- nodes and their GPUs


@row
def only_healthy_gpus_are_given():
    names = [f"each-{i}" for i in range(8)]
    for name in names:
        claim(name, 1, ON_A)
    create(*(claimed(name) for name in names[:7]))
    equal(sorted(given(name)[1][0] for name in names[:7]), [0, 1, 2, 3, 4, 5, 6])
    create(claimed(names[7]))
    waits(names[7], "0 free")
    heal = json.loads(json.dumps(cluster().get("/apis/gpu.scheduling/v1/gpunodestatuses/node-a")["status"]))
    for health in ("Unknown", "Healthy"):
        check("0 free" in told(names[7]), told(names[7]))
        heal["devices"][7]["health"] = health
        cluster().report_gpus([("node-a", heal)])
    equal(given(names[7]), ("node-a", [7]))
    heal["devices"][7]["health"] = "Unhealthy"
    remove(*names)
    cluster().report_gpus([("node-a", heal)])


@row
def a_claim_serves_one_pod_or_a_gang():
    claim("single", 1, ON_A)
    create(claimed("first", "single"))
    given("first")
    create(claimed("second", "single"))
    waits("second", "serves pod first already; without gangRef a claim serves one pod")
    remove("first")
    given("second")
    remove("second")


@row
def a_node_without_an_agent_has_what_is_allocatable():
    claim("bare", 2, ON_BARE)
    create(claimed("bare"))
    equal(given_by_claim("bare"), ("node-bare", [0, 1]))
    remove("bare")


# ---------------------------------------------------------------- status and leases


@row
def a_claim_that_can_not_be_served_has_failed():
    claim("odd", 2)
    check("asks for 2 GPUs" in refusal(claimed("odd", gpus=3)), "the webhook has let it through")
    claim("odd", 2, namespace=UNSEEN)
    create(claimed("odd", gpus=3), namespace=UNSEEN)
    waits("odd", "asks for 2 GPUs", "limits for 3", namespace=UNSEEN)
    claim_in_phase("Failed", "odd", UNSEEN, "make them equal")
    remove("odd", namespace=UNSEEN)
    claim_in_phase("Pending", "odd", UNSEEN)


@row
def a_claim_whose_pod_went_while_nobody_looked_is_free_again():
    claim("unseen", 1, ON_B)
    create(claimed("unseen"))
    given_by_claim("unseen")
    scheduled.scheduler().program.kill()
    cluster().request("DELETE", f"{scheduled.PODS}/unseen")
    wait_for(lambda: cluster().find(f"{scheduled.PODS}/unseen") is None, "the pod is gone")
    equal(claim_in_phase("Bound", "unseen")["nodeName"], "node-b")
    scheduled.start_scheduler()
    check("allocated" not in claim_in_phase("Pending", "unseen", words="no pod"), "nothing is left in its status")


@row
def a_claim_made_anew_under_a_running_pod_is_bound_again():
    claim("anew", 1, ON_B)
    create(claimed("anew"))
    place = given_by_claim("anew")
    cluster().request("DELETE", claims_path("anew"))
    claim("anew", 1, ON_B)
    equal(given_by_claim("anew"), place)
    owners = [one["manager"] for one in cluster().get(claims_path("anew"))["metadata"]["managedFields"]
              if one.get("subresource") == "status" and one["operation"] == "Apply"]
    equal(owners, ["gpu-scheduler"], "who owns its status")
    remove("anew")


@row
def the_phases_are_seen_in_their_order():
    """kubectl get gclaim -w, while a pod comes and goes."""
    claim("seen", 1, ON_B)
    watch = scheduled.Program("watch", [cluster().binaries["kubectl"], "--kubeconfig", cluster().kubeconfig,
                                        "get", "gclaim", "seen", "-w", "-o",
                                        "jsonpath={.status.phase}{'\\n'}"], cluster().folder).start()
    try:
        wait_for(watch.log.read_text, "the watch has begun")
        create(claimed("seen"))
        given_by_claim("seen")
        remove("seen")
        claim_in_phase("Pending", "seen")
        wait_for(lambda: watch.log.read_text().split()[-1:] == ["Pending"] and
                 "Bound" in watch.log.read_text(), "the watch has shown it")
        phases = [line for line in watch.log.read_text().split() if line != "Pending"]
        check(phases and phases == sorted(phases, key=["Reserved", "Bound"].index), phases)
    finally:
        watch.stop()


@row
def the_commands_of_the_reference_show_it():
    kubectl = cluster().kubectl
    claim("my-claim", 2, ON_A, policy="contiguous", topology={"mode": "Preferred"})
    create(claimed("shown", "my-claim"))
    node, ids = given_by_claim("shown", "my-claim")
    text = f"{node}:{ids[0]},{ids[1]}"
    for words in (["gpuclaim"], ["gclaim"]):
        rows = [row.split() for row in kubectl("get", *words).out.splitlines()]
        check(["my-claim", "2", "contiguous", "Preferred", "Bound", text] in [row[:6] for row in rows], rows)
    described = kubectl("describe", "gpuclaim", "my-claim").out
    check(text in described and "Bound" in described, described)
    status = json.loads(kubectl("get", "gpuclaim", "my-claim", "-o", "jsonpath={.status}").out)
    equal((status["phase"], status["nodeName"], status["gpuIds"], status["allocated"]),
          ("Bound", node, ids, text))
    check(status["message"], "a message for people")
    equal(kubectl("get", "gpunodestatus", "-o", "name").out, kubectl("get", "gns", "-o", "name").out)
    check("nvlink-group-0" in kubectl("get", "gns", "node-a", "-o", "yaml").out)
    listed = kubectl("get", "leases", "-n", "gpu-scheduler").out
    for gpu in ids:
        check(f"gpu-{node}-{gpu} " in listed, listed)
    lease = f"gpu-{node}-{ids[0]}"
    kubectl("delete", "lease", lease, "-n", "gpu-scheduler")
    claim("others", 6, ON_A)
    create(claimed("others"))
    waits("others", "6 GPUs")  # whoever deletes a lease does not free the GPU of a pod that runs
    remove("shown", "others")
    no_leases()


@row
def a_lease_whose_pod_is_gone_goes_too():
    name = "gpu-node-a-3"
    cluster().request("POST", LEASES, {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "labels": {"gpu.scheduling/managed": "true"},
                     "annotations": {"gpu.scheduling/node": "node-a", "gpu.scheduling/gpu": "3"}},
        "spec": {"holderIdentity": "abc-123-def-456"}})
    wait_for(lambda: cluster().find(f"{LEASES}/{name}") is None, "the lease of nobody is removed")


@row
def the_configuration_of_a_stock_scheduler_names_ours():
    found = next(one for one in examples() if one.kind == "KubeSchedulerConfiguration")
    path = cluster().folder / "kube-scheduler.yaml"
    path.write_text(found.text.replace("schedulerName: gpu-scheduler", "schedulerName: of-a-profile"))
    other = scheduled.start_scheduler("profiled", "--config", str(path), "--no-leader-elect")
    one = pod("profiled", 1)
    one["spec"]["schedulerName"] = "of-a-profile"
    create(one)
    bound("profiled")
    remove("profiled")
    other.program.stop()


if __name__ == "__main__":
    if len(documents()) < 4:
        sys.exit(skip_all(f"{SHARED}/seeds lacks 000_*.txt ... 003_*.txt"))
    prepare()
    sys.exit(main())
