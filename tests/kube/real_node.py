"""A real node beside the simulated ones: a kubelet with containerd, whose containers really run.

    with ControlPlane() as cluster, RealNode(cluster, devices=["GPU-a", "GPU-b"]) as node:
        ...                                      # pods on node.name run; imagePullPolicy: Never
        node.log_of("default", "pod-a")

Needs root, containerd, runc, busybox-static and containernetworking-plugins: why_not() says what is
missing. kubelet, containerd and all containers live in PID and mount namespaces of their own, so
that they end, and their mounts go, with the one process that was started here.
"""

import os
import pathlib
import shutil
import signal
import subprocess

from images import BUSYBOX, write_shell_image
from processes import Program, free_port, wait_for
import kube_toolchain

PAUSE = "tests.local/pause:1"
SHELL = "tests.local/shell:1"
CNI_PLUGINS = pathlib.Path("/usr/lib/cni")
READY_S = 180

CONTAINERD = """version = 2
root = "{folder}/containerd"
state = "{folder}/run"
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{folder}/cni"
"""

NETWORK = """{{"cniVersion": "1.0.0", "name": "tests", "plugins": [
  {{"type": "ptp", "ipam": {{"type": "host-local", "dataDir": "{folder}/addresses",
    "ranges": [[{{"subnet": "10.77.0.0/24"}}]]}}}}]}}
"""

KUBELET = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 0.0.0.0  # the API server asks the node's own address for logs; only with a certificate
port: {port}
healthzPort: 0
readOnlyPort: 0
authentication:
  anonymous: {{enabled: false}}
  webhook: {{enabled: false}}
  x509: {{clientCAFile: {authority}}}
authorization: {{mode: AlwaysAllow}}
containerRuntimeEndpoint: unix://{socket}
podLogsDir: {folder}/logs
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
localStorageCapacityIsolation: false
failSwapOn: false
makeIPTablesUtilChains: false
imageGCHighThresholdPercent: 100
evictionHard: {{memory.available: 1Mi, nodefs.available: 0%, imagefs.available: 0%}}
nodeStatusUpdateFrequency: 5s
"""

# containerd first; the kubelet when its socket is there. Both end with this shell.
START = """set -e
mount --make-rprivate /
for folder in /run/netns /run/containerd /var/lib/kubelet; do  # the last one: device plugins
  mkdir -p $folder && mount -t tmpfs none $folder
done
{containerd} --config {folder}/containerd.toml >>{folder}/containerd.log 2>&1 &
while [ ! -e {folder}/images-are-there ]; do sleep 0.1; done
{kubelet} --config={folder}/kubelet.yaml --kubeconfig={kubeconfig} --hostname-override={name} \\
  --root-dir={folder}/kubelet --node-labels={labels} >>{folder}/kubelet.log 2>&1 &
wait -n
"""


def why_not():
    """Why there can be no real node here; empty where there can."""
    if os.geteuid() != 0:
        return "a real node needs root"
    for tool in ("containerd", "ctr", "runc", "unshare"):
        if not shutil.which(tool):
            return f"{tool} is not installed"
    if not BUSYBOX.exists():
        return "busybox-static is not installed"
    if not (CNI_PLUGINS / "ptp").exists():
        return "containernetworking-plugins is not installed"
    return ""


class RealNode:
    def __init__(self, cluster, name="real-node", gpus=0, labels=None, devices=()):
        """With devices a device plugin hands them out as nvidia.com/gpu; with gpus nobody does."""
        self.cluster, self.name, self.gpus, self.devices = cluster, name, gpus, list(devices)
        self.plugin = None
        self.labels = {"type": "real", **(labels or {})}
        self.folder = cluster.folder / name
        self.socket = self.folder / "c.sock"
        self.program = None

    def start(self):
        kube_toolchain.ensure(self.cluster.version, ["kubelet", "device-plugin"])
        self._write_files()
        script = START.format(containerd=shutil.which("containerd"), folder=self.folder,
                              kubelet=self.cluster.binaries["kubelet"], name=self.name,
                              kubeconfig=self.kubeconfig,
                              labels=",".join(f"{key}={value}"
                                              for key, value in self.labels.items()))
        # `exec` of a shell that is process 1 of its namespace: when it goes, all of them go.
        self.program = Program(self.name, [
            "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
            "bash", "-c", script], self.folder).start()
        try:
            wait_for(self._containerd_answers, "containerd answers", READY_S)
            for image in (PAUSE, SHELL):
                archive = self.folder / "image.tar"
                self.load_image(write_shell_image(archive, image))
            (self.folder / "images-are-there").touch()
            self.cluster.wait_until(f"/api/v1/nodes/{self.name}", self._is_ready,
                                    f"{self.name} is ready", READY_S)
            if self.gpus:
                self._offer_gpus()
            if self.devices:
                self._start_plugin()
        except BaseException:
            self.print_logs()
            self.stop()
            raise
        return self

    def _write_files(self):
        self.folder.mkdir()
        (self.folder / "cni").mkdir()
        pki = self.cluster.credentials
        pki.client(self.name, f"system:node:{self.name}", "system:nodes")
        self.kubeconfig = self.cluster.write_kubeconfig(self.name, client=self.name)
        values = dict(folder=self.folder, socket=self.socket, pause=PAUSE, plugins=CNI_PLUGINS,
                      port=free_port(), authority=pki.certificate("ca"))
        (self.folder / "containerd.toml").write_text(CONTAINERD.format(**values))
        (self.folder / "cni/tests.conflist").write_text(NETWORK.format(**values))
        (self.folder / "kubelet.yaml").write_text(KUBELET.format(**values))

    def _containerd_answers(self):
        self.program.check_running()
        return self.socket.exists() and self.ctr("version", check=False).returncode == 0

    def _is_ready(self, node):
        self.program.check_running()
        return any(one["type"] == "Ready" and one["status"] == "True"
                   for one in node["status"].get("conditions", [])) \
            and not node["spec"].get("taints")

    def _offer_gpus(self):
        """As a device plugin would, but nobody hands out devices: the scheduler has chosen them."""
        amount = {"nvidia.com/gpu": str(self.gpus)}
        self.cluster.patch(f"/api/v1/nodes/{self.name}/status",
                           {"status": {"capacity": amount, "allocatable": amount}})

    def _start_plugin(self):
        # The kubelet's folder for plugins is the same on every machine; ours lies in its namespace.
        folder = pathlib.Path(f"/proc/{self.program.pid}/root/var/lib/kubelet/device-plugins")
        wait_for((folder / "kubelet.sock").exists, "the kubelet takes device plugins")
        self.plugin = Program("device-plugin", [self.cluster.binaries["device-plugin"], folder,
                                                "nvidia.com/gpu", *self.devices], self.folder)
        self.plugin.start()

        def offers(node):
            self.plugin.check_running()
            return node["status"]["allocatable"].get("nvidia.com/gpu") == str(len(self.devices))
        self.cluster.wait_until(f"/api/v1/nodes/{self.name}", offers, "the devices are offered")

    def ctr(self, *arguments, check=True):
        return subprocess.run(["ctr", "--address", str(self.socket), "-n", "k8s.io",
                               *map(str, arguments)], capture_output=True, text=True, check=check)

    def load_image(self, archive):
        self.ctr("images", "import", "--snapshotter", "native", archive)

    def log_of(self, namespace, pod):
        """What the pod's containers have written so far, without the runtime's time stamps."""
        lines = []
        for path in sorted(self.folder.glob(f"logs/{namespace}_{pod}_*/*/*.log")):
            lines += [line.split(" ", 3)[3] for line in path.read_text().splitlines()
                      if line.count(" ") >= 3]
        return "\n".join(lines)

    @property
    def pod_resources_socket(self):
        return self.folder / "kubelet/pod-resources/kubelet.sock"

    def stop(self):
        if self.plugin:
            self.plugin.kill()
            self.plugin = None
        if self.program:
            self.program.signal(signal.SIGKILL)  # nothing in there is worth an orderly end
            self.program.kill()
            self.program = None
        _remove_cgroups()

    def print_logs(self):
        for path in (self.folder / "containerd.log", self.folder / "kubelet.log",
                     self.folder / f"{self.name}.log"):
            if path.exists():
                lines = path.read_text(errors="replace").splitlines()[-20:]
                print(f"--- the end of {path.name}\n" + "\n".join(lines), flush=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        if kind is not None:
            self.print_logs()
        self.stop()


def _remove_cgroups():
    """Empty groups of containers that have ended; those in use refuse, and stay."""
    for base in pathlib.Path("/sys/fs/cgroup").glob("**/k8s.io"):
        for folder in sorted(base.glob("**/"), reverse=True):
            try:
                folder.rmdir()
            except OSError:
                pass
