"""The product, installed on a real node from its own images: a control plane, a kubelet beside two simulated
nodes, and both charts.

There is no kube-proxy here: our pods use the network of the host and are told where the API server is.
"""

import json

from control_plane import ControlPlane
import built_images
import real_node
from processes import free_port

# What is installed and tested here. It must be all that the binary can do: see install_test.py.
COMPONENTS = {"kube", "webhook", "agent"}
NAMESPACE, TESTS_NAMESPACE = "gpu-scheduler", "gpu-scheduler-tests"
GPUS = 4
WAIT_S = 120
CUDA_IMAGE = "docker.io/nvidia/cuda:12.4.1-runtime-ubuntu22.04"
# A stand-in for NVIDIA's image: its bash is real, its nvidia-smi lists what the container was given.
CUDA_DOCKERFILE = """FROM docker.io/library/debian:12
COPY nvidia-smi /usr/bin/nvidia-smi
RUN chmod 755 /usr/bin/nvidia-smi
"""
NVIDIA_SMI = """#!/bin/bash
IFS=,
for id in $CUDA_VISIBLE_DEVICES; do echo "GPU $id: stand-in"; done
"""
_shared = {}


def has(component):
    return component in COMPONENTS


def cluster():
    if "cluster" not in _shared:
        # Webhooks are called at their pods' addresses, since nobody serves those of Services.
        plane = ControlPlane(nodes=2, gpus=GPUS, scheduler=True,
                             apiserver_flags=["--enable-aggregator-routing=true"]).start()
        _shared["cluster"] = plane
        _shared["node"] = real_node.RealNode(plane, gpus=GPUS).start()
        for archive in built_images.build("scheduler", "check").values():
            node().load_image(archive)
        node().load_image(built_images.build_from(CUDA_IMAGE, CUDA_DOCKERFILE,
                                                  {"nvidia-smi": NVIDIA_SMI}))
        plane.kubectl("create", "namespace", NAMESPACE)
        plane.kubectl("config", "set-context", "--current", "--namespace", NAMESPACE)
    return _shared["cluster"]


def node():
    return _shared["node"]


def ports():
    """Of scheduler, webhook, the webhook's health, agent: free ones of the host."""
    return _shared.setdefault("ports", [free_port() for _ in range(4)])


def settings():
    scheduler, webhook, health, agent = ports()
    return [f"--set={one}" for one in (
        "image.pullPolicy=Never", "hostNetwork=true", "agent.hostNetwork=true",
        "apiServer.host=127.0.0.1", f"apiServer.port={cluster().port}",
        "nodeSelector.type=real", "agent.nodeSelector.type=real",
        f"scheduler.port={scheduler}", f"webhook.port={webhook}", f"webhook.healthPort={health}",
        f"agent.port={agent}", f"agent.podResourcesPath={node().pod_resources_socket.parent}",
        f"agent.simulate={GPUS}xH100-SXM5-80GB",
        f"webhook.enabled={json.dumps(has('webhook'))}", f"agent.enabled={json.dumps(has('agent'))}")]


def helm(*arguments, **options):
    return cluster().run("helm", *arguments, timeout=WAIT_S + 60, **options)


def kubectl(*arguments, **options):
    return cluster().kubectl(*arguments, **options)


def pods_of(namespace, name):
    path = f"/api/v1/namespaces/{namespace}/pods?labelSelector=app.kubernetes.io/name%3D{name}"
    return cluster().get(path)["items"]


def log_lines(namespace, name):
    """The lines of all pods, by pod; read as a user reads them."""
    return {pod["metadata"]["name"]: kubectl("logs", "-n", namespace, pod["metadata"]["name"]
                                             ).out.splitlines()
            for pod in pods_of(namespace, name) if pod["spec"]["nodeName"] == "real-node"}


def why_not():
    """Why it can't be shown here; empty where it can."""
    reason = real_node.why_not() or built_images.why_not()
    if not reason:
        try:
            built_images.ensure_base()
        except built_images.Unavailable as unavailable:
            reason = str(unavailable)
    return reason


def stop():
    for name in ("node", "cluster"):
        if name in _shared:
            _shared[name].stop()
