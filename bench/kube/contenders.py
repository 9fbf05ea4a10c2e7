"""The schedulers that are measured: started when told, with their processor time and memory."""

import os
import pathlib

from processes import Program, free_port

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OURS = os.environ.get("GPU_SCHEDULER_BINARY") or str(ROOT / "build/release/gpu-scheduler")
TICKS = os.sysconf("SC_CLK_TCK")
# Without it, the stock scheduler sends 50 requests a second.
STOCK_CONFIG = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}, qps: 5000, burst: 5000}}
leaderElection: {{leaderElect: {elects}}}
"""


class Contender:
    """One scheduler on one cluster."""

    def __init__(self, name, pods_of, program):
        self.name, self.pods_of, self.program = name, pods_of, program

    def start(self):
        self.program.start()
        return self

    def cpu_s(self):
        fields = pathlib.Path(f"/proc/{self.program.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def peak_mib(self):
        for line in pathlib.Path(f"/proc/{self.program.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        return 0.0

    def stop(self):
        self.program.stop()

    def kill(self):
        self.program.kill()


def ours(cluster, leases=True, name="gpu-scheduler"):
    if cluster.find("/api/v1/namespaces/gpu-scheduler") is None:
        cluster.request("POST", "/api/v1/namespaces", {
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu-scheduler"}})
    command = [OURS, "kube", "--kubeconfig", cluster.kubeconfig, "--port", free_port(),
               *([] if leases else ["--no-leases"])]
    return Contender(f"gpu-scheduler{'' if leases else ' without leases'}", "gpu-scheduler",
                     Program(name, command, cluster.folder))


def stock(cluster, elects=False, name="kube-scheduler"):
    config = cluster.folder / f"{name}.yaml"
    config.write_text(STOCK_CONFIG.format(kubeconfig=cluster.kubeconfig, elects=str(elects).lower()))
    command = [cluster.binaries["kube-scheduler"], f"--config={config}", "--bind-address=127.0.0.1",
               f"--secure-port={free_port()}"]
    return Contender("kube-scheduler", "default-scheduler",
                     Program(name, command, cluster.folder))
