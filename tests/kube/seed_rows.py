"""What the tests of the documents' rows share: a control plane with our scheduler and our webhook, and the
way of a pod from its creation to devices, leases, environment and status, and back.

Pods of namespace `default` are reviewed by the webhook; those of `unseen` are not, so that the scheduler is
the first who reads them."""

import functools
import json
import re

import scheduled
from admission import Webhook, make_certificates, register
from api_client import Answer
from control_plane import is_ready
from gpu_nodes import gpu_node
from scheduled import ALLOCATED, LEASES, cluster, holders, holders_by_lease, scheduler
from seed_examples import completed, examples
from service import check, equal, test, wait_for

UNSEEN = "unseen"
NAMESPACES = ("ml-workloads", UNSEEN)
MAP = "gpu-scheduling-map"
_running = {}


def start():
    """Scheduler and webhook; namespaces of the documents."""
    if _running:
        return
    plane = cluster()
    for name in NAMESPACES:
        plane.request("POST", "/api/v1/namespaces",
                      {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    certificates = plane.folder / "certs"
    bundle = make_certificates(certificates)
    _running["webhook"] = webhook = Webhook(
        plane, "webhook", "--tls-cert", str(certificates / "tls.crt"), "--tls-key",
        str(certificates / "tls.key"), "--exclude-namespace", UNSEEN, "--shutdown-delay", "0").start()
    register(plane, lambda path: {"url": f"https://127.0.0.1:{webhook.port}/{path}"}, bundle)
    scheduler()
    wait_for(lambda: "CUDA_VISIBLE_DEVICES" in json.dumps(dry_run(scheduled.pod("probe", 1))) and
             refusal(scheduled.pod("probe-0", 0, {MAP: "0"})), "the API server asks the webhook")


def row(function):
    """Marks a test, which begins without pods, whatever became of the one before it."""
    @functools.wraps(function)
    def from_a_clean_table():
        clean()
        function()
    return test(from_a_clean_table)


def clean():
    for owners in ("batch/v1/namespaces/default/jobs", "apps/v1/namespaces/default/deployments",
                   "apps/v1/namespaces/default/statefulsets"):
        cluster().request("DELETE", f"/apis/{owners}?propagationPolicy=Background")
    spaces = [path_of(space) for space in ("default", *NAMESPACES)]

    def is_empty():
        left = [f"{space}/{one['metadata']['name']}" for space in spaces
                for one in cluster().get(space)["items"]]
        for path in left:
            try:
                cluster().request("DELETE", f"{path}?gracePeriodSeconds=0")
            except Answer as answer:
                if answer.code != 404:  # it has gone meanwhile
                    raise
        return not left
    wait_for(is_empty, "the pods of the test before are gone")
    wait_for(lambda: not lease_holders(), "and their leases")


# ---------------------------------------------------------------- the documents' examples


def example(kind, name, where=""):
    """One manifest as written; `where` begins with the number of its document."""
    found = [one for one in examples() if one.kind == kind and one.name == name and
             one.where.startswith(where)]
    check(found, f"{where} has no {kind} {name}")
    return found[0]


def apply_example(kind, name, where="", namespace=None):
    """As written, but for what Kubernetes itself demands of Jobs and Deployments."""
    one = example(kind, name, where)
    whole = kind in ("Job", "Deployment")
    text = json.dumps(completed(cluster(), one)) if whole else one.text
    cluster().kubectl("apply", "-n", one.namespace or namespace or "default", "-f", "-", stdin=text)


# ---------------------------------------------------------------- objects


def add_node(name, gpus, labels=None, status=None):
    """A simulated node; `status` is what its agent reports."""
    cluster().request("POST", "/api/v1/nodes", gpu_node(name, 0, gpus, labels))
    if status:
        cluster().report_gpus([(name, status)])
    cluster().wait_until(f"/api/v1/nodes/{name}",
                         lambda one: is_ready(one) and not one["spec"].get("taints"), f"{name} is ready")


def path_of(namespace, name=None):
    return f"/api/v1/namespaces/{namespace}/pods" + (f"/{name}" if name else "")


def claims_path(name, namespace="default"):
    return f"/apis/gpu.scheduling/v1/namespaces/{namespace}/gpuclaims" + (f"/{name}" if name else "")


def claim(name, count, selector=None, topology=None, gang=None, fabric=None, namespace="default",
          **devices):
    spec = {"devices": {"count": count, **devices}}
    for field, value in (("topology", topology), ("gangRef", gang), ("fabric", fabric)):
        if value:
            spec[field] = value
    if selector:
        spec["selector"] = {"matchLabels": selector}
    cluster().request("POST", claims_path(None, namespace), {
        "apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim", "metadata": {"name": name}, "spec": spec})


def claimed(name, claim_name=None, gpus=0, **annotations):
    """A pod that names a claim, by default that of its own name."""
    return scheduled.pod(name, gpus, {"gpu.scheduling/claim": claim_name or name, **annotations})


def create(*pods, namespace="default"):
    for one in pods:
        cluster().request("POST", path_of(namespace), one)


def dry_run(one, namespace="default"):
    return cluster().request("POST", f"{path_of(namespace)}?dryRun=All", one)


def refusal(one, namespace="default"):
    """Why the API server does not create it; nothing where it does."""
    try:
        dry_run(one, namespace)
        return ""
    except Answer as answer:
        return json.loads(answer.text)["message"]


def bound(name, namespace="default"):
    return cluster().wait_until(path_of(namespace, name), lambda one: one["spec"].get("nodeName"),
                                f"{name} is bound")


# ---------------------------------------------------------------- what a pod got


def environment(one, container):
    """As a kubelet makes it: literals, and what the pod's annotations say."""
    found = {}
    for entry in container.get("env", []):
        path = entry.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
        note = re.fullmatch(r"metadata\.annotations\['(.*)'\]", path)
        found[entry["name"]] = (one["metadata"]["annotations"].get(note[1], "") if note
                                else entry.get("value"))
    return found


def variables(name, namespace="default"):
    one = bound(name, namespace)
    return environment(one, one["spec"]["containers"][0])


def given(name, namespace="default"):
    """(node, ids) of a pod as soon as it is bound: annotations, environment and leases say the same."""
    one = bound(name, namespace)
    notes = one["metadata"]["annotations"]
    node, ids = notes[ALLOCATED].split(":")
    equal(node, one["spec"]["nodeName"], f"{name}'s node")
    equal(notes["gpu.scheduling/visible-devices"], ids, f"{name}'s devices")
    if namespace != UNSEEN:
        for container in one["spec"].get("initContainers", []) + one["spec"]["containers"]:
            equal(environment(one, container).get("CUDA_VISIBLE_DEVICES"), ids, f"in {name}")
    for gpu in ids.split(","):
        lease = cluster().get(f"{LEASES}/gpu-{node}-{gpu}")
        equal(lease["metadata"]["labels"]["gpu.scheduling/managed"], "true")
        check(one["metadata"]["uid"] in holders(lease), f"{name} holds no part of {lease}")
    return node, [int(gpu) for gpu in ids.split(",")]


def claim_in_phase(phase, name, namespace="default", words=""):
    """Its status, as soon as it says so."""
    return cluster().wait_until(
        claims_path(name, namespace),
        lambda one: one.get("status", {}).get("phase") == phase and words in one["status"].get("message", ""),
        f"claim {name} is {phase} {words}")["status"]


def given_by_claim(name, claim_name=None, namespace="default"):
    """As given(), and the claim's status says it too."""
    node, ids = given(name, namespace)
    status = claim_in_phase("Bound", claim_name or name, namespace)
    equal((status["nodeName"], status["gpuIds"]), (node, ids), f"status of {name}'s claim")
    equal(status["allocated"], f"{node}:{','.join(map(str, ids))}")
    return node, ids


# ---------------------------------------------------------------- who waits, and the end


def told(name, namespace="default"):
    status = cluster().get(path_of(namespace, name))["status"]
    return next((one["message"] for one in status.get("conditions", [])
                 if one["type"] == "PodScheduled" and one["status"] == "False"), "")


def event_notes(name, namespace="default"):
    found = cluster().get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    return [one["note"] for one in found if one["regarding"].get("name") == name and
            one["reason"] == "FailedScheduling"]


def waits(name, *words, namespace="default"):
    """The pod is told so by its condition and by an event, and is not bound."""
    for each in words:
        try:
            wait_for(lambda: each in told(name, namespace) and
                     any(each in note for note in event_notes(name, namespace)), "words")
        except AssertionError:
            raise AssertionError(f"{name} is told {told(name, namespace)!r} and not {each!r}; events: "
                                 f"{event_notes(name, namespace)}") from None
    check(not cluster().get(path_of(namespace, name))["spec"].get("nodeName"), f"{name} waits")


def remove(*names, namespace="default"):
    """The pods go, and with them their part of every lease."""
    uids = {name: cluster().get(path_of(namespace, name))["metadata"]["uid"] for name in names}
    for name in names:
        cluster().request("DELETE", path_of(namespace, name))
    for name in names:
        wait_for(lambda: cluster().find(path_of(namespace, name)) is None, f"{name} is gone")
    wait_for(lambda: not set(uids.values()) & lease_holders(), f"the leases of {names} are given back")


def lease_holders():
    return {uid for uids in holders_by_lease().values() for uid in uids}
