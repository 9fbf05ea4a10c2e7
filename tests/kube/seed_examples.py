"""The YAML examples of the documents that the product's public names come from.

They are seeds/000_*.txt ... 003_*.txt in the folder that SHARED names (default: ../shared).
"""

import json
import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SHARED = ROOT / (os.environ.get("SHARED") or "../shared")


class Example:
    """One manifest, as written; `where` says where."""

    def __init__(self, where, text):
        self.where, self.text = where, text
        self.kind = self._field("kind")
        self.api_version = self._field("apiVersion")
        self.name = self._field(r"metadata:\n(?:  .*\n)*?  name")
        self.namespace = self._field(r"metadata:\n(?:  .*\n)*?  namespace")

    def _field(self, name):
        found = re.search(rf"^{name}: *(\S+)", self.text, re.MULTILINE)
        return found and found[1]

    def __repr__(self):
        return f"{self.kind} {self.name} ({self.where})"


def documents():
    return sorted(path for number in range(4) for path in SHARED.glob(f"seeds/{number:03}_*.txt"))


def examples():
    """Manifests in ```yaml blocks and in here-documents; fragments and chart values are left out."""
    found = []
    for document in documents():
        text = document.read_text(errors="replace")
        blocks = list(re.finditer(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
        blocks += re.finditer(r"<<'?EOF'?\n(.*?)^EOF", text, re.MULTILINE | re.DOTALL)
        for block in sorted(blocks, key=lambda match: match.start()):
            line = text.count("\n", 0, block.start()) + 1
            example = Example(f"{document.name.split('_')[0]}:{line}", block[1])
            if example.kind and example.api_version:
                found.append(example)
    return found


def completed(cluster, example):
    """The manifest with what Kubernetes demands and the document leaves out, and nothing else: an
    image, a restart policy, a selector, a pod template. As an object."""
    read = cluster.kubectl("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-",
                           stdin=example.text)
    body = json.loads(read.out)
    if body["kind"] not in ("Job", "Deployment"):
        return body
    template = body["spec"].setdefault("template", {})
    pod = template.setdefault("spec", {"schedulerName": "topology-aware-scheduler"})
    for container in pod.setdefault("containers", [{"name": "worker"}]):
        container.setdefault("image", "gpu-workload:latest")
    if body["kind"] == "Job":
        pod.setdefault("restartPolicy", "Never")
    else:
        labels = template.setdefault("metadata", {}).setdefault("labels", {"app": example.name})
        body["spec"].setdefault("selector", {"matchLabels": labels})
    return body


def apply_with_status(cluster, example):
    """A GpuNodeStatus, its status too, as its agent writes it."""
    cluster.apply(example.text)
    status = completed(cluster, example)["status"]
    cluster.patch(f"/apis/gpu.scheduling/v1/gpunodestatuses/{example.name}/status",
                  {"status": status})
