"""Simulated GPU nodes as objects of Kubernetes: a network of leaves and spines, and what the agent
of each node would report."""

NODES_PER_LEAF = 4
LEAVES_PER_SPINE = 4
MODEL, PRODUCT, MEMORY_MIB = "H100-SXM5-80GB", "NVIDIA-H100-80GB-HBM3", 81559


def gpu_node(name, number, gpus=8, labels=None):
    """A node with labels as GPU feature discovery and our topology write them."""
    leaf = number // NODES_PER_LEAF
    resources = {"cpu": "128", "memory": "1024Gi", "ephemeral-storage": "1Ti", "pods": "110"}
    if gpus:
        resources["nvidia.com/gpu"] = str(gpus)
    found = {"nvidia.com/gpu.product": PRODUCT, "nvidia.com/gpu.memory": str(MEMORY_MIB),
             "nvidia.com/gpu.count": str(gpus), "nvidia.com/gpu.present": "true"} if gpus else {}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                       "kubernetes.io/arch": "amd64", "type": "kwok",
                       "topology.kubernetes.io/zone": "zone-0",
                       "topology.scheduler/leaf": f"leaf-{leaf}",
                       "topology.scheduler/spine": f"spine-{leaf // LEAVES_PER_SPINE}",
                       **found, **(labels or {})}},
        "status": {"capacity": resources, "allocatable": resources,
                   "addresses": [{"type": "InternalIP", "address": "127.0.0.1"},
                                 {"type": "Hostname", "address": name}],
                   "nodeInfo": {"architecture": "amd64", "operatingSystem": "linux",
                                "kubeletVersion": "kwok", "kubeProxyVersion": "",
                                "containerRuntimeVersion": "kwok", "kernelVersion": "kwok",
                                "osImage": "kwok", "bootID": "", "machineID": "",
                                "systemUUID": ""}}}


def gpu_node_status(name, gpus=8, island_size=8, bandwidth=900, unhealthy=()):
    """The status of a GpuNodeStatus: islands of `island_size`, all healthy but those named."""
    devices = [{"id": number, "uuid": f"GPU-{name}-{number}", "model": MODEL,
                "memoryMiB": MEMORY_MIB, "temperatureC": 40, "numaNode": number * 2 // max(gpus, 1),
                "island": f"nvlink-group-{number // island_size}", "bandwidthGBps": bandwidth,
                "health": "Unhealthy" if number in unhealthy else "Healthy", "inUseBy": [],
                "rdma": f"mlx5_{number}"}
               for number in range(gpus)]
    return {"total": gpus, "devices": devices,
            "fabric": {"rdmaPorts": gpus, "rdmaGbps": 400, "gpudirectRdma": True, "cufile": True}}
