#!/usr/bin/env python3
"""The charts, deploy/, argocd/ and cluster/ without a cluster: linted, rendered, and refused where values
are wrong. chart_install_test.py installs them, install_test.py runs them on a real node.

KinD and Argo CD can't run here: their files are compared with the main fields of the public schemas."""

import filecmp
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration"), str(HERE.parent.parent / "scripts")]
from charts import (AUTHORITY, CHECK, SCHEDULER, VALUE_SETS, Refused, documents, helm, helm_path, of_kind,
                    pod_of, rendered, rendered_text, settings)
from service import ROOT, check, equal, main, test

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


@test
def the_charts_pass_helm_lint():
    for chart in (SCHEDULER, CHECK):
        told = helm("lint", "--strict", chart)
        check("0 chart(s) failed" in told, told)
    for values in VALUE_SETS.values():
        helm("lint", "--strict", SCHEDULER, *settings(values))


@test
def the_values_of_the_documents_arrive():
    objects = rendered(SCHEDULER, {
        "scheduler.name": "mine", "scheduler.names": ["other"], "scheduler.image.tag": "v0.2.0",
        "image.repository": "registry.example/gpu-scheduler", "webhook.enabled": True,
        "webhook.caBundle": AUTHORITY, "webhook.excludeNamespaces": ["a", "b"],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"},
                      "limits": {"cpu": "500m", "memory": "512Mi"}},
        "nodeSelector": {CONTROL_PLANE: ""}})
    pod = pod_of(of_kind(objects, "Deployment"))
    scheduler, webhook = pod["containers"]
    equal((scheduler["name"], webhook["name"]), ("scheduler", "webhook"))
    equal(scheduler["image"], "registry.example/gpu-scheduler:v0.2.0")
    equal(webhook["image"], "registry.example/gpu-scheduler:latest")
    equal(scheduler["resources"]["limits"], {"cpu": "500m", "memory": "512Mi"})
    equal(pod["nodeSelector"], {CONTROL_PLANE: ""})
    # Where there are workers, control planes are tainted.
    equal(pod["tolerations"], [{"key": CONTROL_PLANE, "operator": "Exists", "effect": "NoSchedule"}])
    for container in (scheduler, webhook):
        names = [word for word in container["args"] if word.startswith("--scheduler-name=")]
        equal(names, ["--scheduler-name=mine", "--scheduler-name=other"])
    check("--exclude-namespace=b" in webhook["args"], webhook["args"])
    for one in of_kind(objects, "MutatingWebhookConfiguration", "gpu-scheduler-webhook")["webhooks"]:
        equal(one["clientConfig"]["caBundle"], AUTHORITY)
        equal(one["namespaceSelector"]["matchExpressions"][0]["values"], ["a", "b"])
        equal(one["failurePolicy"], "Fail")


@test
def scheduler_and_webhook_name_devices_alike():
    def arguments(**values):
        objects = rendered(SCHEDULER, {"webhook.enabled": True, **values})
        return [one["args"] for one in pod_of(of_kind(objects, "Deployment"))["containers"]]

    for words in arguments():
        check("--device-naming=index" in words, words)
    for words in arguments(deviceNaming="uuid"):
        check("--device-naming=uuid" in words, words)
    flags = ("--nvidia-visible-devices", "--kubelet-chooses")
    for words in arguments():
        check(not [word for word in words if word in flags])
    scheduler, webhook = arguments(**{"webhook.nvidiaVisibleDevices": True, "kubeletChooses": True})
    equal([word for word in webhook if word in flags], list(flags))
    check("--kubelet-chooses" in scheduler, scheduler)


@test
def without_the_webhook_there_is_one_container_and_no_configuration():
    objects = rendered(SCHEDULER)
    equal([one["name"] for one in pod_of(of_kind(objects, "Deployment"))["containers"]], ["scheduler"])
    check(not [one for one in objects if "Webhook" in one["kind"]])
    check(not [one for one in objects if one["kind"] == "ServiceMonitor"])


@test
def a_webhook_apart_has_an_account_of_its_own():
    objects = rendered(SCHEDULER, {"webhook.enabled": True, "webhook.separate": True})
    pods = {one["metadata"]["name"]: pod_of(one) for one in objects if one["kind"] == "Deployment"}
    equal({name: pod["serviceAccountName"] for name, pod in pods.items()},
          {"gpu-scheduler": "gpu-scheduler", "gpu-scheduler-webhook": "gpu-scheduler-webhook"})
    binding = of_kind(objects, "ClusterRoleBinding", "gpu-scheduler-webhook")
    equal([one["name"] for one in binding["subjects"]], ["gpu-scheduler-webhook"])
    equal(pods["gpu-scheduler-webhook"]["tolerations"], pods["gpu-scheduler"]["tolerations"])


@test
def every_container_is_locked_in():
    for what, values in VALUE_SETS.items():
        workloads = [one for one in rendered(SCHEDULER, values)
                     if one["kind"] in ("Deployment", "DaemonSet")]
        check(workloads, what)
        for workload in [*workloads, of_kind(rendered(CHECK), "StatefulSet")]:
            pod, name = pod_of(workload), f"{workload['metadata']['name']}, {what}"
            equal(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"}, name)
            if workload["kind"] != "DaemonSet":  # the kubelet's socket is root's
                equal(pod["securityContext"]["runAsNonRoot"], True, name)
            for container in pod["containers"]:
                equal(container["securityContext"],
                      {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                       "capabilities": {"drop": ["ALL"]}}, name)
                check(container["resources"]["limits"]["memory"], name)


@test
def wrong_values_are_refused_with_their_name():
    for chart, values, said in (
            (SCHEDULER, {"webhok.enabled": True}, "webhok"),
            (SCHEDULER, {"webhook.failurePolicy": "Maybe"}, "failurePolicy"),
            (SCHEDULER, {"webhook.caBundle": "not base64!"}, "caBundle"),
            (SCHEDULER, {"webhook.port": 70000}, "port"),
            (SCHEDULER, {"replicaCount": "two"}, "replicaCount"),
            (SCHEDULER, {"scheduler.name": ""}, "name"),
            (SCHEDULER, {"config.scoringWeights.topologyAlignment": 2}, "topologyAlignment"),
            (SCHEDULER, {"config.placementStrategy": "scattered"}, "placementStrategy"),
            (SCHEDULER, {"deviceNaming": "name"}, "deviceNaming"),
            (SCHEDULER, {"image.pullPolicy": "Sometimes"}, "pullPolicy"),
            (SCHEDULER, {"resources.limit": {}}, "limit"),
            (CHECK, {"gpuScheduling.schedulingMap": [{"podIndex": 0, "nodeName": "n", "gpuDevices": "0-1"}]},
             "gpuDevices"),
            (CHECK, {"gpuScheduling.schedulingMap": [{"podIndex": 0, "gpuDevices": "0"}]}, "nodeName"),
            (CHECK, {"testService.logInterval": 0}, "logInterval"),
            (CHECK, {"kind": "DaemonSet"}, "kind")):
        try:
            rendered_text(chart, values)
        except Refused as refused:
            check(said in str(refused), f"{values}: {refused}")
        else:
            raise AssertionError(f"{values} is taken")


@test
def the_check_service_has_the_map_of_its_values():
    values = {"replicaCount": 2, "testService.logInterval": 3, "gpuScheduling": {
        "enabled": True, "schedulerName": "gpu-scheduler", "schedulingMap": [
            {"podIndex": 0, "nodeName": "node1", "gpuDevices": "0,1"},
            {"podIndex": 1, "nodeName": "node2", "gpuDevices": "2"}]}}
    template = of_kind(rendered(CHECK, values), "StatefulSet")["spec"]["template"]
    equal(template["metadata"]["annotations"]["gpu-scheduling-map"], "0=node1:0,1\n1=node2:2\n")
    equal(template["spec"]["schedulerName"], "gpu-scheduler")
    check({"name": "LOG_INTERVAL", "value": "3"} in template["spec"]["containers"][0]["env"])
    off = of_kind(rendered(CHECK, {"gpuScheduling.enabled": False}), "StatefulSet")
    check("schedulerName" not in pod_of(off), pod_of(off))


@test
def copies_are_equal_to_their_source():
    """scripts/render-deploy.sh makes them."""
    crds, copies = ROOT / "api/crds", ROOT / SCHEDULER / "files/crds"
    names = sorted(path.name for path in crds.glob("*.yaml"))
    equal(sorted(path.name for path in copies.glob("*")), names)
    equal(filecmp.cmpfiles(crds, copies, names, shallow=False)[0], names)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["scripts/render-deploy.sh", folder], cwd=ROOT, check=True,
                       env={"HELM": str(helm_path()), "PATH": "/usr/bin:/bin", "HOME": folder})
        made = sorted(path.name for path in pathlib.Path(folder).glob("*.yaml"))
        equal(sorted(path.name for path in (ROOT / "deploy").glob("*.yaml")), made)
        for name in made:
            equal((ROOT / "deploy" / name).read_text(), (pathlib.Path(folder) / name).read_text(), name)


@test
def the_cluster_of_kind_has_one_and_four_nodes():
    """KinD itself can't run here; its file is compared with the fields of its v1alpha4."""
    found, = documents((ROOT / "cluster/kind-config.yaml").read_text())
    equal((found["apiVersion"], found["kind"]), ("kind.x-k8s.io/v1alpha4", "Cluster"))
    equal(set(found) - {"apiVersion", "kind", "name", "nodes", "networking", "featureGates",
                        "runtimeConfig", "kubeadmConfigPatches", "containerdConfigPatches"}, set())
    equal([one["role"] for one in found["nodes"]], ["control-plane"] + 4 * ["worker"])
    for one in found["nodes"]:
        equal(set(one) - {"role", "image", "labels", "extraMounts", "extraPortMappings"}, set())
    # The nodes of the check service's map are those of this cluster.
    workers = {found["name"] + "-worker" + number for number in ("", "2", "3", "4")}
    text = of_kind(rendered(CHECK), "StatefulSet")["spec"]["template"]["metadata"]["annotations"]
    named = {line.split("=")[1].split(":")[0] for line in text["gpu-scheduling-map"].splitlines()}
    equal(named - workers, set())


@test
def argo_cd_is_told_of_both_charts():
    """Argo CD itself can't run here; its files are compared with the main fields of its v1alpha1."""
    project, = documents((ROOT / "argocd/gpu-scheduler-project.yaml").read_text())
    many, = documents((ROOT / "argocd/gpu-scheduler-complete-applicationset.yaml").read_text())
    for one, kind in ((project, "AppProject"), (many, "ApplicationSet")):
        equal((one["apiVersion"], one["kind"]), ("argoproj.io/v1alpha1", kind))
        equal(one["metadata"]["namespace"], "argocd")
    template = many["spec"]["template"]["spec"]
    equal(template["project"], project["metadata"]["name"])
    check(template["source"]["repoURL"] in project["spec"]["sourceRepos"])
    equal(set(template), {"project", "source", "destination", "syncPolicy", "ignoreDifferences"})
    allowed = {one["namespace"] for one in project["spec"]["destinations"]
               if one["server"] == template["destination"]["server"]}
    kinds = {(one["group"], one["kind"]) for one in [*project["spec"]["clusterResourceWhitelist"],
                                                     *project["spec"]["namespaceResourceWhitelist"]]}
    elements = many["spec"]["generators"][0]["list"]["elements"]
    equal([one["path"] for one in elements], [SCHEDULER, CHECK])
    for one in elements:
        check(one["namespace"] in allowed, one)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as values:
            values.write(one["values"])
            values.flush()
            objects = documents(helm("template", one["release"], one["path"], "-n", one["namespace"],
                                     "-f", values.name))
        for made in objects:
            name, where = made["metadata"]["name"], made["metadata"].get("namespace", one["namespace"])
            check(where in allowed, f"{made['kind']} {name}: {where} is not in the project")
            group = made["apiVersion"].rpartition("/")[0]
            check((group, made["kind"]) in kinds, f"{group} {made['kind']} is not in the project")


@test
def argo_cd_syncs_the_check_service_after_the_scheduler():
    many, = documents((ROOT / "argocd/gpu-scheduler-complete-applicationset.yaml").read_text())
    elements = many["spec"]["generators"][0]["list"]["elements"]
    equal([(one["path"], one["step"]) for one in elements], [(SCHEDULER, "1"), (CHECK, "2")])
    equal(set(many["spec"]["template"]["metadata"]), {"name", "labels", "finalizers"})
    equal(many["spec"]["template"]["metadata"]["labels"], {"gpu-scheduler/step": "{{.step}}"})
    equal(many["spec"]["strategy"], {"type": "RollingSync", "rollingSync": {"steps": [
        {"matchExpressions": [{"key": "gpu-scheduler/step", "operator": "In", "values": [one["step"]]}]}
        for one in elements]}})
    # What its comment and docs/troubleshooting.md restart where Argo CD does not keep to the steps.
    objects = rendered(CHECK, release=elements[1]["release"], namespace=elements[1]["namespace"])
    command = (f"kubectl rollout restart statefulset {of_kind(objects, 'StatefulSet')['metadata']['name']} "
               f"-n {elements[1]['namespace']}\n")
    for path in ("argocd/gpu-scheduler-complete-applicationset.yaml", "docs/troubleshooting.md"):
        check(command in (ROOT / path).read_text(), f"{path} has no {command}")


@test
def scripts_are_shell():
    for script in [*(ROOT / "scripts").glob("*.sh"), *(ROOT / "cluster").glob("*.sh"),
                   ROOT / "gpu-scheduler-check/check.sh"]:
        subprocess.run(["bash", "-n", str(script)], check=True)
        check(script.stat().st_mode & 0o111, f"{script} can't be run")


if __name__ == "__main__":
    sys.exit(main())
