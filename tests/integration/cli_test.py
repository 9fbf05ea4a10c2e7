#!/usr/bin/env python3
"""gpu-cli against a real server with simulated GPUs, as a user would run it."""

import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from service import (CLI, ROOT, Service, free_port, on_terminal, press_ctrl_c,  # noqa: E402
                     run_cli, wait_for)

SERVER = None


class CliTest(unittest.TestCase):
    def setUp(self):
        self.server = SERVER
        for node in self.get("/api/v1/nodes")["nodes"]:
            if node["cordoned"]:
                self.server.post(f"/api/v1/nodes/{node['name']}/undrain")

    def tearDown(self):
        live = self.get(
            "/api/v1/jobs?state=pending,scheduled,running,preempted&limit=1000")["jobs"]
        for job in live:
            self.server.http("DELETE", f"/api/v1/jobs/{job['id']}")  # or it has ended meanwhile
        wait_for(lambda: self.get("/api/v1/cluster/status")["available_gpus"] == 8,
                 "all GPUs are free again")

    def get(self, path):
        return self.server.get(path).json

    def cli(self, *arguments, code=0, **more):
        done = self.server.cli(*arguments, **more)
        self.assertEqual(done.code, code, f"gpu-cli {' '.join(map(str, arguments))}: {done}")
        return done

    def submit(self, *arguments, **more):
        return self.cli("submit", "-o", "json", *arguments, **more).json()["job_id"]

    def running(self, *arguments):
        job = self.submit(*arguments)
        self.server.wait_state(job, "running")
        return job


class Submitting(CliTest):
    def test_the_documented_command_works_as_written(self):
        done = self.cli("submit", "--name", "training-job", "--gpus", "2", "--priority", "500",
                        "--tenant-id", TENANT)
        self.assertRegex(done.out, r"Job ID: job-\d+\nStatus: submitted\n")
        job = self.get("/api/v1/jobs/" + re.search(r"job-\d+", done.out)[0])
        self.assertEqual((job["name"], job["gpu_count"], job["priority"], job["script"]),
                         ("training-job", 2, 500, "nvidia-smi"))

    def test_every_flag_arrives(self):
        job = self.submit(
            "--name", "all", "--gpus", "2", "--gpu-model", "H100-SXM5-80GB", "--gpu-memory", "40G",
            "--cpus", "0.5", "--memory", "1G", "--priority", "7", "--gang", "--env", "A=b=c",
            "--env", "HOME", "--label", "team=x", "--max-runtime", "2h", "--expected-runtime",
            "90m", "--hold", "--working-dir", "/", "--checkpoint=/data/ckpt", "--node-selector",
            "zone=here", "--no-preemption", "--", "python", "train.py", "--lr", "3")
        got = self.get(f"/api/v1/jobs/{job}")
        want = {"name": "all", "gpu_count": 2, "gpu_model": "H100-SXM5-80GB",
                "gpu_memory_mb": 40960, "cpu_cores": 0.5, "memory_mb": 1024, "priority": 7,
                "gang_scheduling": True, "environment": {"A": "b=c", "HOME": os.environ["HOME"]},
                "labels": {"team": "x"}, "max_runtime_minutes": 120,
                "expected_runtime_minutes": 90, "held": True, "working_dir": "/",
                "checkpoint": {"enabled": True, "path": "/data/ckpt"},
                "node_selector": {"zone": "here"}, "allow_preemption": False,
                "command": ["python", "train.py", "--lr", "3"]}
        self.assertEqual({key: got.get(key) for key in want}, want)

    def test_the_only_tenant_is_the_default_and_names_do(self):
        self.submit("--tenant-id", "team", "--hold")
        self.submit("--hold", environment={"GPU_SCHEDULER_TENANT_ID": TENANT})
        other = self.server.tenant("other")
        try:
            done = self.cli("submit", "--hold", code=2)
            self.assertIn("--tenant-id", done.err)
            self.assertIn(TENANT, done.err)
            self.assertIn(other, done.err)
        finally:
            self.cli("tenants", "delete", other)

    def test_wait_exits_with_the_code_of_the_job(self):
        self.cli("submit", "--wait", "--", "true")
        self.cli("submit", "--wait", "--", "sh", "-c", "exit 7", code=7)
        done = self.cli("submit", "--wait", "--script", "kill -9 $$", code=137)
        self.assertIn("failed", done.err)

    def test_follow_shows_the_log(self):
        done = self.cli("submit", "--follow", "--", "sh", "-c",
                        "echo first; sleep 2; echo second; sleep 1; exit 3", code=3)
        self.assertIn("first\nsecond\n", done.out)

    def test_the_same_key_submits_once(self):
        first = self.submit("--idempotency-key", "once", "--hold", "--name", "k")
        self.assertEqual(first, self.submit("--idempotency-key", "once", "--hold", "--name", "k"))
        done = self.cli("submit", "--idempotency-key", "once", "--name", "different", code=4)
        self.assertIn("Idempotency-Key", done.err)

    def test_arrays_know_their_index_and_submit_once(self):
        arguments = ["submit", "-o", "json", "--array", "3", "--gpus", "1", "--idempotency-key",
                     "array", "--hold", "--", "true"]
        jobs = self.cli(*arguments).json()["job_ids"]
        self.assertEqual(len(jobs), 3)
        self.assertEqual(self.cli(*arguments).json()["job_ids"], jobs)
        indexes = [self.get(f"/api/v1/jobs/{job}")["environment"]
                   ["GPU_SCHEDULER_ARRAY_INDEX"] for job in jobs]
        self.assertEqual(indexes, ["0", "1", "2"])

    def test_files_of_json_and_yaml(self):
        job = self.submit("-f", "-", "--gpus", "2",
                          stdin='{"name": "of-file", "gpu_count": 1, "held": true, '
                                '"command": ["true"]}')
        got = self.get(f"/api/v1/jobs/{job}")
        self.assertEqual((got["name"], got["gpu_count"]), ("of-file", 2))  # flags go over it
        done = self.cli("submit", "-f", "-", "-o", "yaml",
                        stdin="name: one\nheld: true\ncommand: ['true']\n---\nname: two\n"
                              "held: true\ncommand: ['true']\n")
        self.assertIn("accepted: 2", done.out)
        done = self.cli("submit", "-f", "-", code=2,
                        stdin='[{"name": "good", "held": true, "command": ["true"]}, '
                              '{"name": "bad", "gpu_cuont": 1}]')
        self.assertIn("good", done.out)
        self.assertIn("gpu_cuont", done.err)
        self.cli("submit", "-f", "/nowhere.json", code=2)

    def test_dry_runs_start_nothing(self):
        done = self.cli("submit", "--dry-run", "--gpus", "2")
        self.assertIn("would start now", done.out)
        self.assertIn("GPUs 0-1", done.out)
        self.assertIn("would never start", self.cli("submit", "--dry-run", "--gpus", "9").out)
        self.assertTrue(self.cli("submit", "--dry-run", "-o", "json").json()["starts_now"])

    def test_jobs_wait_for_others(self):
        first = self.submit("--hold", "--name", "first", "--", "false")
        second = self.submit("--depends-on", first, "--", "true")
        third = self.submit("--after-any", "first", "--", "true")
        self.assertIn(first, self.cli("why", second).out)
        self.cli("release", first)
        self.server.wait_state(third, "completed")
        self.assertNotEqual(self.server.job(second)["state"], "completed")

    def test_wrong_flags_are_refused(self):
        for wrong in (["--gpus", "many"], ["--max-runtime", "soon"], ["--memory", "1X"],
                      ["--env", "=x"], ["--label", "x"], ["--no-such-flag"],
                      ["--script", "x", "--", "y"]):
            done = self.cli("submit", *wrong, code=2)
            self.assertTrue(done.err, wrong)
            self.assertEqual(done.out, "", wrong)


class Looking(CliTest):
    def test_lists_filter_and_page(self):
        jobs = [self.submit("--hold", "--name", f"page-{i}", "--label", f"n={i % 2}", "--priority",
                            100 + i) for i in range(5)]
        table = self.cli("jobs", "--name", "page-*").out.splitlines()
        self.assertEqual(len(table), 6)
        self.assertRegex(table[0], r"^JOB ID +NAME +TENANT +STATE +GPUS +PRIO +SUBMITTED +RAN +NODE")
        self.assertRegex(table[1], rf"^{jobs[4]}  page-4  team +held +1 +104 +\d+[sm] ago +-  -$")
        self.assertEqual(len({line.index("  team") for line in table[1:]}), 1)  # aligned
        self.assertEqual(self.cli("list", "--label", "n=1", "--name", "page-*", "-o",
                                  "json").json()["total"], 2)
        self.assertEqual(len(self.cli("jobs", "--limit", "2", "-o", "json").json()["jobs"]), 2)
        everything = self.cli("jobs", "--all", "-o", "json", "--sort", "-priority", "--name",
                              "page-*").json()["jobs"]
        self.assertEqual([job["id"] for job in everything], jobs[::-1])
        self.assertEqual(self.cli("jobs", "--name", "nobody").out, "no jobs\n")
        self.assertIn("--all shows all", self.cli("jobs", "--limit", "1").out)
        self.cli("jobs", "--state", "sleeping", code=2)
        wide = self.cli("jobs", "--limit", "1", "-o", "wide").out
        self.assertRegex(wide, r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")

    def test_get_in_all_formats(self):
        job = self.submit("--hold", "--name", "naïve 訓練", "--", "true")
        words = self.cli("get", job).out
        self.assertIn(f"Job ID:      {job}\n", words)
        self.assertIn("Name:        naïve 訓練\n", words)
        self.assertEqual(self.cli("get", job, "-o", "json").json()["name"], "naïve 訓練")
        self.assertIn(f"id: {job}\n", self.cli("get", job, "-o", "yaml").out)
        self.assertEqual(self.cli("get", job[4:], "-o", "json").json()["id"], job)
        self.assertEqual(self.cli("get", "naïve 訓練", "-o", "json").json()["id"], job)

    def test_why_tells_where_it_runs_and_when_the_next_one_starts(self):
        runs = self.running("--name", "big", "--gpus", "6", "--max-runtime", "10m", "--", "sleep",
                            "600")
        waits = self.submit("--name", "next", "--gpus", "4", "--max-runtime", "5m", "--", "sleep",
                            "600")
        done = self.cli("why", runs)
        self.assertIn(f"{runs} (big) runs on ", done.out)
        self.assertIn("GPUs 0-5", done.out)
        self.assertRegex(done.out, r"score +\d\.\d\d = resources")
        done = self.cli("why", waits)
        self.assertIn(f"{waits} (next) waits: needs 4 GPUs", done.out)
        self.assertRegex(done.out, r"expected start +[\w: ]+ \(in ([1-9]|10) min\)")
        self.assertIn("first in the queue", done.out)
        self.assertNotIn("Z\n", done.out)
        self.assertEqual(self.cli("why", "next", "-o", "json").json()["why"]["verdict"], "not_now")
        held = self.submit("--hold")
        self.assertIn(f"gpu-cli release {held}", self.cli("why", held).out)

    def test_why_tells_of_a_quota_in_amounts_that_people_use(self):
        self.cli("tenants", "create", "--name", "small", "--max-gpus", "2")
        self.addCleanup(self.cli, "tenants", "delete", "small")
        self.server.wait_state(self.submit("--tenant-id", "small", "--gpus", "1", "--gpu-milli", "500",
                                           "--max-runtime", "1h", "--", "sleep", "600"), "running")
        waits = self.submit("--tenant-id", "small", "--name", "more", "--gpus", "2", "--", "true")
        out = self.cli("why", waits).out
        self.assertIn(f"{waits} (more) waits for its tenant's other jobs\n", out)
        self.assertRegex(out, r"quota +0\.5 of 2 GPUs in use by tenant-\d+, this job asks for 2\n")
        self.assertRegex(out, r"expected start +[\w: ]+ \(in (1 h|[1-5]\d min)\)")
        self.assertRegex(self.cli("jobs", "--state", "running").out, r"running +0\.5 +\d")
        dry = self.cli("submit", "--dry-run", "--tenant-id", "small", "--gpus", "2").out
        self.assertIn("would wait for its tenant's other jobs\n", dry)
        after = self.submit("--tenant-id", "small", "--depends-on", waits, "--", "true")
        out = self.cli("why", after).out
        self.assertIn(f"waits for {waits} to end\n", out)
        self.assertNotIn("held", out)

    def test_logs(self):
        job = self.running("--", "sh", "-c", "for i in 1 2 3 4 5; do echo line $i; done; sleep 600")
        wait_for(lambda: self.server.cli("logs", job).out.count("\n") == 5, "five lines")
        self.assertEqual(self.cli("logs", job, "--tail", "2").out, "line 4\nline 5\n")
        self.assertIn("no rank 3", self.cli("logs", job, "--rank", "3", code=3).err)
        ended = self.submit("--", "sh", "-c", "echo first; echo last")
        self.server.wait_state(ended, "completed")
        self.assertEqual(self.cli("logs", ended).out, "first\nlast\n")
        self.assertEqual(self.cli("logs", "-f", ended).out, "first\nlast\n")
        waits = self.submit("--hold")
        self.assertIn("has not started yet", self.cli("logs", waits, code=3).err)

    def test_status_nodes_gpus_usage(self):
        self.assertIn("GPUs: 8 total, 8 available", self.cli("status").out)
        self.assertEqual(self.cli("cluster", "-o", "json").json()["total_gpus"], 8)
        node = self.cli("nodes", "-o", "json").json()["nodes"][0]["name"]
        self.assertRegex(self.cli("nodes").out, rf"{re.escape(node)} +online +8/8 +H100-SXM5-80GB")
        self.assertEqual(len(self.cli("gpus").out.splitlines()), 9)
        self.assertIn("HEALTH", self.cli("nodes", node).out)
        self.cli("nodes", "elsewhere", code=3)
        self.cli("submit", "--wait", "--", "true")
        self.assertIn("GPU HOURS", self.cli("usage").out)

    def test_events(self):
        job = self.running("--", "sleep", "600")
        out = self.cli("events", "--job", job).out
        self.assertIn("job.scheduled", out)
        self.assertIn("job.running", out)
        self.assertTrue(self.cli("events", "--type", "node", "-o", "json").json()["events"])

    def test_events_are_followed(self):
        environment = {**os.environ, "GPU_SCHEDULER_URL": self.server.url}
        with subprocess.Popen([str(CLI), "events", "-f", "-o", "json"], text=True,
                              stdout=subprocess.PIPE, env=environment) as follower:
            lines = []
            reader = threading.Thread(target=lambda: lines.extend(follower.stdout), daemon=True)
            reader.start()
            try:  # it takes a moment until it listens: what happens before, it does not see
                jobs = []

                def seen():
                    jobs.append(self.submit("--hold", "--name", "seen"))
                    return [json.loads(line) for line in lines]
                first = wait_for(seen, "an event", pause=0.3)[0]
                self.assertEqual(first["type"], "job.submitted")
                self.assertIn(first["job_id"], jobs)
            finally:
                follower.kill()
                reader.join()


class Changing(CliTest):
    def test_cancel_several(self):
        jobs = [self.submit("--hold"), self.running("--", "sleep", "600")]
        done = self.cli("cancel", *jobs, "job-1", code=3)
        self.assertIn("job-1", done.err)
        for job in jobs:
            self.assertIn(f"{job}: Job cancelled successfully", done.out)
            self.server.wait_state(job, "cancelled")
        self.assertIn("cancelled", self.cli("cancel", jobs[0], code=4).err)

    def test_hold_release_priority_requeue(self):
        self.running("--gpus", "8", "--", "sleep", "600")
        job = self.submit("--gpus", "8", "--name", "w", "--", "sleep", "600")
        self.cli("hold", job)
        self.assertTrue(self.get(f"/api/v1/jobs/{job}")["held"])
        self.cli("release", "w")
        self.assertFalse(self.get(f"/api/v1/jobs/{job}")["held"])
        self.cli("priority", job, "50")
        self.assertEqual(self.get(f"/api/v1/jobs/{job}")["priority"], 50)
        failed = self.submit("--gpus", "0", "--", "false")
        self.server.wait_state(failed, "failed")
        self.assertIn("queued again", self.cli("requeue", failed).out)

    def test_a_name_that_is_not_clear_changes_nothing(self):
        jobs = [self.submit("--hold", "--name", "twin") for _ in range(2)]
        done = self.cli("cancel", "twin", code=4)
        for job in jobs:
            self.assertIn(job, done.err)
            self.assertEqual(self.server.job(job)["state"], "pending")

    def test_drain_and_undrain(self):
        node = self.get("/api/v1/nodes")["nodes"][0]["name"]
        self.assertIn("drained", self.cli("drain", node).out)
        self.assertRegex(self.cli("nodes").out, r"draining|cordoned")
        job = self.submit("--", "true")
        self.assertIn("waits", self.cli("why", job).out)
        self.cli("undrain", node)
        self.server.wait_state(job, "completed")
        self.cli("drain", "elsewhere", code=3)

    def test_tenants(self):
        tenant = self.cli("tenants", "create", "--name", "new", "--max-gpus", "3", "-o",
                          "json").json()
        self.assertEqual((tenant["name"], tenant["max_gpus"]), ("new", 3))
        try:
            self.assertIn("0/3", self.cli("tenants").out)
            self.cli("tenants", "update", "new", "--max-gpus", "4", "--tier", "high")
            got = self.cli("tenants", "get", tenant["id"], "-o", "json").json()
            self.assertEqual((got["max_gpus"], got["priority_tier"]), (4, "high"))
            done = self.cli("submit", "--tenant-id", "new", "--gpus", "5", code=5)
            self.assertIn("4", done.err)
        finally:
            self.cli("tenants", "delete", "new")
        self.cli("tenants", "get", tenant["id"], code=3)
        old = self.cli("create-tenant", "--name", "old-way", "--priority", "low")
        self.assertRegex(old.out, r"Tenant ID: tenant-\d+")
        self.cli("tenants", "delete", "old-way")
        self.cli("create-tenant", code=2)


class Failing(CliTest):
    def test_unknown_jobs_and_commands(self):
        self.assertEqual(self.cli("get", "job-1", code=3).err, "gpu-cli: Job not found: job-1\n")
        self.assertIn("no job with the id or name", self.cli("why", "nobody", code=3).err)
        self.cli("no-such-command", code=2)
        self.cli(code=2)
        self.cli("jobs", "-o", "xml", code=2)

    def test_a_server_that_is_not_there(self):
        url = f"http://127.0.0.1:{free_port()}"
        done = self.cli("jobs", "--server", url, code=7)
        self.assertIn(f"cannot reach {url}: Connection refused", done.err)
        self.assertIn("--server URL", done.err)
        self.assertEqual(done.out, "")
        self.assertIn("ftp", self.cli("jobs", "--api-url", "ftp://x", code=2).err)

    def test_a_reader_that_leaves_is_no_error(self):
        environment = {**os.environ, "GPU_SCHEDULER_URL": self.server.url}
        shell = f"set -o pipefail; '{CLI}' man | head -1 && '{CLI}' gpus | true"
        done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=60,
                              env=environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_texts_of_others_do_not_steer_the_terminal(self):
        job = self.submit("--hold", "--name", "script", "--script", "printf '\\033[31m'\n\x1b[2J")
        self.assertNotIn("\x1b", self.cli("get", job).out)


class Alone(CliTest):
    def test_login_stores_and_logout_forgets(self):
        stored = pathlib.Path(self.server.folder, "config/gpu-scheduler/cli.yaml")
        no_url = {"GPU_SCHEDULER_URL": ""}
        self.cli("login", "--server", f"http://127.0.0.1:{free_port()}", code=7)
        self.assertFalse(stored.exists())
        self.cli("login", "--server", self.server.url, "--tenant-id", "team", environment=no_url)
        self.assertEqual(stat.S_IMODE(stored.stat().st_mode), 0o600)
        self.assertIn(TENANT, stored.read_text())
        self.cli("status", environment=no_url)
        self.cli("logout")
        self.assertFalse(stored.exists())

    def test_completion_man_version(self):
        for shell in ("bash", "zsh", "fish"):
            self.assertIn("submit", self.cli("completion", shell).out)
        done = subprocess.run(["bash", "-n"], input=self.cli("completion", "bash").out, text=True,
                              capture_output=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)
        page = self.cli("man").out
        self.assertTrue(page.startswith(".TH GPU\\-CLI 1"))
        self.assertIn(".SS \"submit\"", page)
        self.assertIn("\\-\\-max\\-runtime", page)
        self.assertRegex(self.cli("--version").out, r"^gpu-cli \d")
        self.assertIn("Exit codes", self.cli("--help").out)

    def test_questions_about_scenario_files_need_no_server(self):
        scenario = next((ROOT / "tests/scenarios/explain").glob("*.scn"))
        environment = {"GPU_SCHEDULER_URL": "http://127.0.0.1:1"}
        job = re.search(r"^\s*submit (\S+)", scenario.read_text(), re.MULTILINE)[1]
        done = self.cli("offline", "why", scenario, job, environment=environment)
        self.assertIn(job, done.out)
        done = self.cli("offline", "dry-run", scenario, "tenant=a", "gpus=1", "--json",
                        environment=environment)
        self.assertIn("starts_now", done.out)


class Moody:
    """A server that plays a list of answers, (status, headers, body), and notes what it is asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []
        moody = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                moody.asked.append((self.command, self.path, self.headers.get("Idempotency-Key"),
                                    body))
                last = len(moody.answers) == 1
                status, headers, text = moody.answers[0] if last else moody.answers.pop(0)
                self.send_response(status)
                for name, value in {**headers, "Content-Length": len(text)}.items():
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(text.encode())
            do_GET = do_POST = do_DELETE = answer

            def log_message(self, *_):
                pass
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Patience(unittest.TestCase):
    SUBMITTED = (201, {}, '{"job_id": "job-7", "status": "submitted"}')
    FULL = (429, {"Retry-After": 1}, '{"error": "queue full: 3 jobs wait, the maximum is 3"}')
    STANDBY = (503, {}, '{"error": "another scheduler leads"}')

    def cli(self, moody, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            return run_cli(moody.url, folder, *arguments)

    def submit(self, moody):
        return self.cli(moody, "submit", "--tenant-id", "tenant-1", "--", "true")

    def test_a_submission_that_is_put_off_is_repeated_under_the_same_key(self):
        with Moody(self.FULL, self.STANDBY, self.SUBMITTED) as moody:
            begin = time.monotonic()
            done = self.submit(moody)
            self.assertEqual((done.code, done.err), (0, ""), done)
            self.assertIn("Job ID: job-7", done.out)
            posts = [ask for ask in moody.asked if ask[0] == "POST"]
            self.assertEqual(len(posts), 3, moody.asked)
            self.assertEqual(len(set(posts)), 1, "the same request each time")
            self.assertTrue(posts[0][2], "with a key")
            self.assertGreaterEqual(time.monotonic() - begin, 1, "Retry-After is kept")

    def test_whoever_is_put_off_again_and_again_is_told(self):
        with Moody((503, {}, '{"error": "another scheduler leads"}')) as moody:
            done = self.submit(moody)
            self.assertEqual(done.code, 7, done)
            self.assertIn("another scheduler leads", done.err)
            self.assertGreater(len(moody.asked), 1)
        full = (429, {"Retry-After": 3600}, self.FULL[2])
        with Moody(full) as moody:
            done = self.submit(moody)
            self.assertEqual(done.code, 7, done)
            self.assertIn("queue full: 3 jobs wait", done.err)
            self.assertEqual(len(moody.asked), 1, "an hour is too long to wait")

    def test_reading_is_repeated_too(self):
        with Moody(self.STANDBY, (200, {}, '{"jobs": [], "total": 0}')) as moody:
            self.assertEqual(self.cli(moody, "jobs").code, 0)
            self.assertEqual(len(moody.asked), 2)


class Terminal(CliTest):
    def test_top_once(self):
        self.running("--name", "busy", "--gpus", "3", "--", "sleep", "600")
        self.submit("--name", "later", "--gpus", "8", "--hold")
        out = self.cli("top", "--once").out
        self.assertIn("3 of 8 taken", out)
        self.assertRegex(out, r"RUNNING.*\njob-\d+ +busy +running +3")
        self.assertRegex(out, r"WAITING.*\njob-\d+ +later +held +8")
        self.assertNotIn("\x1b", out)
        self.assertEqual(self.cli("top", "-o", "json").json()["status"]["total_gpus"], 8)

    def live(self, leave):
        """Runs `top` on a terminal until it shows the cluster, then leaves; what it wrote."""
        environment = {**os.environ, "GPU_SCHEDULER_URL": self.server.url, "TERM": "xterm"}
        return on_terminal([CLI, "top"], lambda seen: b"of 8 taken" in seen, leave, environment)

    def test_top_leaves_the_terminal_as_it_was(self):
        for leave in (lambda terminal, _: os.write(terminal, b"q"),
                      press_ctrl_c,
                      lambda _, pid: os.kill(pid, signal.SIGTERM)):
            code, seen = self.live(leave)
            self.assertEqual(code, 0)
            self.assertIn("\x1b[?1049h", seen)
            self.assertTrue(seen.rstrip().endswith("\x1b[?25h\x1b[?1049l"), repr(seen[-80:]))


def main():
    global SERVER, TENANT
    with Service(settings={"agent.grace_ms": 500}) as server:
        SERVER, TENANT = server, server.tenant("team", guaranteed_gpus=4)
        result = unittest.main(exit=False, verbosity=1).result
        if not result.wasSuccessful():
            print(server.log()[-4000:], file=sys.stderr)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
