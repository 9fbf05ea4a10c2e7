"""Local volumes, their classes and the claims of pods in namespace default."""

from scheduled import cluster

VOLUME_CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


def storage_class(name, mode="WaitForFirstConsumer"):
    cluster().request("POST", "/apis/storage.k8s.io/v1/storageclasses", {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": mode})


def volume(name, node, storage, size="10Gi", modes=("ReadWriteOnce",), **spec):
    cluster().request("POST", "/api/v1/persistentvolumes", {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"capacity": {"storage": size}, "accessModes": list(modes), "storageClassName": storage,
                 "persistentVolumeReclaimPolicy": "Retain", "local": {"path": "/mnt/" + name},
                 "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                     {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]}}, **spec}})
    cluster().wait_until(f"/api/v1/persistentvolumes/{name}",
                         lambda one: one["status"].get("phase") in ("Available", "Bound"), f"{name} is there")


def volume_claim(name, storage, size="5Gi", modes=("ReadWriteOnce",), **spec):
    cluster().request("POST", VOLUME_CLAIMS, {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": list(modes), "storageClassName": storage,
                 "resources": {"requests": {"storage": size}}, **spec}})
