#!/usr/bin/env python3
"""The last metre: the product's own images and charts on a real kubelet. `helm install` ends with ready
pods, and pods of ours log the very devices that the scheduler gave them."""

import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
import installation
from installation import (COMPONENTS, GPUS, NAMESPACE, TESTS_NAMESPACE, WAIT_S, cluster, has, helm, kubectl,
                          log_lines, pods_of, ports, settings)
from charts import CHECK, SCHEDULER
from processes import Program, free_port
from seed_examples import documents as seed_documents, examples
from service import BINARY, ROOT, check, equal, main, skip_all, test, wait_for

def test_of(component):
    """A test that only counts where this component is installed."""
    return test if has(component) else lambda function: function


@test
def what_the_binary_can_do_is_tested_here():
    told = subprocess.run([BINARY, "--help"], capture_output=True, text=True, check=True).stdout
    able = {word for word in ("kube", "webhook") if re.search(rf"^  {word} ", told, re.MULTILINE)}
    agent = subprocess.run([BINARY, "agent", "--help"], capture_output=True, text=True).stdout
    able |= {"agent"} if "--kube" in agent else set()
    equal(COMPONENTS, able, "COMPONENTS of installation.py")


@test
def helm_install_ends_with_ready_pods():
    told = helm("install", "gpu-scheduler", ROOT / SCHEDULER, "-n", NAMESPACE, "--wait",
                "--timeout", f"{WAIT_S}s", *settings())
    check("STATUS: deployed" in told.out, told)
    shown = kubectl("get", "pods", "-l", "app.kubernetes.io/name=gpu-scheduler", "-n", NAMESPACE,
                    "--no-headers").out
    equal(shown.split()[1:3], ["2/2" if has("webhook") else "1/1", "Running"], shown)
    pod, = pods_of(NAMESPACE, "gpu-scheduler")
    equal(pod["spec"]["nodeName"], "real-node")
    equal([one["restartCount"] for one in pod["status"]["containerStatuses"]],
          [0] * len(pod["spec"]["containers"]))


@test
def it_runs_without_rights_over_its_machine():
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
            if words[:2] == [b"gpu-scheduler", b"kube"] and f"--port={ports()[0]}".encode() in words:
                found.append(path.parent)
        except OSError:
            pass
    equal(len(found), 1)
    status = (found[0] / "status").read_text()
    for line in ("Uid:\t10001\t10001", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000",
                 "NoNewPrivs:\t1", "Seccomp:\t2"):
        check(line in status, f"{line} is not in {status}")
    root = next(line.split() for line in (found[0] / "mounts").read_text().splitlines()
                if line.split()[1] == "/")
    check("ro" in root[3].split(","), root)


def port_forward(do):
    """As the documents say: kubectl port-forward svc/gpu-scheduler PORT:8080."""
    port = free_port()
    program = Program("port-forward", [cluster().binaries["kubectl"], "port-forward", "-n", NAMESPACE,
                                       "svc/gpu-scheduler", f"{port}:8080"], cluster().folder,
                      {**os.environ, "KUBECONFIG": str(cluster().kubeconfig)}).start()
    try:
        wait_for(lambda: "Forwarding from" in program.tail(), f"forwarding: {program.tail()}")
        return do(port)
    finally:
        program.stop()


@test
def its_service_answers():
    def ask(port):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=20) as answer:
            return json.load(answer)
    equal(port_forward(ask), {"status": "healthy"})
    log = kubectl("logs", "-l", "app.kubernetes.io/name=gpu-scheduler", "-c", "scheduler").out
    check("leading" in log and "orbidden" not in log, log)


MAP = [{"podIndex": 0, "nodeName": "real-node", "gpuDevices": "0,1"},
       {"podIndex": 1, "nodeName": "real-node", "gpuDevices": "3"},
       {"podIndex": 2, "nodeName": "node-0", "gpuDevices": "0,1,2"}]


def install_check(kind):
    """Without the webhook the pods read the annotation themselves."""
    helm("upgrade", "--install", "gpu-test", ROOT / CHECK, "-n", TESTS_NAMESPACE, "--create-namespace",
         "--wait", "--timeout", f"{WAIT_S}s", "--set", "image.pullPolicy=Never", "--set", f"kind={kind}",
         "--set", "testService.logInterval=1",
         "--set-json", f"gpuScheduling.schedulingMap={json.dumps(MAP)}", "--set",
         f"gpuScheduling.devicesFrom={'webhook' if has('webhook') else 'annotation'}")


def check_that_the_map_holds():
    pods = pods_of(TESTS_NAMESPACE, "gpu-scheduler-check")
    equal(sorted(pod["metadata"]["annotations"]["gpu.scheduling/allocated"] for pod in pods),
          ["node-0:0,1,2", "real-node:0,1", "real-node:3"])
    real = {f"Node: real-node, CUDA_VISIBLE_DEVICES: {ids}" for ids in ("0,1", "3")}

    def said():  # node-0 is simulated: nothing runs there
        lines = log_lines(TESTS_NAMESPACE, "gpu-scheduler-check")
        return {line for of_pod in lines.values() for line in of_pod}
    wait_for(lambda: said() == real, f"both pods log what they were given: {said()}", WAIT_S)
    for pod in pods:  # each what its own annotation says
        node_name, ids = pod["metadata"]["annotations"]["gpu.scheduling/allocated"].split(":")
        if node_name == "real-node":
            lines = log_lines(TESTS_NAMESPACE, "gpu-scheduler-check")[pod["metadata"]["name"]]
            equal(set(lines), {f"Node: real-node, CUDA_VISIBLE_DEVICES: {ids}"})
    leases = kubectl("get", "leases", "-n", NAMESPACE, "--no-headers").out
    equal(sorted(re.findall(r"^gpu-(?:real-node|node-0)-\d", leases, re.MULTILINE)),
          ["gpu-node-0-0", "gpu-node-0-1", "gpu-node-0-2", "gpu-real-node-0", "gpu-real-node-1",
           "gpu-real-node-3"])


def remove_check():
    helm("uninstall", "gpu-test", "-n", TESTS_NAMESPACE, "--wait", "--timeout", f"{WAIT_S}s")
    wait_for(lambda: not pods_of(TESTS_NAMESPACE, "gpu-scheduler-check"), "its pods end", WAIT_S)
    wait_for(lambda: "gpu-real-node" not in kubectl("get", "leases", "-n", NAMESPACE).out,
             "the leases are given back")


@test
def the_check_service_logs_the_devices_of_its_map():
    install_check("StatefulSet")
    check_that_the_map_holds()
    remove_check()


@test
def the_check_service_as_a_deployment_takes_free_indexes():
    install_check("Deployment")
    check_that_the_map_holds()
    remove_check()


def quick_start():
    """Claim and pod of the first document's quick start, as written; where the document is not there,
    the same from here."""
    if seed_documents():
        claim = next(one for one in examples() if one.where.startswith("000") and one.kind == "GpuClaim")
        pod = next(one for one in examples() if one.where.startswith("000") and one.kind == "Pod")
        return claim.text, pod.text
    return QUICK_START.split("---\n")


QUICK_START = """apiVersion: gpu.scheduling/v1
kind: GpuClaim
metadata:
  name: single-gpu
spec:
  devices:
    count: 1
    exclusivity: Exclusive
---
apiVersion: v1
kind: Pod
metadata:
  name: gpu-test
  namespace: gpu-scheduler
  annotations:
    gpu.scheduling/claim: single-gpu
spec:
  schedulerName: gpu-scheduler
  restartPolicy: Never
  containers:
    - name: cuda-test
      image: nvidia/cuda:12.4.1-runtime-ubuntu22.04
      command: ["bash","-lc","echo CVD=$CUDA_VISIBLE_DEVICES; nvidia-smi -L"]
      resources:
        limits:
          nvidia.com/gpu: "1"
"""


@test
def the_quick_start_runs():
    claim, pod = quick_start()
    for name in ("node-0", "node-1"):  # so that it runs where something runs
        kubectl("cordon", name)
    kubectl("apply", "-f", "-", stdin=claim)
    if not has("webhook"):  # who would else write it
        source = "valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['gpu.scheduling/visible-devices']\"}}"
        pod = pod.replace("    - name: cuda-test\n", "    - name: cuda-test\n      env:\n"
                          f"        - name: CUDA_VISIBLE_DEVICES\n          {source}\n")
    kubectl("apply", "-f", "-", stdin=pod)
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/gpu-test"
    bound = cluster().wait_until(path, lambda one: one["spec"].get("nodeName"), "the pod is bound", WAIT_S)
    ids = bound["metadata"]["annotations"]["gpu.scheduling/allocated"].removeprefix("real-node:")
    equal(bound["metadata"]["annotations"]["gpu.scheduling/allocated"], f"real-node:{ids}")
    claims = f"/apis/gpu.scheduling/v1/namespaces/{NAMESPACE}/gpuclaims/single-gpu"
    cluster().wait_until(claims, lambda one: one["status"].get("allocated") == f"real-node:{ids}",
                         "the claim says it too")
    cluster().wait_until(path, lambda one: one["status"]["phase"] == "Succeeded", "the pod ends", WAIT_S)
    lines = kubectl("logs", "gpu-test", "-n", NAMESPACE).out.splitlines()
    equal(lines[:2], [f"CVD={ids}", f"GPU {ids}: stand-in"])
    cluster().wait_until(claims, lambda one: one["status"]["phase"] == "Pending", "the claim is free again")
    for name in ("node-0", "node-1"):
        kubectl("uncordon", name)


@test_of("webhook")
def what_can_not_work_is_refused_at_its_creation():
    pod = {"apiVersion": "v1", "kind": "Pod",
           "metadata": {"name": "wrong-0", "annotations": {"gpu-scheduling-map": "0=real-node:x"}},
           "spec": {"schedulerName": "gpu-scheduler", "containers": [{"name": "c", "image": "none"}]}}
    told = kubectl("create", "-f", "-", stdin=json.dumps(pod), check=False)
    check(told.code != 0 and "gpu-scheduling-map" in told.err, told)
    log = kubectl("logs", "-l", "app.kubernetes.io/name=gpu-scheduler", "-n", NAMESPACE, "-c", "webhook").out
    check(log and "orbidden" not in log, log)


@test_of("webhook")
def the_webhook_takes_certificates_of_the_script():
    folder = cluster().folder / "certs"
    made = subprocess.run(["scripts/generate-webhook-certs.sh", "--namespace", NAMESPACE, "--out",
                           str(folder)], cwd=ROOT, capture_output=True, text=True, check=True)
    kubectl("delete", "secret", "gpu-scheduler-webhook-tls", "-n", NAMESPACE, "--ignore-not-found")
    kubectl("apply", "-f", folder / "webhook-tls-secret.yaml")
    helm("upgrade", "gpu-scheduler", ROOT / SCHEDULER, "-n", NAMESPACE, "--wait", "--timeout",
         f"{WAIT_S}s", *settings(), "--set", f"webhook.caBundle={made.stdout.strip()}")
    what_can_not_work_is_refused_at_its_creation()
    # One that makes its own certificate leaves the Secret of another alone, and waits.
    kubectl("delete", "secret", "gpu-scheduler-webhook-tls", "-n", NAMESPACE)


@test_of("agent")
def the_agent_reports_the_node():
    path = "/apis/gpu.scheduling/v1/gpunodestatuses/real-node"
    status = cluster().wait_until(path, lambda one: one.get("status", {}).get("total") == GPUS,
                                  "the node's GPUs are reported")["status"]
    equal([one["id"] for one in status["devices"]], list(range(GPUS)))
    shown = kubectl("get", "gns").out
    check("real-node" in shown, shown)
    log = kubectl("logs", "-l", "app.kubernetes.io/name=gpu-scheduler-agent", "-n", NAMESPACE).out
    check("orbidden" not in log, log)
    install_check("StatefulSet")
    uids = {pod["metadata"]["annotations"]["gpu.scheduling/allocated"]: pod["metadata"]["uid"]
            for pod in pods_of(TESTS_NAMESPACE, "gpu-scheduler-check")}
    expected = {0: [uids["real-node:0,1"]], 1: [uids["real-node:0,1"]], 2: [], 3: [uids["real-node:3"]]}
    cluster().wait_until(path, lambda one: {device["id"]: device["inUseBy"]
                                            for device in one["status"]["devices"]} == expected,
                         "the agent says who uses them", WAIT_S)
    remove_check()


@test
def an_upgrade_keeps_it_running():
    helm("upgrade", "gpu-scheduler", ROOT / SCHEDULER, "-n", NAMESPACE, "--wait", "--timeout",
         f"{WAIT_S}s", *settings(), "--set-json", "config.scoringWeights.topologyAlignment=0.5")
    shown = kubectl("get", "configmap", "topology-scheduler-config", "-n", NAMESPACE, "-o", "yaml").out
    check("topologyAlignment: 0.5" in shown, shown)
    helm("uninstall", "gpu-scheduler", "-n", NAMESPACE, "--wait", "--timeout", f"{WAIT_S}s")
    wait_for(lambda: not pods_of(NAMESPACE, "gpu-scheduler"), "its pods end", WAIT_S)
    check(kubectl("get", "gclaim", "single-gpu", "-n", NAMESPACE).out, "claims stay")


if __name__ == "__main__":
    reason = installation.why_not()
    if reason:
        sys.exit(skip_all(reason))
    try:
        code = main()
    finally:
        installation.stop()
    sys.exit(code)
