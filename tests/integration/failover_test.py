#!/usr/bin/env python3
"""Several schedulers on one PostgreSQL: one leads, another takes over, a paused one can't write."""

import signal
import subprocess
import sys
import time

from service import (BINARY, QUOTA, Postgres, Service, check, end_processes_in, equal, main,
                     temporary_folder, test, wait_for)

FAST = {"agent.heartbeat_interval_ms": 500}


def leads(service):
    try:
        return service.get("/ready").status == 200
    except OSError:
        return False


class Pair:
    """Two schedulers and one agent that knows both."""

    def __init__(self):
        self.postgres = Postgres()
        settings = {**FAST, "agent.local": "off"}
        self.servers = [Service(settings=settings, postgres=self.postgres, start=False)
                        for _ in range(2)]
        for server in self.servers:
            server.spawn()
        wait_for(lambda: self.leader(), "one of them leads")
        self.folder = temporary_folder("agent")
        addresses = ",".join(f"127.0.0.1:{server.grpc_port}" for server in self.servers)
        self.agent = subprocess.Popen(
            [BINARY, "agent", "--server", addresses, "--state-dir", self.folder, "--node-id", "n1",
             "--simulate", "4xH100-SXM5-80GB"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: self.leader().get("/api/v1/cluster/status").json["online_nodes"] == 1,
                 "the agent is there")

    def leader(self):
        return next((server for server in self.servers if leads(server)), None)

    def other(self, leader):
        return next(server for server in self.servers if server is not leader)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.agent.kill()
        self.agent.wait()
        end_processes_in(self.folder)
        for server in self.servers:
            server.close()
        self.postgres.stop()


def submit(server, tenant, command):
    answer = server.post("/api/v1/jobs", {"tenant_id": tenant, "name": "job", "gpu_count": 1,
                                          "command": command})
    equal(answer.status, 201, answer)
    return answer.json["job_id"]


def state(server, job):
    return server.get(f"/api/v1/jobs/{job}").json["state"]


@test
def another_one_takes_over_and_jobs_run_on():
    with Pair() as pair:
        leader = pair.leader()
        standby = pair.other(leader)
        tenant = leader.post("/api/v1/tenants", {"name": "lab", **QUOTA}).json["id"]
        long = submit(leader, tenant, ["sleep", "1000"])
        short = submit(leader, tenant, ["sleep", "4"])
        wait_for(lambda: state(leader, long) == "running", "it runs")
        # Whoever does not lead answers reads, and refuses writes in words.
        equal(state(standby, long), "running")
        equal(standby.post("/api/v1/jobs", {"tenant_id": tenant, "name": "x",
                                            "command": ["true"]}).status, 503)
        begin = time.monotonic()
        leader.kill()
        wait_for(lambda: leads(standby), "the other one leads")
        print(f"      take-over after kill -9: {time.monotonic() - begin:.1f} s")
        equal(state(standby, long), "running")
        wait_for(lambda: state(standby, short) == "completed", "the end of a job is heard by the other")
        equal(standby.get(f"/api/v1/jobs/{short}").json["attempt"], 1)
        fresh = submit(standby, tenant, ["true"])
        wait_for(lambda: state(standby, fresh) == "completed", "new jobs run")
        equal(standby.get(f"/api/v1/jobs/{long}").json["attempt"], 1)


@test
def paused_leader_can_not_write_when_it_wakes_up():
    with Pair() as pair:
        leader = pair.leader()
        standby = pair.other(leader)
        tenant = leader.post("/api/v1/tenants", {"name": "lab", **QUOTA}).json["id"]
        leader.process.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        wait_for(lambda: leads(standby), "the other one leads")
        print(f"      take-over from a paused leader: {time.monotonic() - begin:.1f} s")
        job = submit(standby, tenant, ["true"])
        leader.process.send_signal(signal.SIGCONT)
        # It may still believe that it leads: what it is asked now must not be acknowledged.
        answer = leader.post("/api/v1/jobs", {"tenant_id": tenant, "name": "late",
                                              "command": ["true"]})
        equal(answer.status, 503, answer)
        wait_for(lambda: not leads(leader), "it notices")
        names = [one["name"] for one in standby.get("/api/v1/jobs").json["jobs"]]
        check("late" not in names, names)
        wait_for(lambda: state(standby, job) == "completed", "the new leader works")


if __name__ == "__main__":
    if not Postgres.binaries():
        print("skipped: PostgreSQL is not installed\n0 passed, 0 failed, 2 skipped")
        sys.exit(0)
    sys.exit(main())
