#!/usr/bin/env python3
"""`gpu-scheduler webhook` called by a real API server: what pods get, what is refused and how that reads,
and certificates that change under traffic."""

import json
import pathlib
import socket
import signal
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
import admission
from admission import NAMESPACE, SECRET, Webhook, bundles, make_certificates, register, review
from api_client import Answer
from control_plane import ControlPlane
from processes import Program, free_port
from service import check, equal, main, test, wait_for

PODS = "/api/v1/namespaces/default/pods"
APPS = "/apis/apps/v1/namespaces/default"
ANNOTATION = "metadata.annotations['gpu.scheduling/visible-devices']"
FROM_ANNOTATION = {"name": "CUDA_VISIBLE_DEVICES", "valueFrom": {"fieldRef": {
    "apiVersion": "v1", "fieldPath": ANNOTATION}}}
SHORT_LIFE_S = 45
_shared = {}


def cluster():
    """A control plane that calls a webhook with certificates of the script."""
    if "cluster" not in _shared:
        # Services are reached by their endpoints: there is no kube-proxy.
        plane = ControlPlane(nodes=2, gpus=4, crds=True,
                             apiserver_flags=["--enable-aggregator-routing=true"]).start()
        _shared["cluster"] = plane
        plane.apply(admission.RIGHTS)
        _shared["account"] = plane.service_account_kubeconfig(NAMESPACE, admission.ACCOUNT)
        plane.kubectl("create", "namespace", "excluded")
        start_with_files()
    return _shared["cluster"]


def start_with_files(*options):
    plane = _shared["cluster"]
    folder = _shared["certs"] = plane.folder / "certs"
    bundle = _shared["bundle"] = make_certificates(folder, *options)
    _shared["webhook"] = Webhook(plane, "webhook", "--tls-cert", str(folder / "tls.crt"), "--tls-key",
                                 str(folder / "tls.key"), "--exclude-namespace", "excluded",
                                 "--shutdown-delay", "0", kubeconfig=_shared["account"]).start()
    register(plane, by_url(_shared["webhook"]), bundle)
    wait_for(is_called, "the API server calls the webhook")


def by_url(webhook):
    return lambda path: {"url": f"https://127.0.0.1:{webhook.port}/{path}"}


def is_called():
    """What registers a webhook takes a moment to reach the API server's own copy."""
    bad = pod("probe", {"gpu-scheduling-map": "0=node1"})
    try:
        changed = dry_run(pod("probe"))
        dry_run(bad)
    except Answer as refused:
        return "denied the request" in refused.text and env(changed) == [FROM_ANNOTATION]
    return False


def pod(name, annotations=None, scheduler="gpu-scheduler", **container):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "annotations": annotations or {}},
            "spec": {"schedulerName": scheduler, "terminationGracePeriodSeconds": 0,
                     "containers": [{"name": "c", "image": "none", **container}]}}


def claim(name, count=1, **spec):
    return {"apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim", "metadata": {"name": name},
            "spec": {"devices": {"count": count}, **spec}}


def dry_run(body, namespace="default"):
    return cluster().request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", body)


def env(one, container=0, which="containers"):
    return one["spec"][which][container].get("env", [])


def names(one):
    return [entry["name"] for entry in env(one)]


def created(*objects, code=0):
    """What kubectl says to objects that are created from one file."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    done = cluster().kubectl("create", "-f", "-", stdin=text, check=False)
    equal(done.code, code, done)
    return done


def refusal(*objects):
    """Why kubectl could not create it."""
    said = created(*objects, code=1).err
    check("denied the request: " in said, said)
    return said.split("denied the request: ")[1].strip()


# ---------------------------------------------------------------- what pods get


@test
def every_container_of_a_plain_pod_refers_to_the_annotation():
    one = pod("plain", resources={"limits": {"nvidia.com/gpu": "1"}},
              env=[{"name": "MINE", "value": "$(CUDA_VISIBLE_DEVICES)"}])
    one["spec"]["initContainers"] = [{"name": "i", "image": "none"}]
    one["spec"]["containers"].append({"name": "second", "image": "none"})
    created(one)
    got = cluster().get(f"{PODS}/plain")
    equal(env(got), [FROM_ANNOTATION, {"name": "MINE", "value": "$(CUDA_VISIBLE_DEVICES)"}])
    equal(env(got, 1), [FROM_ANNOTATION])
    equal(env(got, 0, "initContainers"), [FROM_ANNOTATION])
    equal(env(dry_run(pod("other", scheduler="default-scheduler"))), [])
    equal(env(dry_run(pod("topology", scheduler="topology-aware-scheduler"))), [FROM_ANNOTATION])


@test
def a_claim_of_the_same_file_gives_its_fabric():
    fabric = claim("fabric", 2, fabric={"rdma": "Required", "cufile": "Preferred"})
    created(fabric, pod("train", {"gpu.scheduling/claim": "fabric"}))
    got = cluster().get(f"{PODS}/train")
    equal(names(got), ["CUDA_VISIBLE_DEVICES", "NCCL_IB_HCA", "CUFILE_ENV_PATH_JSON"])
    equal(env(got)[1]["valueFrom"]["fieldRef"]["fieldPath"],
          "metadata.annotations['gpu.scheduling/ib-hca']")
    equal(env(got)[2]["value"], "/etc/cufile.json")


@test
def a_pod_may_come_before_its_claim():
    said = created(pod("early", {"gpu.scheduling/claim": "later"})).err
    check("Warning: GpuClaim 'later' of namespace 'default' does not exist yet" in said, said)
    equal(env(cluster().get(f"{PODS}/early")), [FROM_ANNOTATION])


@test
def a_map_gives_literals_to_pods_whose_index_is_known():
    annotations = {"gpu-scheduling-map": "0=node1:0,1\n1=node2:2\n"}
    equal(env(dry_run(pod("check-1", annotations))), [{"name": "CUDA_VISIBLE_DEVICES", "value": "2"}])
    template = {"metadata": {"labels": {"app": "check"}, "annotations": annotations},
                "spec": pod("x")["spec"]}
    for kind, more in (("StatefulSet", {"serviceName": "check", "podManagementPolicy": "Parallel"}),
                       ("Deployment", {})):
        created({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": kind.lower()},
                 "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "check"}},
                          "template": template, **more}})
    for index, value in enumerate(["0,1", "2"]):
        one = cluster().wait_until(f"{PODS}/statefulset-{index}", bool, "the StatefulSet's pod is there")
        equal(env(one), [{"name": "CUDA_VISIBLE_DEVICES", "value": value}])

    def deployed():
        found = [one for one in cluster().get(f"{PODS}?labelSelector=app%3Dcheck")["items"]
                 if one["metadata"]["name"].startswith("deployment-")]
        return len(found) == 2 and found
    for one in wait_for(deployed, "the Deployment's pods are there"):
        equal(env(one), [FROM_ANNOTATION])  # its index is not known yet
    cluster().kubectl("delete", "statefulset/statefulset", "deployment/deployment", "--wait=false")


@test
def a_value_of_the_user_is_kept_with_a_warning():
    mine = [{"name": "CUDA_VISIBLE_DEVICES", "value": "7"}]
    said = created(pod("own-value", env=mine)).err
    check("Warning: container 'c' sets CUDA_VISIBLE_DEVICES itself" in said, said)
    equal(env(cluster().get(f"{PODS}/own-value")), mine)


@test
def a_copied_pod_does_not_keep_the_devices_of_the_first():
    copy = pod("copy", {"gpu.scheduling/allocated": "node1:3", "gpu.scheduling/visible-devices": "3"})
    equal(env(dry_run(copy)), [FROM_ANNOTATION])


@test
def pods_of_a_job_are_reviewed_without_their_job():
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "wide"},
           "spec": {"parallelism": 16, "completions": 16, "template": {
               "metadata": {"annotations": {"topology.scheduler/gpu-count": "128",
                                            "gpu.scheduling/gang": "true"}},
               "spec": {**pod("x")["spec"], "restartPolicy": "Never"}}}}
    created(job)
    wait_for(lambda: len(cluster().get(f"{PODS}?labelSelector=job-name%3Dwide")["items"]) == 16,
             "the Job's pods are there")
    cluster().kubectl("delete", "job/wide", "--wait=false")
    job["metadata"]["name"] = "odd"
    job["spec"]["template"]["metadata"]["annotations"]["topology.scheduler/gpu-count"] = "100"
    check("must divide by their number: 100 GPUs, 16 pods" in refusal(job))


@test
def the_scheduler_keeps_what_the_webhook_promised():
    cluster().kubectl("delete", "pods", "--all", "--force")
    cluster().kubectl("create", "namespace", "gpu-scheduler")
    port = free_port()
    scheduler = Program("scheduler", [admission.BINARY, "kube", "--kubeconfig", str(cluster().kubeconfig),
                                      "--port", str(port)], cluster().folder).start()
    created(claim("pair", 2), pod("claimed", {"gpu.scheduling/claim": "pair"}),
            pod("pinned-0", {"gpu-scheduling-map": "0=node-1:1,3"}))
    got = {name: cluster().wait_until(f"{PODS}/{name}", lambda one: one["spec"].get("nodeName"),
                                      f"{name} is bound") for name in ("claimed", "pinned-0")}
    equal(env(got["claimed"]), [FROM_ANNOTATION])
    devices = got["claimed"]["metadata"]["annotations"]["gpu.scheduling/visible-devices"]
    equal(len(devices.split(",")), 2)
    equal(env(got["pinned-0"]), [{"name": "CUDA_VISIBLE_DEVICES", "value": "1,3"}])
    equal(got["pinned-0"]["metadata"]["annotations"]["gpu.scheduling/allocated"], "node-1:1,3")
    scheduler.stop()


def seen_inside(one):
    """The variables of a pod's container with the values that a kubelet gives them."""
    notes = one["metadata"]["annotations"]
    return {entry["name"]: entry["value"] if "value" in entry else
            notes[entry["valueFrom"]["fieldRef"]["fieldPath"].split("'")[1]] for entry in env(one)}


def bound_pods(naming, *pods):
    """Bound by a webhook and a scheduler that name devices in this way, for nodes without a device plugin."""
    folder = _shared["certs"]
    webhook = Webhook(cluster(), f"webhook-{naming}", "--tls-cert", str(folder / "tls.crt"), "--tls-key",
                      str(folder / "tls.key"), "--shutdown-delay", "0", "--device-naming", naming,
                      "--nvidia-visible-devices", kubeconfig=_shared["account"]).start()
    register(cluster(), by_url(webhook), _shared["bundle"])
    literal = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "2"}
    probe = pod("probe-0", {"gpu-scheduling-map": "0=node1:2"})

    def is_asked():
        try:
            got = env(dry_run(probe))
        except Answer:
            return False
        return len(got) == 2 and (literal in got) == (naming == "index")

    wait_for(is_asked, f"the API server asks the webhook that names by {naming}")
    scheduler = Program(f"scheduler-{naming}", [
        admission.BINARY, "kube", "--kubeconfig", str(cluster().kubeconfig), "--port", str(free_port()),
        "--device-naming", naming], cluster().folder).start()
    created(*pods)
    got = [cluster().wait_until(f"{PODS}/{one['metadata']['name']}", lambda one: one["spec"].get("nodeName"),
                                "it is bound") for one in pods]
    check(f"device_naming={naming}" in scheduler.log.read_text(), "the log says how devices are named")
    cluster().kubectl("delete", "pods", "--all", "--force")
    scheduler.stop()
    webhook.program.stop()
    return got


@test
def containers_call_their_devices_as_they_see_them():
    """NVIDIA's runtime shows a container what NVIDIA_VISIBLE_DEVICES names, counted from 0."""
    cluster().kubectl("delete", "pods", "--all", "--force")
    if cluster().find("/api/v1/namespaces/gpu-scheduler") is None:
        cluster().kubectl("create", "namespace", "gpu-scheduler")
    pods = (pod("mapped-0", {"gpu-scheduling-map": "0=node-1:1,3"}),
            pod("limited-0", {"gpu-scheduling-map": "0=node-1:2"},
                resources={"limits": {"nvidia.com/gpu": "1"}}))
    try:
        mapped, limited = bound_pods("index", *pods)
        equal(seen_inside(mapped), {"CUDA_VISIBLE_DEVICES": "0,1", "NVIDIA_VISIBLE_DEVICES": "1,3"})
        equal(seen_inside(limited), {"CUDA_VISIBLE_DEVICES": "2"}, "its device plugin sets the other")
        mapped, limited = bound_pods("uuid", *pods)
        uuids = "GPU-node-1-1,GPU-node-1-3"
        equal(seen_inside(mapped), {"CUDA_VISIBLE_DEVICES": uuids, "NVIDIA_VISIBLE_DEVICES": uuids})
        equal(seen_inside(limited), {"CUDA_VISIBLE_DEVICES": "GPU-node-1-2"})
        equal(mapped["metadata"]["annotations"]["gpu.scheduling/allocated"], "node-1:1,3")
    finally:
        register(cluster(), by_url(_shared["webhook"]), _shared["bundle"])
        wait_for(is_called, "the API server calls the first webhook again")


# ---------------------------------------------------------------- what is refused


@test
def wrong_content_is_refused_with_its_reason():
    equal(refusal(pod("m-0", {"gpu-scheduling-map": "0=node1:0\n1=node2"})),
          "gpu-scheduling-map line 2 ('1=node2'): must look like <index>=<node>:<gpu ids>, for example "
          "0=node1:0,1")
    equal(refusal(pod("m-7", {"gpu-scheduling-map": "0=node1:0"})),
          "gpu-scheduling-map has no line for index 7, which this pod has")
    check("network-bandwidth" in refusal(pod("t", {"topology.scheduler/network-bandwidth": "fast"})))
    check("must be one of" in refusal(pod("t", {"topology.scheduler/placement-strategy": "loose"})) or
          "consolidated" in refusal(pod("t", {"topology.scheduler/placement-strategy": "loose"})))
    equal(refusal(pod("g", {"gpu.scheduling/gang-size": "many"})),
          "annotation gpu.scheduling/gang-size must be a whole number from 1 to 100000, got 'many'")
    equal(refusal(pod("c", {"gpu.scheduling/claim": ""})),
          "annotation gpu.scheduling/claim must name a GpuClaim of the pod's namespace")


@test
def a_claim_and_a_limit_must_agree():
    created(claim("two", 2))
    asks = {"gpu.scheduling/claim": "two"}
    equal(refusal(pod("three", asks, resources={"limits": {"nvidia.com/gpu": "3"}})),
          "GpuClaim 'two' asks for 2 GPUs but the containers' nvidia.com/gpu limits for 3: make them "
          "equal or remove the limits")
    created(pod("two", asks, resources={"limits": {"nvidia.com/gpu": "2"}}))
    said = created(claim("none", 0), code=1).err  # already by its schema
    check("spec.devices.count" in said, said)


@test
def what_a_schema_can_not_say_is_refused_too():
    config = {"apiVersion": "topology.scheduler/v1alpha1", "kind": "SchedulerConfig",
              "metadata": {"name": "lost"},
              "spec": {"topology": {"domains": [{"name": "leaf-1", "parent": "spine-1"}]}}}
    check("spine-1', which must be listed before it" in refusal(config))


@test
def an_excluded_namespace_is_left_alone():
    broken = pod("m-0", {"gpu-scheduling-map": "nonsense"})
    equal(env(dry_run(broken, "excluded")), [])
    try:
        dry_run(broken)
        check(False, "it was taken in the default namespace")
    except Answer as refused:
        equal(refused.code, 422, refused.text)


def uneven_deployment(name):
    """A Deployment whose total does not divide by its pods any more: /scale is not reviewed."""
    labels = {"app": name}
    created({"apiVersion": "apps/v1", "kind": "Deployment",
             "metadata": {"name": name, "annotations": {"topology.scheduler/gpu-count": "4"}},
             "spec": {"replicas": 4, "selector": {"matchLabels": labels},
                      "template": {"metadata": {"labels": labels}, "spec": pod("x")["spec"]}}})
    cluster().kubectl("scale", f"deployment/{name}", "--replicas=3")

    def is_scaled():
        sets = cluster().get(f"{APPS}/replicasets?labelSelector=app%3D{name}")["items"]
        return [one["spec"]["replicas"] for one in sets] == [3]
    wait_for(is_scaled, f"the ReplicaSet of {name} is scaled")


@test
def what_is_wrong_already_can_be_changed_elsewhere_and_deleted():
    cluster()
    uneven_deployment("uneven")
    said = cluster().kubectl("label", "deployment/uneven", "team=a").err
    check("Warning: was wrong before, so it is let through: annotation topology.scheduler/gpu-count "
          "is the total of all pods and must divide by their number: 4 GPUs, 3 pods" in said, said)
    done = cluster().kubectl("annotate", "deployment/uneven",
                             "topology.scheduler/latency-sensitive=maybe", check=False)
    equal(done.code, 1, done)
    check("denied the request: annotation topology.scheduler/latency-sensitive" in done.err, done)
    cluster().kubectl("delete", "deployment/uneven", "--cascade=foreground", "--timeout=100s")
    equal(cluster().find(f"{APPS}/deployments/uneven"), None)


@test
def a_replica_set_with_a_mistake_can_be_left_behind():
    cluster()
    uneven_deployment("leaving")
    cluster().kubectl("delete", "deployment/leaving", "--cascade=orphan", "--timeout=100s")
    sets = cluster().get(f"{APPS}/replicasets?labelSelector=app%3Dleaving")["items"]
    equal([one["metadata"].get("ownerReferences") for one in sets], [None])
    cluster().kubectl("delete", "replicasets", "-l", "app=leaving", "--cascade=foreground", "--timeout=100s")


# ---------------------------------------------------------------- by HTTPS, without an API server


@test
def what_is_no_review_gets_a_proper_answer():
    cluster()
    webhook, tls = _shared["webhook"], _shared["webhook"].trusting(_shared["bundle"])
    deep = '{"request":{"object":' + '{"a":' * 100_000
    for path in ("/mutate", "/validate"):
        for body in ("", "x", "[]", "{}", '{"kind":"AdmissionReview"}', deep, "\0\xff", review(3),
                     '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":""}}'):
            status, text = webhook.send(tls, path, body.encode("latin-1"))
            equal(status, 400, body[:60])
            equal(json.loads(text)["kind"], "Status")
        status, text = webhook.send(tls, path, review(None))
        equal((status, json.loads(text)["response"]["status"]["code"]), (200, 400))
        equal(json.loads(text)["response"]["uid"], "r-1")
        equal(webhook.send(tls, path, None, method="GET")[0], 405)
        equal(webhook.send(tls, path, review({}), {"Content-Type": "text/plain"})[0], 415)
        equal(webhook.send(tls, path, b"x" * (4 << 20))[0], 413)
    status, text = webhook.send(tls, "/mutate", review({"spec": 3}))
    equal((status, json.loads(text)["response"]["allowed"]), (200, False))
    with socket.create_connection(("127.0.0.1", webhook.port)) as link:
        link.sendall(b"POST /mutate HTTP/1.1\r\n\r\n")  # without TLS
    with socket.create_connection(("127.0.0.1", webhook.port)) as plain:
        with tls.wrap_socket(plain, server_hostname="127.0.0.1") as link:
            link.sendall(b"POST /mutate HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nhalf")
    equal(webhook.send(tls, "/health", None, method="GET")[0], 200)
    check(is_called(), "the API server is served as before")


@test
def probes_and_metrics_are_there():
    cluster()
    webhook = _shared["webhook"]
    equal(webhook.probe("/health"), (200, '{"status":"healthy"}'))
    equal(webhook.probe("/mutate")[0], 404)
    text = webhook.probe("/metrics")[1]
    for path, outcome in (("/mutate", "patched"), ("/mutate", "malformed"), ("/validate", "denied"),
                          ("/validate", "allowed")):
        check(f'gpu_scheduler_webhook_requests_total{{path="{path}",outcome="{outcome}"}}' in text, text)
    check('gpu_scheduler_webhook_request_seconds_bucket{path="/mutate",le="0.001"}' in text)
    check("gpu_scheduler_webhook_certificate_expiry_timestamp_seconds 1" in text)


# ---------------------------------------------------------------- certificates and restarts


class Traffic(threading.Thread):
    """Pods that are created without a pause; keeps what went wrong."""

    def __init__(self):
        super().__init__(daemon=True)
        self.failures, self.answered, self.ended = [], 0, threading.Event()

    def run(self):
        while not self.ended.wait(0.02):
            try:
                equal(env(dry_run(pod("traffic"))), [FROM_ANNOTATION])
                self.answered += 1
            except Exception as error:  # whatever it is, it is a failure
                self.failures.append(error)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()


@test
def files_that_change_are_taken_up_under_traffic():
    cluster()
    webhook, old = _shared["webhook"], _shared["webhook"].certificate()
    with Traffic() as traffic:
        wait_for(lambda: traffic.answered > 5, "there is traffic")
        equal(make_certificates(_shared["certs"], "--renew"), _shared["bundle"])
        wait_for(lambda: webhook.certificate() != old, "the new certificate is served")
        equal(webhook.certificate().strip(), admission.read(_shared["certs"] / "tls.crt").strip())
        seen = traffic.answered
        wait_for(lambda: traffic.answered > seen + 5, "the traffic goes on")
    equal(traffic.failures, [])


@test
def without_the_webhook_nothing_slips_through_and_a_restart_heals():
    cluster()
    webhook = _shared["webhook"]
    webhook.program.kill()
    said = created(pod("unseen"), code=1).err
    check("failed calling webhook" in said, said)
    webhook.start()
    wait_for(is_called, "the API server calls the webhook again")


@test
def it_ends_in_order():
    cluster()
    _shared["webhook"].stop()
    equal(_shared["webhook"].program.process.returncode, 0)
    webhook = Webhook(cluster(), "leaving", "--tls-cert", str(_shared["certs"] / "tls.crt"), "--tls-key",
                      str(_shared["certs"] / "tls.key"), "--shutdown-delay", "600").start()
    webhook.program.signal(signal.SIGTERM)
    wait_for(lambda: webhook.probe("/ready")[0] == 503, "it is not ready any more")
    status, text = webhook.send(webhook.trusting(_shared["bundle"]), "/mutate", review(pod("late")))
    equal((status, json.loads(text)["response"]["patchType"]), (200, "JSONPatch"))
    webhook.program.signal(signal.SIGTERM)  # at once
    equal(webhook.program.process.wait(60), 0)


@test
def what_can_not_work_is_said():
    cluster()
    def said(*flags):
        done = subprocess.run([admission.BINARY, "webhook", "--kubeconfig", str(cluster().kubeconfig),
                               "--health-port", "0", *flags], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stderr.strip().splitlines()[-1]
    equal(said(), (2, "gpu-scheduler: a webhook needs a certificate: give --tls-cert and --tls-key, or "
                      "--self-signed"))
    equal(said("--self-signed", "--tls-cert", "x")[0], 2)
    folder = _shared["certs"]
    code, words = said("--tls-cert", str(folder / "tls.crt"), "--tls-key", str(folder / "ca.key"))
    check(code == 1 and "the key does not belong to the certificate" in words, words)
    code, words = said("--tls-cert", str(folder / "none"), "--tls-key", str(folder / "tls.key"))
    check(code == 1 and str(folder / "none") in words, words)


def own_replica(name, *flags):
    return Webhook(cluster(), name, "--self-signed", "--extra-name", "127.0.0.1", "--check-interval", "1s",
                   "--shutdown-delay", "0", *flags, kubeconfig=_shared["account"])


def secret():
    return cluster().find(f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}")


@test
def a_secret_of_the_script_is_left_alone():
    cluster().apply(_shared["certs"] / "webhook-tls-secret.yaml")
    stored = secret()
    replica = own_replica("own-0")
    replica.program.start()
    wait_for(lambda: "holds a certificate that was not made here" in replica.probe("/ready")[1],
             "it says why it is not ready")
    equal(secret(), stored)
    replica.stop()
    cluster().request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}")


@test
def replicas_share_certificates_of_their_own():
    cluster()
    replicas = _shared["replicas"] = [own_replica("own-1"), own_replica("own-2")]
    register(cluster(), by_url(replicas[0]))  # without a caBundle
    for one in replicas:
        one.program.start()
    for one in replicas:
        wait_for(one.is_ready, "the replica is ready")
    stored = secret()["data"]
    equal(bundles(cluster()), [stored["ca.crt"]] * 2)
    for one in replicas:
        equal(one.certificate().strip(), replicas[0].certificate().strip())
        check(one.is_trusted_by(stored["ca.crt"]), "the replica is trusted")
        check(one.is_trusted_by(stored["ca.crt"], f"{admission.NAME}.{NAMESPACE}.svc"))
        check(not one.is_trusted_by(stored["ca.crt"], "elsewhere.example"))
    wait_for(is_called, "the API server calls the webhook")


@test
def what_somebody_breaks_is_put_right():
    certificate = _shared["replicas"][0].certificate()
    kind = admission.KINDS["mutate"].lower() + "s"
    cluster().request("PATCH", f"{admission.ADMISSION}/{kind}/{admission.NAME}",
                      [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}],
                      "application/json-patch+json")
    wait_for(lambda: len(set(bundles(cluster()))) == 1, "the caBundle is set again")
    cluster().request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}")
    wait_for(secret, "the Secret is there again")
    equal(_shared["replicas"][0].certificate(), certificate)
    wait_for(lambda: bundles(cluster()) == [secret()["data"]["ca.crt"]] * 2, "all have one bundle")
    wait_for(is_called, "the API server calls the webhook")


@test
def an_api_server_that_restarts_finds_it_again():
    cluster().restart_apiserver()
    wait_for(is_called, "the API server calls the webhook")
    check(_shared["replicas"][1].is_ready(), "it is ready")


@test
def a_service_is_called_by_its_names():
    """As in a cluster: no URL, but a Service, whose name the certificate must have."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:  # nothing is sent
        probe.connect(("192.0.2.1", 9))
        address = probe.getsockname()[0]
    check(not address.startswith("127."), "this machine has an address besides loopback")
    port = _shared["replicas"][1].port
    path = f"/api/v1/namespaces/{NAMESPACE}"
    cluster().request("POST", f"{path}/services", {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": admission.NAME},
        "spec": {"ports": [{"name": "https", "port": 443, "targetPort": port}]}})
    cluster().request("POST", f"{path}/endpoints", {
        "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": admission.NAME},
        "subsets": [{"addresses": [{"ip": address}], "ports": [{"name": "https", "port": port}]}]})
    register(cluster(), lambda path: {"service": {"name": admission.NAME, "namespace": NAMESPACE,
                                                  "path": f"/{path}", "port": 443}})
    wait_for(lambda: "" not in bundles(cluster()), "the caBundle is set")
    _shared["replicas"][0].stop()  # it is the other one that answers
    wait_for(is_called, "the API server calls the Service")
    _shared["replicas"][1].stop()


@test
def own_certificates_rotate_under_traffic():
    """Through the whole life of an authority: its successor is trusted, then used, and it goes."""
    cluster().request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}")
    life = f"{SHORT_LIFE_S}s"
    replicas = [own_replica(f"short-{i}", "--authority-life", life, "--certificate-life", life)
                for i in (1, 2)]
    register(cluster(), by_url(replicas[0]))
    for one in replicas:
        one.start()
    wait_for(is_called, "the API server calls the webhook")
    first, certificate = secret()["data"]["ca.crt"], replicas[0].certificate()
    with Traffic() as traffic:
        wait_for(lambda: replicas[0].certificate() != certificate, "the certificate is renewed")
        both = secret()["data"]["ca.crt"]
        check(both != first, "there is a second authority")
        wait_for(lambda: replicas[1].certificate() == replicas[0].certificate(), "both serve it")
        wait_for(lambda: secret()["data"]["ca.crt"] not in (first, both), "the first authority goes")
        wait_for(lambda: set(bundles(cluster())) == {secret()["data"]["ca.crt"]}, "it is trusted no more")
        check(not replicas[0].is_trusted_by(first), "the old authority's time is over")
        seen = traffic.answered
        wait_for(lambda: traffic.answered > seen + 5, "the traffic goes on")
    equal(traffic.failures, [])
    print(f"      {traffic.answered} pods were admitted meanwhile")
    for one in replicas:
        one.stop()


if __name__ == "__main__":
    sys.exit(main())
