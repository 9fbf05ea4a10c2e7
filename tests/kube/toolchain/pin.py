#!/usr/bin/env python3
"""Writes the Go modules that pin the programs of the Kubernetes tests: go.mod, go.sum, commands.go.

    pin.py NAME-VERSION...      e.g. pin.py kubernetes-1.35.4

Needed only where a version is added or raised; what it writes is committed, and go.sum then holds
the checksums that every later build is compared with. Needs Go and a reachable module proxy.
"""

import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
COMMANDS = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet"]
# Parts of Kubernetes that kwok uses; the version of our own control plane, so that both builds
# share the compiled packages.
KWOK_SHARES = ["api", "apimachinery", "apiserver", "client-go", "component-base", "cri-api",
               "cri-client", "cri-streaming"]
KWOK_SHARED_VERSION = "v0.36.3"


def go(folder, *arguments):
    done = subprocess.run(["go", *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"pin: go {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def kubernetes(version):
    """The lines of go.mod, and the packages."""
    downloaded = go(HERE, "mod", "download", "-json", f"k8s.io/kubernetes@v{version}")
    upstream = pathlib.Path(re.search(r'"GoMod": "(.*)"', downloaded)[1]).read_text()
    minor = version.split(".", 1)[1]
    lines = [re.search(r"^go .*", upstream, re.MULTILINE)[0]]
    lines += re.findall(r"^godebug .*", upstream, re.MULTILINE)
    lines.append(f"require k8s.io/kubernetes v{version}")
    # Its own parts are required at v0.0.0, which exists nowhere.
    for part in sorted(set(re.findall(r"^\s*(k8s\.io/\S+) v0\.0\.0$", upstream, re.MULTILINE))):
        lines.append(f"replace {part} => {part} v0.{minor}")
    return lines, [f"k8s.io/kubernetes/cmd/{command}" for command in COMMANDS]


def etcd(version):
    return (["go 1.26.0", f"require go.etcd.io/etcd/server/v3 v{version}"],
            ["go.etcd.io/etcd/server/v3"])


def kwok(version):
    shared = [f"require k8s.io/{part} {KWOK_SHARED_VERSION}" for part in KWOK_SHARES]
    return ["go 1.26.0", f"require sigs.k8s.io/kwok v{version}", *shared], \
        ["sigs.k8s.io/kwok/cmd/kwok"]


def helm(version):
    return ["go 1.26.0", f"require helm.sh/helm/v3 v{version}"], ["helm.sh/helm/v3/cmd/helm"]


def pin(name):
    kind, version = name.split("-", 1)
    lines, packages = {"kubernetes": kubernetes, "etcd": etcd, "kwok": kwok, "helm": helm}[kind](
        version)
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "go.mod").write_text(f"module gpu-scheduler/tests/kube/toolchain/{kind}\n\n" +
                                   "\n".join(lines) + "\n")
    imports = "".join(f'\t_ "{package}"\n' for package in packages)
    (folder / "commands.go").write_text(
        "//go:build commands\n\n// Names the commands that are built from here, so that `go mod tidy`"
        "\n// keeps what they need in go.mod and go.sum.\npackage commands\n\n"
        f"import (\n{imports})\n")
    go(folder, "mod", "tidy")
    print(f"pin: {folder.relative_to(HERE)}: {len(packages)} commands")


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    for argument in sys.argv[1:]:
        pin(argument)
