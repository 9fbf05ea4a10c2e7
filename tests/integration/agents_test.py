#!/usr/bin/env python3
"""Agents as operators start them: of one name twice, and with what the settings of `serve` say."""

import os
import pathlib
import signal
import subprocess
import sys

from service import BINARY, Service, check, end_processes_in, equal, main, test, wait_for

API = "/api/v1"
QUICK = {"agent.heartbeat_interval_ms": 300, "agent.offline_after_ms": 3000, "agent.lease_ms": 6000,
         "agent.grace_ms": 300}


class Agent:
    """An agent of node n1 with a state directory of its own."""

    def __init__(self, service, name):
        self.service, self.state = service, f"{service.folder}/{name}"
        self.log_path = f"{service.folder}/{name}.log"
        self.start()

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [BINARY, "agent", "--server", f"127.0.0.1:{self.service.grpc_port}", "--node-id", "n1",
                 "--state-dir", self.state, "--simulate", "2xH100-SXM5-80GB"], stdout=log, stderr=log)

    def registered(self):
        return self.log().count("registered with")

    def log(self):
        return pathlib.Path(self.log_path).read_text(errors="replace")

    def end(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end()
        end_processes_in(self.state)


@test
def the_second_agent_of_a_name_waits_until_the_first_is_gone():
    with Service(settings={"agent.local": "off", **QUICK}, wait_nodes=0) as service, \
            Agent(service, "first") as first:
        wait_for(first.registered, "the first agent")
        job = service.submit(service.tenant(), ["sleep", "600"])
        service.wait_state(job, "running")
        with Agent(service, "second") as second:
            wait_for(lambda: "--node-id" in second.log(), "a word to the second one")
            check("served by another agent" in second.log(), second.log())
            equal(second.registered(), 0)
            # Started again in its state directory, the first is who it was.
            before = first.registered()
            first.end()
            first.start()
            wait_for(lambda: first.registered() > before, "the first one again")
            equal(service.job(job)["attempt"], 1)
            equal(service.job(job)["state"], "running")
            first.end()
            wait_for(second.registered, "the second one takes over")
            again = wait_for(lambda: (lambda row: row if row["attempt"] == 2 else None)(
                service.job(job)), "the job starts over")
            check(again["node_name"] == "n1", again)


@test
def the_local_agent_runs_images_with_what_is_configured():
    service = Service(settings={"agent.container_runtime": "docker"}, start=False)
    programs = pathlib.Path(service.folder, "programs")
    programs.mkdir()
    docker = programs / "docker"
    docker.write_text("#!/bin/sh\n[ \"$1\" = run ] && echo \"a container of $*\"\nexit 0\n")
    docker.chmod(0o755)
    service.environment = {"PATH": f"{programs}:{os.environ['PATH']}"}
    with service:
        service.start()
        equal(service.get(f"{API}/nodes").json["nodes"][0]["container_runtime"], "docker")
        job = service.submit(service.tenant(), ["train"], image="pytorch:2.3")
        service.wait_state(job, "completed")
        log = wait_for(lambda: service.get(f"{API}/jobs/{job}/logs").text, "its log")
        check("a container of run" in log and "pytorch:2.3 train" in log, log)


@test
def a_runtime_that_is_not_installed_is_said_aloud():
    service = Service(settings={"agent.container_runtime": "nerdctl"}, start=False)
    service.environment = {"PATH": service.folder}
    with service:
        service.start()
        check("not installed" in service.log() and "nerdctl" in service.log(), service.log())
        equal(service.get(f"{API}/nodes").json["nodes"][0]["container_runtime"], "")


if __name__ == "__main__":
    sys.exit(main())
