#!/usr/bin/env python3
"""Kills the scheduler, its agent and its database at random moments under load, or lets them sleep for
a while, and looks at what really ran.

    kill_test.py [--rounds N] [--seed S] [--only sqlite|postgres]

Threads submit short jobs all the time and repeat what was not answered (with the same key); some are
cancelled. A job writes lines into one file: when it starts, that it is alive, when it ends. At the
end, and between stretches of a long run:

  - what was acknowledged exists, nothing else does, and all of it has ended as it should;
  - no two processes had one GPU at the same time;
  - no job ended twice, and none that is `completed` did not end;
  - all GPUs are free again, in the scheduler's books and in truth.

ROUNDS in the environment is the number of rounds where the command line does not say. A failure
prints the seed; timing is not repeated by it, but who is killed after how long is.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import signal
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from service import Postgres, Service, check, equal, processes_in, wait_for

API = "/api/v1"
STRETCH = 20  # rounds between two looks
SETTINGS = {"agent.lease_ms": 3000, "agent.heartbeat_interval_ms": 300,
            "agent.offline_after_ms": 1500, "agent.grace_ms": 300,
            "scheduler.scheduling_interval_ms": 100, "log.level": "info"}

JOB = """
say() { echo "$1 $GPU_SCHEDULER_JOB_ID $GPU_SCHEDULER_ATTEMPT ${CUDA_VISIBLE_DEVICES:--} $(date +%s%N)" >> "$LINES"; }
say start
i=0
while [ $i -lt $TICKS ]; do sleep 0.05; say alive; i=$((i+1)); done
say end
"""


class Load:
    """Submits jobs and remembers what it was told about them."""

    def __init__(self, service, lines, seed):
        self.service, self.lines = service, lines
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.acknowledged = {}  # key -> job id
        self.cancelled = set()  # ids whose cancelling was asked for; the answer may be lost
        self.errors = []
        self.running = True
        self.tenant = service.tenant(max_concurrent_jobs=1000, max_gpus=1000, max_gpu_memory_mb=10**9)
        self.threads = [threading.Thread(target=self.submit, args=(n,), daemon=True) for n in range(3)]
        self.threads.append(threading.Thread(target=self.cancel, daemon=True))
        for thread in self.threads:
            thread.start()

    def body(self, key, chance):
        return {"name": key, "tenant_id": self.tenant, "gpu_count": chance.choice([1, 1, 1, 2, 4, 8]),
                "command": ["sh", "-c", JOB],
                "environment": {"LINES": self.lines, "TICKS": str(chance.randint(1, 12))}}

    def ask(self, method, path, body=None, headers=None):
        """The answer; asked again until there is one that is not 'later'."""
        while True:
            try:
                answer = self.service.http(method, path, body, headers, timeout=10)
                if answer.status not in (429, 503):
                    return answer
            except OSError:
                pass
            except Exception as error:  # a connection that died half-way
                if "http.client" not in type(error).__module__ and "urllib" not in type(error).__module__:
                    self.errors.append(repr(error))
            time.sleep(0.1)

    def submit(self, number):
        chance = random.Random(self.random.random())
        count = 0
        while self.running:
            count += 1
            key = f"{number}-{count}"
            answer = self.ask("POST", f"{API}/jobs", self.body(key, chance), {"Idempotency-Key": key})
            if answer.status != 201:
                self.errors.append(f"submit {key}: {answer}")
                continue
            with self.lock:
                self.acknowledged[key] = answer.json["job_id"]
            time.sleep(chance.uniform(0.05, 0.35))

    def cancel(self):
        chance = random.Random(self.random.random())
        while self.running:
            time.sleep(chance.uniform(0.3, 1.0))
            with self.lock:
                jobs = list(self.acknowledged.values())[-6:]
            if not jobs:
                continue
            job = chance.choice(jobs)
            self.cancelled.add(job)
            answer = self.ask("DELETE", f"{API}/jobs/{job}")
            if answer.status not in (200, 409):
                self.errors.append(f"cancel {job}: {answer}")

    def stop(self):
        self.running = False
        for thread in self.threads:
            thread.join(120)
            check(not thread.is_alive(), "a thread does not end: somebody is never answered")


class Killer:
    def __init__(self, service, postgres, chance):
        self.service, self.postgres, self.chance = service, postgres, chance
        self.victims = ["scheduler", "agent", "both", "scheduler twice", "scheduler asleep",
                        "agent asleep"]
        if postgres:
            self.victims += ["database", "database and scheduler"]

    def round(self):
        time.sleep(self.chance.uniform(0.2, 2.5))
        victim = self.chance.choice(self.victims)
        # Mostly shorter than the lease; sometimes so long that tasks are stopped and start over, or
        # that the node is lost.
        pause = self.chance.uniform(0, 1.5) if self.chance.random() < 0.8 else self.chance.uniform(3, 11)
        getattr(self, victim.replace(" ", "_"))(pause)
        return f"{victim}, {pause:.1f} s"

    def scheduler(self, pause):
        self.service.kill()
        time.sleep(pause)
        self.service.spawn()

    def scheduler_twice(self, pause):
        self.scheduler(pause)
        time.sleep(self.chance.uniform(0, 0.5))  # while it starts
        self.scheduler(0)

    def agent(self, _):
        self.service.kill_agent()

    def agent_asleep(self, pause):
        pid = self.service.agent_pid()
        if pid:
            self.sleep(pid, pause)

    def scheduler_asleep(self, pause):
        self.sleep(self.service.process.pid, pause)

    @staticmethod
    def sleep(pid, pause):
        try:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(pause)
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass  # it has just been replaced

    def both(self, pause):
        first = self.chance.random() < 0.5
        if first:
            self.service.kill_agent()
        self.service.kill()
        if not first:
            self.service.kill_agent()
        time.sleep(pause)
        self.service.spawn()

    def database(self, pause):
        self.postgres.kill()
        time.sleep(pause)
        self.postgres.start()

    def database_and_scheduler(self, pause):
        self.postgres.kill()
        self.service.kill()
        time.sleep(pause)
        self.postgres.start()
        self.service.spawn()


def all_jobs(service):
    jobs, cursor = [], ""
    while True:
        page = service.get(f"{API}/jobs?limit=1000&sort=submitted_at&cursor={cursor}").json
        jobs += page["jobs"]
        cursor = page["next_cursor"]
        if not cursor:
            return {job["id"]: job for job in jobs}


def read_lines(path):
    """(job, attempt) -> what it did, in order."""
    runs = collections.defaultdict(list)
    for line in pathlib.Path(path).read_text().splitlines():
        word, job, attempt, gpus, when = line.split()
        runs[job, int(attempt)].append((int(when), word, gpus))
    return runs


def look(service, load, path):
    """The invariants, one after the other; the list of those that do not hold."""
    broken = []

    def holds(what, condition, *details):
        if not condition:
            broken.append(f"{what}: " + " ".join(str(detail)[:1500] for detail in details))
    final = ("completed", "failed", "cancelled")
    jobs = {}

    def over():
        jobs.clear()
        jobs.update(all_jobs(service))
        return all(job["state"] in final for job in jobs.values())
    try:
        wait_for(over, "all jobs to end", 240, 0.5)
    except AssertionError:
        stuck = [job for job in jobs.values() if job["state"] not in final]
        holds("every job ends", False, len(stuck), json.dumps(stuck[:3]))
    holds("what was acknowledged is what there is", set(load.acknowledged.values()) == set(jobs),
          set(load.acknowledged.values()) ^ set(jobs))
    holds("callers get proper answers", not load.errors, load.errors[:5])
    wrong = [job for job in jobs.values() if job["state"] in final and job["state"] != "completed"
             and not (job["state"] == "cancelled" and job["id"] in load.cancelled)]
    holds("every job ends as it should", not wrong, len(wrong), json.dumps(wrong[:3]))
    runs = read_lines(path)
    ends = collections.Counter(job for (job, _), did in runs.items()
                               for _, word, _ in did if word == "end")
    holds("no job ends twice", not [job for job, count in ends.items() if count > 1],
          [(job, [(key, did) for key, did in runs.items() if key[0] == job], jobs.get(job))
           for job, count in ends.items() if count > 1][:2])
    silent = [job["id"] for job in jobs.values() if job["state"] == "completed" and not ends[job["id"]]]
    holds("completed jobs have run to their end", not silent, silent[:5])
    attempts = collections.Counter((job, attempt) for (job, attempt), did in runs.items()
                                   for _, word, _ in did if word == "start")
    holds("an attempt starts once", not [key for key, count in attempts.items() if count > 1],
          [key for key, count in attempts.items() if count > 1][:5])
    by_gpu = collections.defaultdict(list)
    for key, did in runs.items():
        for gpu in did[0][2].split(","):
            by_gpu[gpu].append((min(when for when, _, _ in did), max(when for when, _, _ in did), key))
    for gpu, spans in by_gpu.items():
        spans.sort()
        for before, after in zip(spans, spans[1:]):
            holds("one process on a GPU at a time", before[1] <= after[0], f"GPU {gpu}:", before, after,
                  f"{(before[1] - after[0]) / 1e6:.0f} ms together")
    free = []

    def all_free():
        status = service.get(f"{API}/cluster/status").json
        gpus = service.get(f"{API}/gpus").json["gpus"]
        tenant = service.get(f"{API}/tenants/{load.tenant}").json
        free[:] = [status, tenant["current_gpus"], tenant["current_jobs"]]
        return (status["available_gpus"] == 8 and status["running_jobs"] == 0
                and not any(gpu["allocated"] or gpu["jobs"] for gpu in gpus)
                and tenant["current_gpus"] == 0 and tenant["current_jobs"] == 0)
    try:
        wait_for(all_free, "all GPUs to be free", 90, 0.2)
    except AssertionError:
        holds("all GPUs are free again", False, free)
    return broken, len(jobs), len(attempts)


def variant(name, rounds, seed):
    """(passed, failed)"""
    postgres = Postgres() if name == "postgres" else None
    failed = 0
    passed = 0
    with Service(settings=SETTINGS, postgres=postgres) as service:
        lines = f"{service.folder}/lines"
        pathlib.Path(lines).touch()
        os.chmod(lines, 0o666)
        killer = Killer(service, postgres, random.Random(seed))
        load = Load(service, lines, seed)
        done = 0
        while done < rounds:
            for _ in range(min(STRETCH, rounds - done)):
                done += 1
                print(f"      {name} round {done}: {killer.round()}", flush=True)
                if service.process.poll() is not None:
                    failed += 1
                    print(f"FAIL  {name}: the scheduler has ended with {service.process.returncode}:\n"
                          f"{service.log()[-3000:]}", flush=True)
                    return passed, failed
            service.wait_ready(180)
            load.stop()
            broken, jobs, starts = look(service, load, lines)
            for one in broken:
                print(f"FAIL  {name}, seed {seed}, after round {done}: {one}", flush=True)
            failed += len(broken)
            passed += 8 - min(8, len({one.split(":")[0] for one in broken}))
            print(f"{'FAIL' if broken else 'ok  '}  {name}: {done} rounds, {jobs} jobs, {starts} starts",
                  flush=True)
            if broken:
                keep = os.environ.get("KEEP")
                print(f"      log: {service.log_path}" if keep else service.log()[-6000:], flush=True)
                break
            if done < rounds:
                load.running = True
                acknowledged, cancelled = load.acknowledged, load.cancelled
                load = Load(service, lines, f"{seed}-{done}")
                load.acknowledged.update({f"{done}/{key}": job for key, job in acknowledged.items()})
                load.cancelled |= cancelled
        equal(service.stop(), 0, "exit code of the scheduler")
        wait_for(lambda: not processes_in(service.state), "all processes to be gone", 60)
        passed += 1
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("ROUNDS") or 6))
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100000)
    parser.add_argument("--only", choices=["sqlite", "postgres"])
    arguments = parser.parse_args()
    passed = failed = 0
    for name in ("sqlite", "postgres"):
        if arguments.only not in (None, name) or (name == "postgres" and not Postgres.binaries()):
            continue
        print(f"      {name}: seed {arguments.seed}", flush=True)
        try:
            more_passed, more_failed = variant(name, arguments.rounds, arguments.seed)
        except Exception as error:
            more_passed, more_failed = 0, 1
            print(f"FAIL  {name}, seed {arguments.seed}: {error}", flush=True)
        passed += more_passed
        failed += more_failed
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
