#!/usr/bin/env python3
"""The charts and deploy/ in a real control plane whose nodes are simulated: taken by the API server,
installed, upgraded, removed, and each account with the rights that it needs and no others."""

import json
import pathlib
import re
import subprocess
import sys
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
from control_plane import ControlPlane
from charts import AUTHORITY, CHECK, SCHEDULER, VALUE_SETS, pod_of, rendered, rendered_text
from processes import Program, free_port
from rbac_rows import ROWS, WEBHOOK_ROWS
from service import BINARY, ROOT, check, equal, main, test, wait_for

NAMESPACE = "gpu-scheduler"
_shared = {}


def cluster():
    if "cluster" not in _shared:
        _shared["cluster"] = ControlPlane(nodes=3, gpus=4, scheduler=True).start()
        _shared["cluster"].kubectl("create", "namespace", NAMESPACE)
    return _shared["cluster"]


def install(*arguments, release="gpu-scheduler", chart=SCHEDULER, namespace=NAMESPACE, **options):
    return cluster().run("helm", "upgrade", "--install", release, ROOT / chart, "-n", namespace,
                         "--wait", "--timeout", "120s", *arguments, timeout=180, **options)


def ready_containers():
    """READY of the pods as `kubectl get pods` shows them, with the documents' own words."""
    told = cluster().kubectl("get", "pods", "-l", "app.kubernetes.io/name=gpu-scheduler", "-n",
                             NAMESPACE, "--no-headers").out
    return [line.split()[1] for line in told.splitlines() if "Terminating" not in line]


@test
def helm_installs_it():
    told = install()
    check("schedules the pods whose schedulerName is gpu-scheduler or topology-aware-scheduler"
          in told.out, told)
    check("nobody writes CUDA_VISIBLE_DEVICES into pods" in told.out
          and "--reuse-values --set webhook.enabled=true" in told.out, told)
    equal(ready_containers(), ["1/1"])
    kinds = cluster().kubectl("get", "gclaim,gns,gtenant,schedcfg", "-A")
    check("No resources found" in kinds.err, kinds)
    for kind, name in (("service", "gpu-scheduler"), ("serviceaccount", "gpu-scheduler"),
                       ("pdb", "gpu-scheduler"), ("configmap", "topology-scheduler-config"),
                       ("daemonset", "gpu-scheduler-agent")):
        cluster().kubectl("get", kind, name, "-n", NAMESPACE)
    ports = cluster().get(f"/api/v1/namespaces/{NAMESPACE}/services/gpu-scheduler")["spec"]["ports"]
    equal(ports[0]["port"], 8080)
    agents = cluster().get(f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/gpu-scheduler-agent")
    equal(agents["status"]["desiredNumberScheduled"], 3)


def subresource_words(resource):
    """`can-i patch pods/status` means a name to kubectl: subresources have a flag of their own."""
    name, _, rest = resource.partition("/")
    is_sub = rest in ("status", "binding", "eviction", "exec", "token")
    return [name, f"--subresource={rest}"] if is_sub else [resource]


def check_rows(rows):
    wrong = []
    for row in rows.strip().splitlines():
        expected, account, verb, resource, *where = row.split()
        told = cluster().kubectl("auth", "can-i", verb, *subresource_words(resource), *where,
                                 f"--as=system:serviceaccount:{NAMESPACE}:{account}", check=False)
        if told.out.strip() != expected:
            wrong.append(f"{row}: {told.out.strip()} {told.err.strip()}")
    check(not wrong, "\n".join(wrong))


@test
def each_account_may_do_what_it_must_and_no_more():
    check_rows(ROWS)


@test
def an_agent_reports_for_its_own_node_only():
    """With a token as its pod has it."""
    plane = cluster()
    agents = plane.get(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app.kubernetes.io/component=agent")
    agent = next(one for one in agents["items"] if one["spec"]["nodeName"] == "node-1")
    token = plane.kubectl("create", "token", "gpu-scheduler-agent", "-n", NAMESPACE,
                          "--bound-object-kind=Pod", f"--bound-object-name={agent['metadata']['name']}").out
    own = plane.write_kubeconfig("agent-of-node-1", token=token.strip())

    def report(name, kubeconfig):
        status = {"apiVersion": "gpu.scheduling/v1", "kind": "GpuNodeStatus", "metadata": {"name": name},
                  "spec": {"nodeName": name}}
        return plane.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(status),
                             kubeconfig=kubeconfig, check=False)
    equal(report("node-1", own).code, 0)
    wait_for(lambda: "the agent on node-1 reports for its own node only, not for node-0"
             in report("node-0", own).err, "the policy is in force")
    equal(report("node-0", plane.kubeconfig).code, 0, "an administrator may")
    refused = plane.kubectl("patch", "gns", "node-0", "--subresource=status", "--type=merge", "-p",
                            '{"status":{"total":0}}', kubeconfig=own, check=False)
    check("its own node only" in refused.err, refused)
    plane.kubectl("delete", "gns", "--all")


@test
def whoever_edits_a_namespace_may_edit_its_claims():
    cluster().kubectl("create", "rolebinding", "ada", "--clusterrole=edit", "--user=ada")
    cluster().kubectl("create", "rolebinding", "bob", "--clusterrole=view", "--user=bob")
    for who, verb, expected in (("ada", "create", "yes"), ("bob", "get", "yes"), ("bob", "create", "no")):
        def answer(verb=verb, who=who):
            return cluster().kubectl("auth", "can-i", verb, "gpuclaims.gpu.scheduling", "--as", who,
                                     check=False).out.strip()
        wait_for(lambda: answer() == expected, f"{who} may {verb} claims: {expected}")


@test
def the_scheduler_works_with_its_account_and_arguments_alone():
    """The container's own arguments and ConfigMap, and nothing but the account's rights."""
    plane = cluster()
    deployment = plane.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/gpu-scheduler")
    arguments = pod_of(deployment)["containers"][0]["args"]
    config = plane.folder / "config.yaml"
    config.write_text(plane.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/topology-scheduler-config")
                      ["data"]["config.yaml"])
    port = free_port()
    replaced = {"--bind": "127.0.0.1", "--port": str(port), "--config": str(config)}
    arguments = [f"{flag}={replaced[flag]}" if flag in replaced else word
                 for word in arguments for flag in [word.split("=")[0]]]
    kubeconfig = plane.service_account_kubeconfig(NAMESPACE, "gpu-scheduler")
    program = Program("scheduler", [BINARY, *arguments, "--kubeconfig", kubeconfig], plane.folder)
    program.start()
    try:
        schedules_a_pod_and_evicts_one(plane, port)
    finally:
        program.stop()
    check("orbidden" not in program.tail(10000), program.tail(100))


def schedules_a_pod_and_evicts_one(plane, port):
    pods = "/api/v1/namespaces/default/pods"
    plane.apply("""
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
---
apiVersion: gpu.scheduling/v1
kind: GpuClaim
metadata: {name: one}
spec: {devices: {count: 1, exclusivity: Exclusive}}
""")

    def pod(name, gpus, **spec):
        limits = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}} if gpus else {}
        annotations = {} if gpus else {"gpu.scheduling/claim": "one"}
        return {"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "annotations": annotations},
                "spec": {"schedulerName": "topology-aware-scheduler", **spec,
                         "terminationGracePeriodSeconds": 0,
                         "containers": [{"name": "c", "image": "none", **limits}]}}
    plane.request("POST", pods, pod("claimed", 0))
    for number in range(3):
        plane.request("POST", pods, pod(f"full-{number}", 3 if number == 0 else 4))
    plane.request("POST", pods, pod("large", 5))
    for name in ("claimed", "full-0", "full-1", "full-2"):
        plane.wait_until(f"{pods}/{name}", lambda one: one["spec"].get("nodeName"), f"{name} is bound")
    plane.wait_until("/apis/gpu.scheduling/v1/namespaces/default/gpuclaims/one",
                     lambda one: one.get("status", {}).get("phase") == "Bound", "the claim is bound")
    plane.wait_until(f"{pods}/large", lambda one: any(
        said["status"] == "False" and "5 GPUs" in said["message"]
        for said in one["status"].get("conditions", [])), "the large one is told why it waits")
    wait_for(lambda: "FailedScheduling" in plane.kubectl("describe", "pod", "large").out, "an event")
    plane.request("POST", pods, pod("urgent", 4, priorityClassName="urgent"))
    plane.wait_until(f"{pods}/urgent", lambda one: one["spec"].get("nodeName"), "the urgent one is bound")
    leases = plane.kubectl("get", "leases", "-n", NAMESPACE, "--no-headers").out
    check(len([one for one in leases.splitlines() if one.startswith("gpu-node")]) == 12, leases)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
        equal(json.load(answer)["status"], "healthy")
    plane.kubectl("delete", "pods", "--all", "--wait")


@test
def an_upgrade_adds_the_webhook():
    install("--set", "webhook.enabled=true", "--set", f"webhook.caBundle={AUTHORITY}",
            "--set", "replicaCount=2")
    wait_for(lambda: ready_containers() == ["2/2", "2/2"], "the pods are 2/2")
    cluster().kubectl("get", "mutatingwebhookconfiguration", "gpu-scheduler-webhook")
    # A pod of somebody else does not wait for a webhook that is not there; one of ours does.
    for name, scheduler, code in (("theirs", "default-scheduler", 0), ("ours", "gpu-scheduler", 1)):
        told = cluster().kubectl("run", name, "--image=none", "--dry-run=server", check=False,
                                 *["--overrides", json.dumps({"spec": {"schedulerName": scheduler}})])
        equal(told.code, code, f"{name}: {told}")
    told = install("--set", "webhook.enabled=true", "--set", "webhook.separate=true")
    check("The webhook gpu-scheduler-webhook writes CUDA_VISIBLE_DEVICES into them" in told.out, told)
    check_rows(WEBHOOK_ROWS)
    pods = cluster().get(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector="
                         "app.kubernetes.io/name%3Dgpu-scheduler-webhook")["items"]
    equal({one["spec"]["serviceAccountName"] for one in pods}, {"gpu-scheduler-webhook"})


@test
def helm_removes_it_and_leaves_the_claims():
    cluster().run("helm", "uninstall", "gpu-scheduler", "-n", NAMESPACE, "--wait")
    left = cluster().kubectl("get", "all,cm,sa,role,rolebinding,pdb", "-n", NAMESPACE, "-o", "name").out
    check("gpu-scheduler" not in re.sub(r"pod/\S+", "", left), left)
    roles = cluster().kubectl("get", "clusterrole,clusterrolebinding", "-o", "name").out
    check("gpu-scheduler" not in roles, roles)
    configured = cluster().kubectl("get", "mutatingwebhookconfigurations", "-o", "name").out
    equal(configured, "")
    equal(cluster().kubectl("get", "gclaim", "-o", "name").out, "gpuclaim.gpu.scheduling/one\n")
    install()  # and it comes back to them
    equal(ready_containers(), ["1/1"])
    cluster().run("helm", "uninstall", "gpu-scheduler", "-n", NAMESPACE, "--wait")


@test
def kept_definitions_are_handed_over_to_another_namespace():
    """As docs/troubleshooting.md says."""
    cluster().kubectl("create", "namespace", "elsewhere")
    told = install(namespace="elsewhere", check=False)
    check(told.code != 0 and 'invalid ownership metadata; annotation validation error: key '
          '"meta.helm.sh/release-namespace" must equal "elsewhere"' in told.err, told)
    install("--set", "crds.install=false", namespace="elsewhere")
    names = cluster().kubectl("get", "crd", "-o", "jsonpath={.items[*].metadata.name}").out.split()
    document = (ROOT / "docs/troubleshooting.md").read_text()
    equal([name for name in names if name not in document], [])
    cluster().kubectl("annotate", "--overwrite", "crd", *names, "meta.helm.sh/release-name=gpu-scheduler",
                      "meta.helm.sh/release-namespace=elsewhere")
    install(namespace="elsewhere")
    cluster().run("helm", "uninstall", "gpu-scheduler", "-n", "elsewhere", "--wait")


@test
def the_check_service_is_installed_by_its_chart():
    cluster().run("helm", "install", "gpu-test", ROOT / CHECK, "-n", "gpu-scheduler-tests",
                  "--create-namespace")
    told = cluster().kubectl("get", "statefulset", "-l", "app.kubernetes.io/name=gpu-scheduler-check",
                             "-n", "gpu-scheduler-tests", "--no-headers").out
    equal(told.split()[1], "0/3", told)  # nobody schedules them here
    cluster().run("helm", "uninstall", "gpu-test", "-n", "gpu-scheduler-tests")


@test
def pods_keep_to_the_restricted_standard():
    """Kubernetes' own admission judges them. Only the agent, which asks the kubelet, can't."""
    cluster().kubectl("create", "namespace", "strict")
    cluster().kubectl("label", "namespace", "strict", "pod-security.kubernetes.io/enforce=restricted")
    cluster().wait_until("/api/v1/namespaces/strict/serviceaccounts/default", bool, "its account is there")
    values = {"webhook.enabled": True, "webhook.separate": True}
    workloads = [one for one in [*rendered(SCHEDULER, values), *rendered(CHECK)]
                 if one["kind"] in ("Deployment", "StatefulSet", "DaemonSet")]
    equal(len(workloads), 4)
    for workload in workloads:
        name = workload["metadata"]["name"]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "strict"},
               "spec": {**pod_of(workload), "serviceAccountName": "default"}}
        told = cluster().kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod), check=False)
        equal(told.code, 1 if workload["kind"] == "DaemonSet" else 0, f"{name}: {told}")
        if workload["kind"] == "DaemonSet":
            check("hostPath" in told.err and "runAsNonRoot" in told.err, told)


@test
def kubectl_installs_deploy():
    """As `scripts/deploy.sh` and `kubectl apply -f deploy/`; the documents look in kube-system."""
    cluster().kubectl("delete", "crd", "--all", "--wait=false")
    wait_for(lambda: not cluster().kubectl("get", "crd", "-o", "name").out, "no definitions", 300)
    path = cluster().binaries["kubectl"]
    environment = {"KUBECTL": str(path), "KUBECONFIG": str(cluster().kubeconfig),
                   "PATH": "/usr/bin:/bin", "HOME": str(cluster().folder)}

    def deploy(*arguments):
        return subprocess.run(["scripts/deploy.sh", *arguments], cwd=ROOT, env=environment, text=True,
                              capture_output=True, timeout=300)
    checked = deploy("--dry-run")
    equal(checked.returncode, 0, checked.stderr)
    done = deploy()
    equal(done.returncode, 0, done.stdout + done.stderr)
    check('"gpu-scheduler" successfully rolled out' in done.stdout, done.stdout)
    pods = cluster().kubectl("get", "pods", "-n", "kube-system", "-l", "app=topology-scheduler",
                             "--no-headers").out
    check("1/1" in pods and "Running" in pods, pods)
    config = cluster().kubectl("get", "configmap", "-n", "kube-system", "topology-scheduler-config",
                               "-o", "yaml").out
    check("resourceAvailability: 0.4" in config, config)
    again = cluster().kubectl("apply", "-f", ROOT / "deploy").out
    check(all(line.endswith("unchanged") for line in again.splitlines()
              if "poddisruptionbudget" not in line), again)  # kubectl always says `configured`
    equal(deploy("--delete").returncode, 0)
    check(cluster().kubectl("get", "crd", "gpuclaims.gpu.scheduling").out)
    equal(deploy("--nonsense").returncode, 2)


@test
def the_api_server_takes_everything_that_is_rendered():
    """Last, because it needs the resource definitions, and a cluster lets go of them only slowly."""
    cluster().kubectl("create", "namespace", "leases")
    foreign = ("cert-manager.io", "monitoring.coreos.com")  # not served here
    for what, values in VALUE_SETS.items():
        objects = [one for one in rendered(SCHEDULER, values)
                   if one["apiVersion"].split("/")[0] not in foreign]
        told = cluster().apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}) + "\n",
                               "--dry-run=server", "--validate=strict")
        equal(len(told.out.splitlines()), len(objects), what)
    for values in ({}, {"kind": "Deployment"}):
        cluster().apply(rendered_text(CHECK, values), "--dry-run=server", "--validate=strict")


if __name__ == "__main__":
    sys.exit(main())
