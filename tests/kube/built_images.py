"""The product's own images, built by scripts/build-images.sh with podman, without a registry.

    reason = why_not()                          # empty where images can be built here
    archives = build("scheduler", "check")      # {name: archive for `ctr images import`}

The base image comes from debootstrap, from the mirror that apt uses, and is kept in the cache folder
beside the programs of Kubernetes. podman's storage lies in build/test-images, so that no image of the
user's is touched. The binaries are those of the build: the Dockerfile's own compilation is left out.
"""

import fcntl
import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "build/test-images"
SUITE, BASE = "bookworm", "docker.io/library/debian:12"
REGISTRY = "docker.io/library"  # what a name without a registry means to containerd
NAMES = {"scheduler": "gpu-scheduler", "webhook": "gpu-scheduler-webhook",
         "agent": "gpu-scheduler-agent", "check": "gpu-scheduler-check"}
# runc for machines with hybrid cgroups; lower limits than the user's own can always be set.
LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000"]
BUILD = ["--isolation=oci", "--network=host", *LIMITS]
UNREACHABLE = ("Failed getting release", "Could not resolve", "Unable to connect", "Invalid Release")


class Unavailable(Exception):
    """Images can't be built on this machine; says why."""


def why_not():
    if os.geteuid() != 0:
        return "building images needs root"
    for tool in ("podman", "runc", "debootstrap"):
        if not shutil.which(tool):
            return f"{tool} is not installed"
    return ""


def podman_words():
    return ["podman", "--root", str(FOLDER / "storage"), "--runroot", str(FOLDER / "run"),
            "--runtime", "runc"]


def podman(*arguments, check=True, timeout=300):
    done = subprocess.run([*podman_words(), *map(str, arguments)], capture_output=True, text=True,
                          timeout=timeout)
    if check and done.returncode != 0:
        raise AssertionError(f"podman {' '.join(map(str, arguments))}: {done.stdout}{done.stderr}")
    return done


def cache():
    named = os.environ.get("GPU_SCHEDULER_IMAGE_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(named) if named else pathlib.Path(base) / "gpu-scheduler/images"


def mirror():
    """The first mirror of apt that has the suite."""
    asked = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)"],
                           capture_output=True, text=True)
    for line in asked.stdout.splitlines():
        uri, _, release = line.partition(" ")
        if release == SUITE and uri.rstrip("/").endswith("/debian"):
            return uri
    return "http://deb.debian.org/debian"


def base_archive():
    """Debian 12 as an archive of files; made once on a machine."""
    folder = cache()
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"debian-{SUITE}.tar"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            with tempfile.TemporaryDirectory(dir=folder) as root:
                made = subprocess.run(["debootstrap", "--variant=minbase", SUITE, root, mirror()],
                                      capture_output=True, text=True, timeout=1200)
                said = made.stdout + made.stderr
                if made.returncode != 0 and any(word in said for word in UNREACHABLE):
                    raise Unavailable(f"no mirror of Debian: {said.strip().splitlines()[-1]}")
                if made.returncode != 0:
                    raise AssertionError(f"debootstrap: {said}")
                part = archive.with_suffix(".part")
                subprocess.run(["tar", "-C", root, "-cf", str(part), "."], check=True)
                part.rename(archive)
    return archive


def ensure_base():
    FOLDER.mkdir(parents=True, exist_ok=True)
    if podman("image", "exists", BASE, check=False).returncode != 0:
        podman("import", base_archive(), BASE)


def build(*which, tag="latest"):
    """Builds images; their archives, by name."""
    ensure_base()
    podman("image", "prune", "-f", "--filter", "until=24h")  # what earlier builds have left
    environment = {**os.environ, "ENGINE": " ".join(podman_words()), "BUILD_ARGS": " ".join(BUILD),
                   "REGISTRY": REGISTRY, "TAG": tag}
    built = subprocess.run(["scripts/build-images.sh", "--prebuilt", *which], cwd=ROOT,
                           capture_output=True, text=True, timeout=1200, env=environment)
    if built.returncode != 0:
        raise AssertionError(f"build-images.sh: {built.stdout[-3000:]}{built.stderr[-3000:]}")
    return {one: save(f"{REGISTRY}/{NAMES[one]}:{tag}") for one in which or NAMES}


def save(name):
    archive = FOLDER / (name.replace("/", "_").replace(":", "_") + ".tar")
    archive.unlink(missing_ok=True)
    podman("save", "--format", "docker-archive", "-o", archive, name)
    return archive


def build_from(name, dockerfile, files=None):
    """An image of the tests' own, from the text of a Dockerfile; its archive."""
    ensure_base()
    with tempfile.TemporaryDirectory() as context:
        (pathlib.Path(context) / "Dockerfile").write_text(dockerfile)
        for path, text in (files or {}).items():
            (pathlib.Path(context) / path).write_text(text)
        podman("build", *BUILD, "-t", name, context, timeout=600)
    return save(name)
