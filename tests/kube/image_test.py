#!/usr/bin/env python3
"""The images of the Dockerfiles, built with podman: small, not root, nothing to write to, and they run.

The stages are the Dockerfile's own but for the first one: the binaries are those of the build."""

import json
import pathlib
import sys
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
sys.path.append(str(HERE.parent.parent / "scripts"))
import built_images
from charts import documents
from built_images import LIMITS, NAMES, REGISTRY, podman
from service import ROOT, check, equal, free_port, main, skip_all, test, wait_for

LOCKED = ["--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--network=host",
          *LIMITS]
MAX_MB = {"scheduler": 100, "webhook": 100, "agent": 100, "check": 5}


def image(which):
    return f"{REGISTRY}/{NAMES[which]}:latest"


def run(which, *arguments, options=(), **more):
    return podman("run", "--rm", *LOCKED, *options, image(which), *arguments, **more)


class Container:
    """One that runs in the background; always removed."""

    def __init__(self, which, *arguments, options=()):
        self.id = podman("run", "-d", *LOCKED, *options, image(which), *arguments).stdout.strip()

    def log(self):
        told = podman("logs", self.id)
        return told.stdout + told.stderr

    def __enter__(self):
        return self

    def __exit__(self, *_):
        podman("rm", "-f", "-v", "-t", "5", self.id)


@test
def every_image_is_built_small_and_not_root():
    built_images.build()
    for which in NAMES:
        told = json.loads(podman("image", "inspect", image(which)).stdout)[0]
        equal(told["Config"]["User"], "10001:10001", which)
        check(told["Size"] < MAX_MB[which] * 1e6, f"{which} has {told['Size'] / 1e6:.0f} MB")


@test
def the_same_binary_is_in_each_and_knows_its_names():
    version = run("scheduler", "--version").stdout
    check(version.startswith("gpu-scheduler "), version)
    for which in ("webhook", "agent"):
        equal(run(which, "--version").stdout, version)
    for name, said in (("scheduler", "Serve GPUs"), ("controller", "Kubernetes"), ("agent", "Offer")):
        told = run("scheduler", "--help", options=["--entrypoint", name]).stdout
        check(said in told.splitlines()[0], f"{name}: {told}")
    check(run("scheduler", "--version", options=["--entrypoint", "gpu-cli"]).stdout)


@test
def there_is_no_shell_inside():
    for shell in ("sh", "bash", "/bin/sh", "busybox"):
        tried = run("scheduler", "-c", "true", options=["--entrypoint", shell], check=False)
        check(tried.returncode != 0, f"{shell} is there")


@test
def serve_runs_as_nobody_special_on_a_read_only_root():
    ports = [free_port() for _ in range(3)]
    flags = [word for name, port in zip(("api.http_port", "api.grpc_port", "metrics.port"), ports)
             for word in ("--set", f"{name}={port}")]
    with Container("scheduler", "serve", "--state-dir", "/var/lib/gpu-scheduler", "--set",
                   "agent.local=off", *flags) as one:
        def healthy():
            try:
                url = f"http://127.0.0.1:{ports[0]}/api/v1/health"
                with urllib.request.urlopen(url, timeout=5) as answer:
                    return json.load(answer)["status"] == "healthy"
            except OSError:
                return False
        wait_for(healthy, f"serve answers: {one.log()}")
        pid = int(podman("inspect", "-f", "{{.State.Pid}}", one.id).stdout)
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        check("Uid:\t10001\t10001" in status, status)
        check("CapEff:\t0000000000000000" in status, status)
        # Only the state may be written to.
        mounts = [line.split() for line in
                  pathlib.Path(f"/proc/{pid}/mounts").read_text().splitlines()]
        options = {mount[1]: mount[3].split(",") for mount in mounts}
        check("ro" in options["/"], options["/"])
        check("rw" in options["/var/lib/gpu-scheduler"], options)
        check("gpu-scheduler.db" in one.log(), one.log())


@test
def postgresql_can_be_spoken_to():
    """The library is there: what fails is the connection, not the loading."""
    told = run("scheduler", "serve", "--state-dir", "/var/lib/gpu-scheduler",
               "--set", "database.host=127.0.0.1", "--set", f"database.port={free_port()}",
               "--set", "database.user=nobody", "--set", "database.database=none",
               "--set", "agent.local=off", options=["--env", "GPU_SCHEDULER_DATABASE_PASSWORD=x",
                                                   "--stop-timeout", "5"],
               check=False, timeout=120)
    said = told.stdout + told.stderr
    check("libpq" not in said and "refused" in said, said)


@test
def the_check_service_says_where_it_is_and_what_it_was_given():
    with Container("check", options=["-e", "NODE_NAME=node1", "-e", "CUDA_VISIBLE_DEVICES=0,1",
                                     "-e", "LOG_INTERVAL=1"]) as one:
        line = "Node: node1, CUDA_VISIBLE_DEVICES: 0,1"
        wait_for(lambda: one.log().splitlines().count(line) >= 2, "two lines")
        equal(set(one.log().splitlines()), {line})
        podman("stop", "-t", "20", one.id)
        equal(podman("inspect", "-f", "{{.State.ExitCode}}", one.id).stdout.strip(), "0")
    with Container("check", options=["-e", "NODE_NAME=node1"]) as one:
        wait_for(lambda: one.log() == "Node: node1, CUDA_VISIBLE_DEVICES: not set\n", "it says so")


@test
def the_dockerfile_is_used_as_it_is():
    """But for its first stage, every line of it is in what the tests build."""
    text = (ROOT / "Dockerfile").read_text()
    first, rest = text.split("\n\n", 1)
    equal([line.split()[-1] for line in rest.splitlines() if line.startswith("FROM")],
          ["files", "image", "webhook", "agent", "scheduler"])
    check("AS build" in first and "scripts/setup.sh --build-only" in first, first)
    equal(rest.count("--from=build "), 1)


@test
def docker_compose_builds_the_same_image():
    compose, = documents((ROOT / "docker-compose.yml").read_text())
    scheduler = compose["services"]["scheduler"]
    equal((scheduler["build"], scheduler["read_only"]), (".", True))


if __name__ == "__main__":
    reason = built_images.why_not()
    if not reason:
        try:
            built_images.ensure_base()
        except built_images.Unavailable as unavailable:
            reason = str(unavailable)
    if reason:
        sys.exit(skip_all(reason))
    sys.exit(main())
