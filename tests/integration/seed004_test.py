#!/usr/bin/env python3
"""The public contract of the standalone service, as its document shows it: every curl command as it
is written there, the complete workflow, the inspection of the database, metrics, configuration.

The document is seeds/004_*.txt in the folder that SHARED names (default: ../shared).
"""

import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from service import (BINARY, ROOT, Postgres, Service, check, equal, free_port, main,
                     temporary_folder, test, wait_for)

SHARED = ROOT / (os.environ.get("SHARED") or "../shared")
DOCUMENT = next(SHARED.glob("seeds/004_*.txt"), None)
_shared = {}


def service():
    if "service" not in _shared:
        _shared["service"] = Service()
    return _shared["service"]


def blocks():
    """The shell commands of the document, block by block."""
    return re.findall(r"^```bash\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)


def block_with(words):
    found = [block for block in blocks() if all(word in block for word in words)]
    check(found, f"the document has no block with {words}")
    return found[0]


def commands():
    """Every curl command, as written, with its continuation lines and what it is piped into."""
    found = []
    for block in blocks():
        lines = iter(block.splitlines())
        for line in lines:
            if not line.startswith("curl "):
                continue
            while line.endswith("\\") or line.count("'") % 2 or _quotes(line) % 2:
                line += "\n" + next(lines)
            found.append(line)
    return found


def _quotes(line):
    return len(re.findall(r'(?<!\\)"', re.sub(r"'[^']*'", "", line)))


def shell(text, port, **variables):
    script = text.replace("localhost:8080", f"localhost:{port}")
    done = subprocess.run(["bash", "-o", "pipefail", "-c", script], capture_output=True, text=True,
                          timeout=60, env={**os.environ, **variables, "no_proxy": "localhost"})
    check(done.returncode == 0, f"exit code {done.returncode} of:\n{script}\n{done.stdout}{done.stderr}")
    return done.stdout


def run_command(words, **variables):
    found = [one for one in commands() if all(word in one for word in words)]
    check(found, f"the document has no command with {words}")
    return shell(found[0], service().http_port, **variables)


@test
def the_document_has_the_commands_that_are_tested():
    equal(len(commands()), 17, "curl commands in the document\n" + "\n--\n".join(commands()))


@test
def both_health_paths_answer():
    for path in ("/health", "/api/v1/health"):
        found = [one for one in commands() if one.endswith(f"8080{path}")]
        check(found, path)
        answer = json.loads(shell(found[0], service().http_port))
        equal(answer["status"], "healthy", path)


@test
def step_1_creates_a_tenant():
    answer = json.loads(run_command(["/tenants", "ML Research Team"]))
    check(re.fullmatch(r"tenant-\d+", answer["id"]), answer)
    want = {"name": "ML Research Team", "max_gpus": 16, "max_gpu_memory_mb": 200000,
            "max_cpu_cores": 64, "max_memory_mb": 500000, "max_concurrent_jobs": 20}
    equal({key: answer[key] for key in want}, want)
    _shared["tenant"] = answer["id"]


@test
def step_2_submits_a_job():
    answer = json.loads(run_command(["/jobs", "AI Training Job"], TENANT_ID=_shared["tenant"]))
    check(re.fullmatch(r"job-\d+", answer["job_id"]), answer)
    equal(answer["status"], "submitted")
    equal(answer["message"], "Job submitted successfully")
    job = service().job(answer["job_id"])
    want = {"name": "AI Training Job", "tenant_id": _shared["tenant"], "gpu_count": 4,
            "priority": 1000, "command": ["python", "train.py"], "image": "pytorch:2.0",
            "gpu_memory_mb": 40000, "cpu_cores": 16, "memory_mb": 64000}
    equal({key: job.get(key) for key in want}, want)
    _shared["job"] = answer["job_id"]


@test
def step_3_lists_jobs_by_priority():
    tenant = _shared["tenant"]
    for priority in (5, 3000):
        service().submit(tenant, ["true"], priority=priority)
    jobs = json.loads(run_command(["sort_by(-.priority)'"]))
    priorities = [job["priority"] for job in jobs]
    equal(priorities, sorted(priorities, reverse=True))
    check({5, 1000, 3000} <= set(priorities), priorities)


@test
def step_3_shows_one_job():
    answer = json.loads(run_command(["jobs/$JOB_ID | jq ."], JOB_ID=_shared["job"]))
    equal(answer["id"], _shared["job"])
    check(answer["state"] in ("pending", "scheduled", "running", "completed", "failed"), answer)


@test
def step_3_shows_the_cluster():
    found = [one for one in commands() if "cluster/status" in one]
    equal(len(found), 4)
    for command in found:
        answer = json.loads(shell(command.replace("curl ", "curl -s "), service().http_port))
        for key in ("total_nodes", "online_nodes", "total_gpus", "available_gpus", "total_jobs",
                    "running_jobs", "pending_jobs"):
            check(isinstance(answer[key], int), key, answer)
        equal((answer["total_nodes"], answer["total_gpus"]), (1, 8))


@test
def step_3_lists_tenants():
    answer = json.loads(run_command(["/tenants | jq ."]))
    check(_shared["tenant"] in [tenant["id"] for tenant in answer["tenants"]], answer)


@test
def the_tenant_with_all_quotas_is_created():
    """The document comments each field with `# Required!`, which is no JSON: without comments."""
    found = [one for one in commands() if "Team Name" in one]
    equal(len(found), 1)
    answer = json.loads(shell(re.sub(r" *# Required!", "", found[0]), service().http_port))
    equal(answer["max_concurrent_jobs"], 10)
    for field in ("max_gpus", "max_gpu_memory_mb", "max_cpu_cores", "max_memory_mb",
                  "max_concurrent_jobs"):
        body = {"name": "T", "max_gpus": 1, "max_gpu_memory_mb": 1, "max_cpu_cores": 1,
                "max_memory_mb": 1, "max_concurrent_jobs": 1}
        del body[field]
        refused = service().post("/api/v1/tenants", body)
        equal(refused.status, 400)
        check(field in refused.error and "required" in refused.error, refused)


@test
def a_command_that_is_a_string_is_refused():
    refused = service().post("/api/v1/jobs", {"name": "j", "tenant_id": _shared["tenant"],
                                              "gpu_count": 1, "command": "python train.py"})
    equal(refused.status, 400)
    check("command must be a list" in refused.error, refused)


@test
def the_complete_workflow_runs():
    script = block_with(["# 1. Create a tenant", "# 6. Check cluster status"])
    out = shell(script.replace("\ncurl -X POST", "\ncurl -sS -X POST"), service().http_port)
    tenant = re.search(r"Created tenant: (tenant-\d+)", out)
    check(tenant, out)
    equal(len(re.findall(r'"job_id": ?"job-\d+"', out)), 3, out)
    rows = re.findall(r"^(\d+) \| (.+) \| (\d+) GPUs \| (\w+)$", out, re.MULTILINE)
    ours = [row[:3] for row in rows if row[1] in (
        "Production Model Training", "Research Experiment", "Data Preprocessing")]
    equal(ours, [("2000", "Production Model Training", "8"), ("500", "Research Experiment", "2"),
                 ("100", "Data Preprocessing", "1")])
    status = json.loads(out[out.index("Cluster status:") + len("Cluster status:"):])
    equal(status["total_gpus"], 8)
    jobs = service().get(f"/api/v1/jobs?tenant_id={tenant.group(1)}").json
    equal(jobs["total"], 3)


@test
def a_quota_that_can_never_fit_is_refused_in_the_documents_words():
    tenant = service().tenant(max_gpus=4)
    service().submit(tenant, ["sleep", "600"], gpu_count=2)
    refused = service().post("/api/v1/jobs", {"name": "j", "tenant_id": tenant, "gpu_count": 8,
                                              "command": ["true"]})
    equal(refused.status, 422)
    check(refused.error.startswith(f"quota exceeded for tenant {tenant}: GPUs requested=8, quota=4, "
                                   "current="), refused)


@test
def a_job_is_cancelled():
    tenant = service().tenant()
    job = service().submit(tenant, ["sleep", "600"], held=True)
    answer = service().http("DELETE", f"/api/v1/jobs/{job}")
    equal(answer.status, 200)
    equal(service().wait_state(job, "cancelled")["state"], "cancelled")


@test
def the_objects_of_the_document_are_accepted():
    objects = [json.loads(text) for text in
               re.findall(r"^```json\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)]
    tenant_object = next(one for one in objects if "priority_tier" in one)
    job_object = next(one for one in objects if "gang_scheduling" in one)
    tenant = service().post("/api/v1/tenants", tenant_object)
    equal(tenant.status, 201, tenant)
    equal({key: tenant.json[key] for key in tenant_object}, tenant_object)
    job = service().post("/api/v1/jobs", {**job_object, "tenant_id": tenant.json["id"]})
    equal(job.status, 201, job)
    shown = service().job(job.json["job_id"])
    for key, value in job_object.items():
        if key != "tenant_id":
            equal(shown[key], value, key)


@test
def metrics_have_the_documents_names():
    text = service().metrics()
    names = re.findall(r"^- `(gpu_scheduler_\w+)`", DOCUMENT.read_text(), re.MULTILINE)
    equal(len(names), 5)
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    want = {"gpu_scheduler_jobs_total": "counter", "gpu_scheduler_queue_size": "gauge",
            "gpu_scheduler_gpu_utilization": "gauge",
            "gpu_scheduler_scheduling_latency": "histogram",
            "gpu_scheduler_preemptions_total": "counter"}
    equal(sorted(names), sorted(want))
    for name, kind in want.items():
        equal(types.get(name), kind, name)
        check(re.search(rf"^{name}(_bucket|_count)?(\{{.*\}})? [-+0-9.e]+$", text, re.MULTILINE),
              f"{name} has no sample")
    check(re.search(r'^gpu_scheduler_jobs_total\{.*state="completed".*\} ', text, re.MULTILINE), text)
    check(re.search(r'^gpu_scheduler_gpu_utilization\{.*node=".*\} ', text, re.MULTILINE), text)


@test
def the_configuration_file_with_its_environment_runs_on_postgresql():
    """bin/scheduler --config config/scheduler-config.yaml, settings overridden as documented."""
    postgres = Postgres()
    folder = temporary_folder("config")
    ports = {"API_HTTP_PORT": free_port(), "API_GRPC_PORT": free_port(), "METRICS_PORT": free_port()}
    environment = {f"GPU_SCHEDULER_{key}": str(value) for key, value in ports.items()}
    environment.update({"GPU_SCHEDULER_DATABASE_PASSWORD": postgres.PASSWORD,
                        "GPU_SCHEDULER_DATABASE_PORT": str(postgres.port),
                        "GPU_SCHEDULER_AGENT_SIMULATE": "8xH100-SXM5-80GB"})
    # Where the root is a build tree bin/ finds the binary by itself; GPU_SCHEDULER_BINARY replaces it.
    launcher = [str(ROOT / "bin/scheduler")]
    if os.environ.get("GPU_SCHEDULER_BINARY"):
        launcher = [BINARY, "serve"]
    with Service(start=False) as one:
        one.http_port = ports["API_HTTP_PORT"]
        one.metrics_port = ports["METRICS_PORT"]
        one.environment = environment
        one.command = lambda: [*launcher, "--config", "config/scheduler-config.yaml",
                               "--state-dir", one.state]
        one.start()
        check("PostgreSQL" in one.log(), one.log())
        check(not os.path.exists(f"{one.state}/gpu-scheduler.db"), "SQLite was used")
        tenant = one.tenant(name="Data Science Team", max_gpus=12)
        low = one.submit(tenant, ["sleep", "600"], name="low", priority=100, gpu_count=2)
        high = one.submit(tenant, ["sleep", "600"], name="high", priority=2000, gpu_count=3)
        for job in (low, high):
            one.wait_state(job, "running")
        block = block_with(["Connect to PostgreSQL"])
        jobs, tenants = re.findall(r"^SELECT .*;$", block, re.MULTILINE)
        equal(postgres.psql(jobs).splitlines(),
              [f"{high}|high|running|2000|3", f"{low}|low|running|100|2"])
        wait_for(lambda: postgres.psql(tenants).splitlines()
                 == [f"{tenant}|Data Science Team|12|5"], f"the tenant's row: {postgres.psql(tenants)}")
        tables = postgres.psql("SELECT tablename FROM pg_tables WHERE schemaname='public'").split()
        check({"jobs", "tenants"} <= set(tables), tables)
        one.stop()
        one.start()  # what was there is there again
        equal(one.job(high)["state"], "running")
        for job in (low, high):
            one.http("DELETE", f"/api/v1/jobs/{job}")
            one.wait_state(job, "cancelled")
    postgres.stop()


@test
def an_unreachable_database_is_said_at_once():
    with Service(settings={"database.port": free_port(), "database.host": "127.0.0.1"},
                 start=False) as one:
        one.spawn()
        code = one.process.wait(30)
        one.process = None
        check(code != 0, "it runs without its database")
        check("127.0.0.1" in one.log() and "refused" in one.log(), one.log())


if __name__ == "__main__":
    if DOCUMENT is None:
        print(f"skipped: no {SHARED}/seeds/004_*.txt\n0 passed, 0 failed")
        sys.exit(0)
    code = main()
    for started in _shared.values():
        if isinstance(started, Service):
            started.close()
    sys.exit(code)
