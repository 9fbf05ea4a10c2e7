#!/usr/bin/env python3
"""The REST API from outside: what each route answers, right and wrong."""

import base64
import hashlib
import hmac
import http.client
import json
import pathlib
import socket
import ssl
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from service import BINARY, QUOTA, Service, check, equal, main, temporary_folder, test, wait_for
from schemas import Document
from websocket import WebSocket

API = "/api/v1"
_shared = {}
_answered = set()  # (operation, status) that were seen
_undescribed = []


def service():
    if "service" not in _shared:
        _shared["service"] = Service(settings={"agent.grace_ms": 500})
        document = Document(_shared["service"].get(f"{API}/openapi.json").json)
        _shared["document"] = document
        _shared["service"].observe = lambda *seen: compare(document, *seen)
    return _shared["service"]


def compare(document, method, path, answer):
    """Every answer of this suite's main server is held against the document."""
    path = path.split("?")[0]
    if method == "OPTIONS" or answer.status == 405 or document.operation(method, path)[1] is None:
        return
    kind = answer.headers["Content-Type"]
    value = answer.json if (kind or "").startswith("application/json") else answer.body or None
    _undescribed.extend(document.problems_of(method, path, answer.status, kind, value))
    _answered.add((document.operation(method, path)[1]["operationId"], answer.status))


def tenant():
    if "tenant" not in _shared:
        _shared["tenant"] = service().tenant()
    return _shared["tenant"]


def refused(answer, status, *words):
    equal(answer.status, status, answer)
    equal(answer.headers["Content-Type"], "application/json")
    equal(list(answer.json), ["error"], answer)
    for word in words:
        check(word in answer.error, f"{word!r} is not in {answer}")
    return answer


def job_body(**fields):
    return {"name": "j", "tenant_id": tenant(), "gpu_count": 1, "command": ["true"], **fields}


# ---------------------------------------------------------------- the service itself


@test
def health_and_readiness():
    for path in ("/health", f"{API}/health"):
        answer = service().get(path)
        equal((answer.status, answer.json["status"]), (200, "healthy"))
        check(answer.json["version"], answer)
    equal(service().get("/ready").json, {"status": "ready"})


@test
def unknown_paths_and_methods():
    refused(service().get("/nothing"), 404, "/nothing")
    refused(service().get(f"{API}/"), 404)
    refused(service().get(f"{API}/jobs/"), 404)
    answer = refused(service().http("PUT", f"{API}/jobs", {}), 405, "POST")
    equal(sorted(answer.headers["Allow"].split(", ")), ["GET", "OPTIONS", "POST"])


@test
def head_is_get_without_a_body():
    connection = http.client.HTTPConnection("127.0.0.1", service().http_port, timeout=10)
    connection.request("HEAD", f"{API}/health")
    answer = connection.getresponse()
    equal((answer.status, answer.read()), (200, b""))
    check(int(answer.headers["Content-Length"]) > 0, answer.headers)
    connection.request("GET", f"{API}/health")  # the connection goes on
    equal(connection.getresponse().status, 200)


@test
def the_openapi_document_is_served():
    answer = service().get(f"{API}/openapi.json")
    equal((answer.status, answer.json["openapi"]), (200, "3.0.3"))


@test
def what_is_no_http_is_refused():
    with socket.create_connection(("127.0.0.1", service().http_port), 10) as raw:
        raw.sendall(b"this is no HTTP\r\n\r\n")
        head = raw.recv(4096)
    check(head.startswith(b"HTTP/1.1 400"), head)


# ---------------------------------------------------------------- tenants


@test
def a_tenant_lives():
    answer = service().post(f"{API}/tenants", {"name": "Team", **QUOTA, "priority_tier": "high",
                                               "fair_share_weight": 2.5})
    equal(answer.status, 201)
    one = answer.json
    equal((one["priority_tier"], one["fair_share_weight"], one["active"]), ("high", 2.5, True))
    equal(one["current_gpus"], 0)
    path = f"{API}/tenants/{one['id']}"
    equal(service().get(path).json, one)
    check(one["id"] in [t["id"] for t in service().get(f"{API}/tenants").json["tenants"]])
    changed = service().http("PATCH", path, {"max_gpus": 3})
    equal((changed.status, changed.json["max_gpus"], changed.json["priority_tier"]), (200, 3, "high"))
    replaced = service().http("PUT", path, {"name": "New", **QUOTA})
    equal((replaced.json["name"], replaced.json["priority_tier"]), ("New", "medium"))
    equal(service().http("DELETE", path).status, 200)
    refused(service().get(path), 404, one["id"])
    refused(service().http("DELETE", path), 404, one["id"])
    refused(service().http("PATCH", path, {"max_gpus": 3}), 404, one["id"])
    check(one["id"] not in [t["id"] for t in service().get(f"{API}/tenants").json["tenants"]])


@test
def wrong_tenants_are_refused():
    good = {"name": "T", **QUOTA}
    for field in QUOTA:
        refused(service().post(f"{API}/tenants", {k: v for k, v in good.items() if k != field}), 400,
                field, "required")
        refused(service().post(f"{API}/tenants", {**good, field: -1}), 400, field, "negative")
        refused(service().post(f"{API}/tenants", {**good, field: "8"}), 400, field, "number")
        refused(service().post(f"{API}/tenants", {**good, field: 1.5}), 400, field, "whole")
    refused(service().post(f"{API}/tenants", {**good, "name": ""}), 400, "name", "empty")
    refused(service().post(f"{API}/tenants", {**good, "max_gpu": 3}), 400, "max_gpu", "max_gpus")
    refused(service().post(f"{API}/tenants", {**good, "priority_tier": "huge"}), 400, "priority_tier",
            "critical")
    refused(service().post(f"{API}/tenants", {**good, "fair_share_weight": 0}), 400,
            "fair_share_weight")
    refused(service().post(f"{API}/tenants", []), 400, "object")
    refused(service().post(f"{API}/tenants", b""), 400)
    refused(service().post(f"{API}/tenants", b"{"), 400, "line 1")
    path = f"{API}/tenants/{tenant()}"
    refused(service().http("PUT", path, {"name": "x"}), 400, "required")
    refused(service().http("PATCH", path, {"max_gpus": -4}), 400, "max_gpus")
    refused(service().http("PATCH", path, {"colour": 1}), 400, "colour")


@test
def a_tenant_with_jobs_is_not_deleted():
    one = service().tenant()
    job = service().submit(one, ["true"], held=True)
    refused(service().http("DELETE", f"{API}/tenants/{one}"), 409)
    service().http("DELETE", f"{API}/jobs/{job}")
    service().wait_state(job, "cancelled")
    equal(service().http("DELETE", f"{API}/tenants/{one}").status, 200)
    equal(service().job(job)["state"], "cancelled")  # history stays


@test
def unknown_ids_are_not_found():
    for kind in ("jobs", "tenants", "nodes"):
        for name in ("nobody", "job-1", "tenant-1", "job-99999999999999999999", "job--1", "%00", "..",
                     "%2e%2e%2f", "job-1%20"):  # nothing that could be one
            answer = service().get(f"{API}/{kind}/{name}")
            check(answer.status in (400, 404), f"{kind}/{name}: {answer}")
            check("error" in answer.json, answer)
    for action in ("hold", "release", "requeue"):
        refused(service().post(f"{API}/jobs/job-1/{action}"), 404, "job-1")
    for part in ("explain", "events", "logs"):
        refused(service().get(f"{API}/jobs/job-1/{part}"), 404, "job-1")
    refused(service().http("DELETE", f"{API}/jobs/job-1"), 404, "job-1")
    refused(service().http("PATCH", f"{API}/jobs/job-1", {"priority": 1}), 404, "job-1")
    refused(service().get(f"{API}/tenants/tenant-1/usage"), 404, "tenant-1")


# ---------------------------------------------------------------- submitting


@test
def a_job_runs_and_its_record_says_so():
    job = service().submit(tenant(), ["sh", "-c", "echo $CUDA_VISIBLE_DEVICES"], gpu_count=2,
                           labels={"team": "vision"}, priority=700)
    done = service().wait_state(job, "completed")
    equal((done["exit_code"], done["attempt"], len(done["allocated_gpus"])), (0, 1, 2))
    equal((done["labels"], done["priority"]), ({"team": "vision"}, 700))
    check(done["submitted_at"] <= done["scheduled_at"] <= done["started_at"] <= done["completed_at"],
          done)
    failed = service().wait_state(service().submit(tenant(), ["sh", "-c", "exit 7"]), "failed")
    equal((failed["exit_code"], failed["message"]), (7, "exited with code 7"))
    absent = service().wait_state(service().submit(tenant(), ["/no/such/program"]), "failed")
    check("/no/such/program" in absent["message"], absent)


@test
def wrong_jobs_are_refused():
    def wrong(words, status=400, **fields):
        refused(service().post(f"{API}/jobs", job_body(**fields)), status, *words)
    wrong(["command", "list"], command="python train.py")
    wrong(["command"], command=[])
    wrong(["command"], command=[1])
    wrong(["gpu_count"], gpu_count=-1)
    wrong(["gpu_count"], gpu_count="2")
    wrong(["gpu_count"], gpu_count=1e30)
    wrong(["name"], name="")
    wrong(["name"], name="x" * 300)
    wrong(["gpu_cout", "gpu_count"], gpu_cout=2)
    wrong(["environment"], environment={"A=B": "1"})
    wrong(["environment"], environment=["A"])
    wrong(["max_runtime_minutes"], max_runtime_minutes=-1)
    wrong(["nodes"], nodes=3, gpu_count=4, gang_scheduling=True)
    wrong(["mig_profile"], mig_profile="huge")
    wrong(["depends_on"], depends_on="job-1")
    wrong(["depends_on", "job-1"], 404, depends_on=["job-1"])
    wrong(["tenant-404"], 404, tenant_id="tenant-404")
    wrong(["array"], array=-1)
    wrong(["array"], array=1000000)
    wrong(["array_index"], array_index=3)
    wrong(["array_id"], array_id="job-1")
    wrong(["priority"], priority=10**12)
    body = job_body()
    del body["tenant_id"]
    refused(service().post(f"{API}/jobs", body), 400, "tenant_id", "required")
    refused(service().post(f"{API}/jobs", b'{"name":"a","name":"b"}'), 400, "twice")
    refused(service().post(f"{API}/jobs", b'{"name":"a\\u0000"}'), 400, "U+0000")
    refused(service().post(f"{API}/jobs", b"[" * 100000), 400)
    refused(service().post(f"{API}/jobs", b"\xff\xfe"), 400)


@test
def a_body_has_its_limit():
    text = json.dumps(job_body(script="#" * (1 << 20))).encode()
    answer = service().post(f"{API}/jobs", text)
    refused(answer, 413, "1048576")
    near = service().post(f"{API}/jobs?dry_run=true", {**job_body(), "command": [], "script": "#" * 1000000})
    equal(near.status, 200, near)


@test
def quotas_that_can_never_fit_are_refused():
    one = service().tenant(max_gpus=4, max_cpu_cores=8, max_memory_mb=1000, max_gpu_memory_mb=1000)
    held = service().submit(one, ["true"], gpu_count=2, held=True)
    for fields, words in (({"gpu_count": 8}, f"quota exceeded for tenant {one}: GPUs requested=8, "
                                             "quota=4, current=0"),
                          ({"cpu_cores": 9}, "quota exceeded"),
                          ({"memory_mb": 1001}, "quota exceeded"),
                          ({"gpu_memory_mb": 1001}, "quota exceeded")):
        body = {**job_body(), "tenant_id": one, **fields}
        refused(service().post(f"{API}/jobs", body), 422, words, one)
    # What fits once others have ended waits.
    waiting = [service().submit(one, ["sleep", "600"], gpu_count=3) for _ in range(2)]
    service().wait_state(waiting[0], "running")
    explained = service().get(f"{API}/jobs/{waiting[1]}/explain").json
    equal(explained["why"]["verdict"], "not_now", explained)
    for job in [held, *waiting]:
        service().http("DELETE", f"{API}/jobs/{job}")


@test
def a_full_queue_says_when_to_come_back():
    with Service(settings={"scheduler.max_queue_size": 3}) as small:
        one = small.tenant()
        jobs = [small.submit(one, ["true"], gpu_model="B200") for _ in range(3)]
        answer = small.post(f"{API}/jobs", {**job_body(), "tenant_id": one})
        refused(answer, 429, "queue full", "3")
        check(int(answer.headers["Retry-After"]) >= 1, answer.headers)
        array = small.post(f"{API}/jobs", {**job_body(), "tenant_id": one, "array": 2})
        refused(array, 429, "queue full")
        small.http("DELETE", f"{API}/jobs/{jobs[0]}")
        small.wait_state(small.submit(one), "completed")
        limited = small.tenant(max_queued_jobs=1)
        small.http("DELETE", f"{API}/jobs/{jobs[1]}")
        small.submit(limited, ["true"], gpu_model="B200")
        refused(small.post(f"{API}/jobs", {**job_body(), "tenant_id": limited}), 429, limited)


@test
def the_same_key_means_the_same_job():
    def send(key, **fields):
        return service().post(f"{API}/jobs", job_body(**fields), headers={"Idempotency-Key": key})
    first, again = send("k1"), send("k1")
    equal((first.status, again.status), (201, 201))
    equal(again.json, first.json)
    refused(send("k1", name="another"), 409, "k1")
    check(send("k2").json["job_id"] != first.json["job_id"])
    refused(send("k" * 300), 400, "Idempotency-Key")
    array = send("k3", array=3, held=True)
    equal(send("k3", array=3, held=True).json, array.json)
    batch = {"jobs": [job_body(held=True)] * 2}
    answers = [service().post(f"{API}/jobs/batch", batch, headers={"Idempotency-Key": "k4"})
               for _ in range(2)]
    equal(answers[0].json, answers[1].json)
    equal([answer.status for answer in answers], [201, 201])
    jobs = array.json["job_ids"] + [job["job_id"] for job in answers[0].json["jobs"]]
    for job in jobs:
        equal(service().http("DELETE", f"{API}/jobs/{job}").status, 200)


@test
def keys_outlive_a_restart_and_races():
    with Service() as one:
        team = one.tenant()
        body = {"name": "j", "tenant_id": team, "command": ["true"]}
        answers = []

        def send():
            answers.append(one.post(f"{API}/jobs", body, headers={"Idempotency-Key": "k"}).json)
        threads = [threading.Thread(target=send) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        equal(len({answer["job_id"] for answer in answers}), 1, answers)
        one.stop()
        one.start()
        send()
        equal(len({answer["job_id"] for answer in answers}), 1, answers)
        equal(one.get(f"{API}/jobs").json["total"], 1)


@test
def an_array_is_many_jobs():
    answer = service().post(f"{API}/jobs", job_body(
        name="sweep", array=5, command=["sh", "-c", "echo index=$GPU_SCHEDULER_ARRAY_INDEX"]))
    equal(answer.status, 201)
    ids = answer.json["job_ids"]
    equal((len(set(ids)), answer.json["array_id"], answer.json["job_id"]), (5, ids[0], ids[0]))
    for index, job in enumerate(ids):
        equal(service().wait_state(job, "completed")["array_index"], index)
    listed = service().get(f"{API}/jobs?array_id={ids[0]}").json
    equal(sorted(job["id"] for job in listed["jobs"]), sorted(ids))


@test
def a_batch_is_many_answers():
    good, bad = job_body(), job_body(command="true")
    answer = service().post(f"{API}/jobs/batch", {"jobs": [good, bad, good]})
    equal((answer.status, answer.json["accepted"], answer.json["rejected"]), (207, 2, 1))
    equal(answer.json["jobs"][1]["code"], 400)
    check("command" in answer.json["jobs"][1]["error"], answer)
    service().wait_state(answer.json["jobs"][2]["job_id"], "completed")
    equal(service().post(f"{API}/jobs/batch", {"jobs": [good]}).status, 201)
    equal(service().post(f"{API}/jobs/batch", {"jobs": [bad]}).status, 422)
    for wrong in ({}, {"jobs": []}, {"jobs": {}}, {"jobs": 3}, {"jobs": [good], "x": 1}, []):
        check(service().post(f"{API}/jobs/batch", wrong).status == 400, wrong)
    inner = service().post(f"{API}/jobs/batch", {"jobs": [3, None, {}]})
    equal([job["code"] for job in inner.json["jobs"]], [400, 400, 400])
    arrays = service().post(f"{API}/jobs/batch", {"jobs": [job_body(array=2)]})
    check("array" in arrays.json["jobs"][0]["error"], arrays)


@test
def dry_runs_change_nothing():
    before = service().get(f"{API}/cluster/status").json["total_jobs"]
    fits = service().post(f"{API}/jobs?dry_run=true", job_body(gpu_count=2))
    equal((fits.status, fits.json["starts_now"], len(fits.json["places"][0]["gpus"])), (200, True, 2))
    too_big = service().post(f"{API}/jobs?dry_run=true", job_body(gpu_count=9))
    equal((too_big.status, too_big.json["starts_now"]), (200, False))
    check(too_big.json["why"]["sentence"], too_big)
    refused(service().post(f"{API}/jobs?dry_run=true", job_body(tenant_id="tenant-404")), 404)
    refused(service().post(f"{API}/jobs?dry_run=maybe", job_body()), 400, "dry_run")
    refused(service().post(f"{API}/jobs?dryrun=true", job_body()), 400, "dryrun")
    equal(service().post(f"{API}/jobs?dry_run=true", job_body(array=3)).status, 200)
    equal(service().get(f"{API}/cluster/status").json["total_jobs"], before)


# ---------------------------------------------------------------- changing


@test
def hold_release_requeue_and_priority():
    job = service().submit(tenant(), ["sleep", "60"], held=True)
    path = f"{API}/jobs/{job}"
    equal(service().job(job)["held"], True)
    explained = service().get(f"{path}/explain").json
    check("held" in explained["why"]["sentence"], explained)
    changed = service().http("PATCH", path, {"priority": 1234})
    equal((changed.status, service().job(job)["priority"]), (200, 1234))
    refused(service().http("PATCH", path, {"priority": "high"}), 400, "priority")
    refused(service().http("PATCH", path, {}), 400, "priority")
    refused(service().http("PATCH", path, {"name": "x"}), 400)
    refused(service().http("PATCH", path, {"priority": 10**12}), 400, "priority")
    equal(service().post(f"{path}/release").status, 200)
    service().wait_state(job, "running")
    refused(service().post(f"{path}/hold"), 409)
    later = service().submit(tenant(), ["true"], gpu_model="B200")
    equal(service().post(f"{API}/jobs/{later}/hold").status, 200)
    equal(service().job(later)["held"], True)
    service().http("DELETE", f"{API}/jobs/{later}")
    equal(service().post(f"{path}/requeue").status, 200)
    wait_for(lambda: service().job(job)["attempt"] == 2 and service().job(job)["state"] == "running",
             "a second attempt")
    equal(service().job(job)["id"], job)
    answer = service().http("DELETE", path)
    equal((answer.status, answer.json["job_id"]), (200, job))
    equal(service().wait_state(job, "cancelled")["state"], "cancelled")
    refused(service().http("DELETE", path), 409, "cancelled")
    refused(service().post(f"{path}/hold"), 409)
    refused(service().http("PATCH", path, {"priority": 1}), 409)
    # One that has ended starts over.
    again = service().submit(tenant(), ["true"])
    service().wait_state(again, "completed")
    equal(service().post(f"{API}/jobs/{again}/requeue").status, 200)
    wait_for(lambda: service().job(again)["attempt"] == 2
             and service().job(again)["state"] == "completed", "its second end")
    waiting = service().submit(tenant(), ["true"], held=True)
    refused(service().post(f"{API}/jobs/{waiting}/requeue"), 409, "waits")
    service().http("DELETE", f"{API}/jobs/{waiting}")


@test
def dependencies_wait():
    first = service().submit(tenant(), ["true"], held=True)
    second = service().submit(tenant(), ["true"], depends_on=[first])
    check(first in service().get(f"{API}/jobs/{second}/explain").json["why"]["sentence"])
    service().post(f"{API}/jobs/{first}/release")
    service().wait_state(second, "completed")
    failing = service().submit(tenant(), ["false"], held=True)
    after = service().submit(tenant(), ["true"], depends_on=[failing])
    anyway = service().submit(tenant(), ["true"], depends_on=[{"job_id": failing, "condition": "any"}])
    service().post(f"{API}/jobs/{failing}/release")
    service().wait_state(failing, "failed")
    check(failing in service().wait_state(after, "cancelled")["message"])
    service().wait_state(anyway, "completed")


@test
def explain_names_the_reason():
    job = service().submit(tenant(), ["true"], gpu_model="B200")
    answer = service().get(f"{API}/jobs/{job}/explain").json
    equal((answer["job_id"], answer["state"], answer["why"]["verdict"]), (job, "pending", "never"))
    check("B200" in answer["why"]["sentence"] and answer["queue_position"] == 1, answer)
    service().http("DELETE", f"{API}/jobs/{job}")
    service().wait_state(job, "cancelled")
    equal(service().get(f"{API}/jobs/{job}/explain").json["state"], "cancelled")


# ---------------------------------------------------------------- lists


@test
def lists_filter_sort_and_page():
    one = service().tenant()
    ids = []
    for number in range(7):
        ids.append(service().submit(one, ["true"], name=f"job {number % 3}", priority=number * 10,
                                    held=True, labels={"n": str(number), "odd": str(number % 2)}))

    def listed(query):
        answer = service().get(f"{API}/jobs?tenant_id={one}&{query}")
        equal(answer.status, 200, answer)
        return [job["id"] for job in answer.json["jobs"]]
    equal(listed(""), ids[::-1])
    equal(listed("sort=submitted_at"), ids)
    equal(listed("sort=-priority"), ids[::-1])
    equal(listed("sort=priority"), ids)
    equal(listed("sort=name")[:3], [ids[0], ids[3], ids[6]])
    equal(listed("state=pending"), ids[::-1])
    equal(listed("state=running,completed"), [])
    equal(listed("name=job%201"), [ids[4], ids[1]])
    equal(len(listed("name=job*")), 7)
    equal(listed("label=odd=1"), [ids[5], ids[3], ids[1]])
    equal(listed("label=odd=1&label=n=3"), [ids[3]])
    equal(listed("limit=2&offset=1"), [ids[5], ids[4]])
    for sort in ("-submitted_at", "submitted_at", "priority", "-priority", "name", "-name"):
        seen, cursor = [], ""
        while True:
            page = service().get(f"{API}/jobs?tenant_id={one}&sort={sort}&limit=3&cursor={cursor}").json
            seen += [job["id"] for job in page["jobs"]]
            equal(page["total"], 7)
            cursor = page["next_cursor"]
            if not cursor:
                break
        equal(seen, listed(f"sort={sort}"), sort)
    for wrong, word in (("limit=0", "limit"), ("limit=1001", "limit"), ("limit=x", "limit"),
                        ("offset=-1", "offset"), ("sort=colour", "sort"), ("state=odd", "state"),
                        ("state=", "state"), ("label=x", "label"), ("colour=red", "colour"),
                        ("cursor=nonsense", "cursor")):
        refused(service().get(f"{API}/jobs?{wrong}"), 400, word)
    refused(service().get(f"{API}/jobs?name=%zz"), 400)
    equal(service().get(f"{API}/jobs?tenant_id=tenant-404").json["total"], 0)
    for job in ids:
        service().http("DELETE", f"{API}/jobs/{job}")


@test
def etags_spare_bodies():
    job = service().submit(tenant(), ["true"], held=True)
    for path in (f"{API}/jobs/{job}", f"{API}/jobs?name=nobody", f"{API}/tenants/{tenant()}"):
        answer = service().get(path)
        tag = answer.headers["ETag"]
        check(tag and tag.startswith('"'), answer.headers)
        for value in (tag, f'"x", {tag}', f"W/{tag}", "*"):
            same = service().get(path, headers={"If-None-Match": value})
            equal((same.status, same.body), (304, b""), f"If-None-Match: {value}")
            equal(same.headers["ETag"], tag)
        equal(service().get(path, headers={"If-None-Match": '"x"'}).status, 200)
    tag = service().get(f"{API}/jobs/{job}").headers["ETag"]
    service().post(f"{API}/jobs/{job}/release")
    service().wait_state(job, "completed")
    equal(service().get(f"{API}/jobs/{job}", headers={"If-None-Match": tag}).status, 200)


# ---------------------------------------------------------------- cluster


@test
def nodes_and_gpus():
    status = service().get(f"{API}/cluster/status").json
    equal((status["total_nodes"], status["online_nodes"], status["total_gpus"]), (1, 1, 8))
    nodes = service().get(f"{API}/nodes").json
    equal(nodes["total"], 1)
    name = nodes["nodes"][0]["name"]
    node = service().get(f"{API}/nodes/{name}").json
    equal((node["total_gpus"], node["simulated"], node["online"]), (8, True, True))
    gpus = service().get(f"{API}/gpus").json
    equal((gpus["total"], gpus["gpus"][0]["model"]), (8, "H100-SXM5-80GB"))
    refused(service().get(f"{API}/nodes/nobody"), 404, "nobody")


@test
def nodes_are_drained_and_come_back():
    with Service(settings={"agent.grace_ms": 500}) as one:
        team = one.tenant()
        name = one.get(f"{API}/nodes").json["nodes"][0]["name"]
        job = one.submit(team, ["sleep", "600"])
        one.wait_state(job, "running")
        kept = one.post(f"{API}/nodes/{name}/drain?keep_jobs=true")
        equal(kept.status, 200)
        time.sleep(0.3)
        equal(one.job(job)["state"], "running")
        equal(one.get(f"{API}/nodes/{name}").json["schedulable"], False)
        refused(one.post(f"{API}/nodes/{name}/drain?keep_jobs=perhaps"), 400, "keep_jobs")
        equal(one.post(f"{API}/nodes/{name}/drain").status, 200)
        one.wait_state(job, "pending", "preempted")
        wait_for(lambda: one.get(f"{API}/cluster/status").json["available_gpus"] in (0, 8), "GPUs back")
        waiting = one.submit(team, ["true"])
        refused(one.http("DELETE", f"{API}/nodes/{name}"), 409, "online")
        equal(one.post(f"{API}/nodes/{name}/undrain").status, 200)
        one.wait_state(waiting, "completed")
        one.wait_state(job, "running")
        for action in ("drain", "undrain"):
            refused(one.post(f"{API}/nodes/nobody/{action}"), 404, "nobody")
        refused(one.http("DELETE", f"{API}/nodes/nobody"), 404, "nobody")


@test
def usage_is_counted():
    one = service().tenant(cost_per_gpu_hour=3600)
    job = service().submit(one, ["sleep", "1"], gpu_count=2)
    done = service().wait_state(job, "completed")
    usage = service().get(f"{API}/tenants/{one}/usage").json
    check(abs(usage["gpu_hours"] - done["gpu_hours"]) < 1e-9, usage, done)
    check(1.9 < usage["cost"] < 600, usage)
    equal([row["jobs_ended"] for row in usage["usage"]], [1])
    record = service().get(f"{API}/tenants/{one}").json
    equal((record["total_jobs"], record["successful_jobs"], record["current_gpus"]), (1, 1, 0))
    equal(service().get(f"{API}/usage?from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z").json["usage"], [])
    check(service().get(f"{API}/usage").json["gpu_hours"] >= usage["gpu_hours"])
    refused(service().get(f"{API}/usage?from=yesterday"), 400, "from")
    refused(service().get(f"{API}/usage?since=1"), 400, "since")


# ---------------------------------------------------------------- logs


def lines(job, query=""):
    answer = service().get(f"{API}/jobs/{job}/logs{query}")
    equal(answer.status, 200, answer)
    check(answer.headers["Content-Type"].startswith("text/plain"), answer.headers)
    return answer.text.splitlines()


@test
def logs_are_read_while_it_runs_and_after():
    go = pathlib.Path(temporary_folder("go"), "on")
    script = ("for i in 1 2 3 4 5; do echo line $i; done; echo oops >&2; "
              f"while [ ! -e {go} ]; do sleep 0.05; done; echo end")
    job = service().submit(tenant(), ["sh", "-c", script])
    wait_for(lambda: service().job(job)["state"] == "running" and len(lines(job)) == 6, "six lines")
    end = threading.Timer(0.5, go.touch)  # while it is followed
    end.start()
    follower = service().get(f"{API}/jobs/{job}/logs?follow=true", timeout=90)
    end.join()
    equal(follower.text.splitlines(), [f"line {i}" for i in range(1, 6)] + ["oops", "end"])
    service().wait_state(job, "completed")
    for _ in range(3):  # the agent has forgotten the task by now; its log is kept
        equal(lines(job), [f"line {i}" for i in range(1, 6)] + ["oops", "end"])
        time.sleep(0.2)
    equal(lines(job, "?tail=2"), ["oops", "end"])
    equal(lines(job, "?tail=0"), lines(job))
    equal(lines(job, "?offset=7")[0], "line 2")
    equal(lines(job, "?follow=true")[-1], "end")
    refused(service().get(f"{API}/jobs/{job}/logs?tail=x"), 400, "tail")
    refused(service().get(f"{API}/jobs/{job}/logs?follow=maybe"), 400, "follow")
    refused(service().get(f"{API}/jobs/{job}/logs?lines=3"), 400, "lines")
    refused(service().get(f"{API}/jobs/{job}/logs?rank=3"), 404, "rank 3")


@test
def a_job_that_has_not_started_has_no_log():
    job = service().submit(tenant(), ["true"], held=True)
    refused(service().get(f"{API}/jobs/{job}/logs"), 404, "not started")
    service().http("DELETE", f"{API}/jobs/{job}")


@test
def logs_of_a_node_that_is_away():
    with Service(settings={"agent.local": "off"}, wait_nodes=0) as one:
        agent_state = f"{one.folder}/agent"
        agent = [BINARY, "agent", "--server", f"127.0.0.1:{one.grpc_port}",
                 "--state-dir", agent_state, "--simulate", "2xH100-SXM5-80GB", "--node-id", "n1"]
        process = subprocess.Popen(agent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            team = one.tenant()
            job = one.submit(team, ["echo", "hello"])
            one.wait_state(job, "completed")
        finally:
            process.terminate()
            process.wait()
        wait_for(lambda: one.get(f"{API}/jobs/{job}/logs").status == 503, "503 without the node")


# ---------------------------------------------------------------- events


class Stream(threading.Thread):
    """Server-sent events, collected by a thread."""

    def __init__(self, path, headers=None):
        super().__init__(daemon=True)
        self.connection = http.client.HTTPConnection("127.0.0.1", service().http_port, timeout=60)
        self.connection.request("GET", path, headers={"Accept": "text/event-stream", **(headers or {})})
        self.answer = self.connection.getresponse()
        self.events = []
        self.start()

    def run(self):
        event = {}
        try:
            for raw in self.answer:
                line = raw.decode().rstrip("\n")
                if line and not line.startswith(":"):
                    key, _, value = line.partition(": ")
                    event[key] = value
                elif not line and "data" in event:
                    self.events.append(event)
                    event = {}
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            pass

    def types_of(self, job):
        return [event["event"] for event in list(self.events)
                if json.loads(event["data"]).get("job_id") == job]

    def stop(self):
        self.connection.sock.shutdown(socket.SHUT_RDWR) if self.connection.sock else None
        self.connection.close()


LIFE = ["job.submitted", "job.scheduled", "job.running", "job.completed"]


@test
def events_as_a_page():
    job = service().submit(tenant(), ["true"])
    service().wait_state(job, "completed")
    events = service().get(f"{API}/jobs/{job}/events").json["events"]
    equal([event["type"] for event in events], LIFE)
    page = service().get(f"{API}/events?job_id={job}").json["events"]
    equal([event["type"] for event in page], LIFE[1:])
    ids = [event["id"] for event in page]
    equal(ids, sorted(ids))
    rest = service().get(f"{API}/events?job_id={job}&after={ids[0]}").json["events"]
    equal([event["id"] for event in rest], ids[1:])
    equal(len(service().get(f"{API}/events?job_id={job}&limit=1").json["events"]), 1)
    only = service().get(f"{API}/events?type=job.completed&job_id={job}").json["events"]
    equal([event["type"] for event in only], ["job.completed"])
    of_tenant = service().get(f"{API}/events?tenant_id={tenant()}").json["events"]
    check(all(event["tenant_id"] == tenant() for event in of_tenant))
    refused(service().get(f"{API}/events?colour=red"), 400, "colour")
    refused(service().get(f"{API}/events?after=x"), 400, "'x'")
    refused(service().get(f"{API}/events?limit=x"), 400, "limit")
    refused(service().get(f"{API}/events?job_id=nobody"), 400, "job_id")
    refused(service().get(f"{API}/jobs/{job}/events?limit=0"), 400, "limit")


@test
def events_as_a_stream_that_resumes():
    stream = Stream(f"{API}/events")
    equal(stream.answer.headers["Content-Type"], "text/event-stream")
    job = service().submit(tenant(), ["true"])
    wait_for(lambda: stream.types_of(job) == LIFE, f"the job's life, got {stream.types_of(job)}")
    ids = [int(event["id"]) for event in stream.events]
    equal(ids, sorted(set(ids)))
    stream.stop()
    first = next(event for event in stream.events if json.loads(event["data"]).get("job_id") == job)
    second = service().submit(tenant(), ["true"])
    service().wait_state(second, "completed")
    for path, headers in ((f"{API}/events", {"Last-Event-ID": first["id"]}),
                          (f"{API}/events?after={first['id']}", {})):
        resumed = Stream(path, headers)
        wait_for(lambda: resumed.types_of(second) == LIFE, "what came meanwhile")
        equal(resumed.types_of(job), LIFE[1:])
        resumed.stop()
    filtered = Stream(f"{API}/events?after={first['id']}&type=job.completed&job_id={second}")
    wait_for(lambda: len(filtered.events) == 1, "one event")
    equal(filtered.types_of(second), ["job.completed"])
    filtered.stop()


@test
def events_by_websocket():
    watcher = WebSocket(service().http_port, f"{API}/events?type=job.")
    equal(watcher.status, 101)
    watcher.send(9, b"hello")  # a ping
    equal(watcher.frame(), (10, b"hello"))
    job = service().submit(tenant(), ["true"])
    got = []
    while not got or got[-1]["type"] != "job.completed":
        event = json.loads(watcher.text())
        if event.get("job_id") == job:
            got.append(event)
    equal([event["type"] for event in got], LIFE)
    watcher.send(8)
    equal(watcher.frame()[0], 8)
    watcher.close()
    again = WebSocket(service().http_port, f"{API}/events?after={got[0]['id']}&job_id={job}")
    equal([json.loads(again.text())["type"] for _ in range(3)], LIFE[1:])
    again.close()
    refused_one = WebSocket(service().http_port, f"{API}/events?after=x")
    equal(refused_one.status, 400)


@test
def who_resumes_after_a_restart_misses_nothing_that_is_recorded():
    with Service() as one:
        team = one.tenant()
        first = one.submit(team, ["true"])
        one.wait_state(first, "completed")
        last = one.get(f"{API}/events?job_id={first}").json["events"][-1]["id"]
        second = one.submit(team, ["true"])
        one.wait_state(second, "completed")
        one.stop()
        one.start()
        watcher = WebSocket(one.http_port, f"{API}/events?after={last}&type=job.")
        third = one.submit(team, ["true"])
        seen = []
        while ("job.completed", third) not in seen:
            event = json.loads(watcher.text())
            seen.append((event["type"], event.get("job_id")))
        check(("job.completed", second) in seen, seen)
        equal(len(seen), len(set(seen)), seen)
        watcher.close()


# ---------------------------------------------------------------- who may


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(secret, claims, algorithm="HS256"):
    head = base64url(json.dumps({"alg": algorithm, "typ": "JWT"}).encode())
    body = base64url(json.dumps(claims).encode())
    mark = hmac.new(secret.encode(), f"{head}.{body}".encode(), hashlib.sha256).digest()
    return f"{head}.{body}.{base64url(mark)}"


SECRET = "a secret of at least 32 bytes, for tests"


def guarded(**settings):
    folder = temporary_folder("auth")
    keys = pathlib.Path(folder, "keys")
    keys.write_text(f"root admin {sha('root-key')}\nlook viewer {sha('viewer-key')}\n")
    secret = pathlib.Path(folder, "secret")
    secret.write_text(SECRET)
    secret.chmod(0o600)
    keys.chmod(0o600)
    one = Service(settings={"auth.api_keys_file": keys, "auth.jwt_hs256_secret_file": secret,
                            **settings}, headers={"X-API-Key": "root-key"})
    one.keys = keys
    return one


@test
def callers_say_who_they_are():
    with guarded() as one:
        nobody = one.headers
        one.headers = {}
        for path in ("/health", f"{API}/health", "/ready", f"{API}/openapi.json"):
            equal(one.get(path).status, 200, path)
        for path in (f"{API}/jobs", f"{API}/tenants", f"{API}/nodes", f"{API}/events", f"{API}/usage",
                     f"{API}/cluster/status", f"{API}/gpus"):
            answer = refused(one.get(path), 401)
            check("Bearer" in answer.headers["WWW-Authenticate"], answer.headers)
        refused(one.get(f"{API}/jobs", headers={"X-API-Key": "wrong"}), 401, "unknown")
        refused(one.get(f"{API}/jobs", headers={"Authorization": "Basic eDp5"}), 401, "Bearer")
        refused(one.get(f"{API}/jobs", headers={"Authorization": "Bearer root-key", "X-API-Key": "root-key"}),
                401, "both")
        equal(one.get(f"{API}/jobs", headers={"Authorization": "Bearer root-key"}).status, 200)
        one.headers = nobody
        job = one.submit(one.tenant(), ["true"])
        one.wait_state(job, "completed")  # the local agent is known without further settings


@test
def tokens_are_checked():
    with guarded(**{"auth.jwt_issuer": "us", "auth.jwt_audience": "gpus"}) as one:
        one.headers = {}
        now = int(time.time())
        good = {"sub": "ann", "role": "admin", "iss": "us", "aud": "gpus", "exp": now + 600}

        def ask(claims=good, secret=SECRET, algorithm="HS256", mangle=lambda text: text):
            text = mangle(token(secret, claims, algorithm))
            return one.get(f"{API}/jobs", headers={"Authorization": f"Bearer {text}"})
        equal(ask().status, 200)
        equal(ask({**good, "aud": ["x", "gpus"]}).status, 200)
        for wrong in ({**good, "exp": now - 600}, {**good, "iss": "them"}, {**good, "aud": "cpus"},
                      {**good, "nbf": now + 600}, {**good, "role": "king"}, {**good, "exp": "soon"},
                      {"role": "admin", "iss": "us", "aud": "gpus"}, {**good, "role": "tenant"}):
            refused(ask(wrong), 401)
        refused(ask(secret="another secret of at least 32 bytes!!"), 401)
        refused(ask(algorithm="none"), 401)
        refused(ask(algorithm="HS384"), 401)
        refused(ask(mangle=lambda text: text[:-4]), 401)
        refused(ask(mangle=lambda text: text.rsplit(".", 1)[0] + "."), 401)


@test
def roles_bound_what_callers_may():
    with guarded() as one:
        mine, theirs = one.tenant(name="mine"), one.tenant(name="theirs")
        other = one.submit(theirs, ["sleep", "600"])
        one.wait_state(other, "running")
        node = one.get(f"{API}/nodes").json["nodes"][0]["name"]
        exp = int(time.time()) + 600
        one.headers = {"Authorization": "Bearer " + token(
            SECRET, {"sub": "ann", "role": "tenant", "tenant_id": mine, "exp": exp})}
        # A tenant: its own only; what is another's does not exist.
        own = one.submit(mine, ["true"])
        one.wait_state(own, "completed")
        equal([job["id"] for job in one.get(f"{API}/jobs").json["jobs"]], [own])
        equal([t["id"] for t in one.get(f"{API}/tenants").json["tenants"]], [mine])
        refused(one.get(f"{API}/jobs?tenant_id={theirs}"), 403, theirs)
        for path in (f"jobs/{other}", f"jobs/{other}/logs", f"jobs/{other}/events", f"jobs/{other}/explain",
                     f"tenants/{theirs}", f"tenants/{theirs}/usage"):
            refused(one.get(f"{API}/{path}"), 404)
        refused(one.http("DELETE", f"{API}/jobs/{other}"), 404)
        refused(one.http("PATCH", f"{API}/jobs/{other}", {"priority": 1}), 404)
        refused(one.post(f"{API}/jobs", {**job_body(), "tenant_id": theirs}), 403)
        refused(one.post(f"{API}/jobs?dry_run=true", {**job_body(), "tenant_id": theirs}), 403)
        batch = one.post(f"{API}/jobs/batch", {"jobs": [{**job_body(), "tenant_id": theirs}]})
        equal(batch.json["jobs"][0]["code"], 403)
        refused(one.post(f"{API}/jobs", {**job_body(), "tenant_id": mine, "depends_on": [other]}), 404)
        refused(one.post(f"{API}/tenants", {"name": "x", **QUOTA}), 403)
        refused(one.http("PATCH", f"{API}/tenants/{mine}", {"max_gpus": 1000}), 403)
        refused(one.http("DELETE", f"{API}/tenants/{mine}"), 403)
        refused(one.post(f"{API}/nodes/{node}/drain"), 403)
        refused(one.http("DELETE", f"{API}/nodes/{node}"), 403)
        events = one.get(f"{API}/events").json["events"]
        equal({event.get("tenant_id") for event in events}, {mine})
        refused(one.get(f"{API}/events?tenant_id={theirs}"), 403)
        equal(one.get(f"{API}/events?job_id={other}").json["events"], [])
        for gpu in one.get(f"{API}/gpus").json["gpus"]:
            check(other not in gpu["jobs"], gpu)
        check(other not in one.get(f"{API}/nodes").text and other not in one.get(f"{API}/nodes/{node}").text)
        equal({row["tenant_id"] for row in one.get(f"{API}/usage").json["usage"]}, {mine})
        # A viewer: everything, but changes nothing.
        one.headers = {"X-API-Key": "viewer-key"}
        equal(one.get(f"{API}/jobs/{other}").status, 200)
        equal(one.get(f"{API}/jobs").json["total"], 2)
        refused(one.http("DELETE", f"{API}/jobs/{other}"), 403)
        refused(one.post(f"{API}/jobs/{other}/hold"), 403)
        refused(one.post(f"{API}/jobs", {**job_body(), "tenant_id": mine}), 403)
        refused(one.post(f"{API}/tenants", {"name": "x", **QUOTA}), 403)
        refused(one.post(f"{API}/nodes/{node}/drain"), 403)
        # Nobody learns more by being wrong.
        one.headers = {"X-API-Key": "root-key"}
        equal(one.http("DELETE", f"{API}/jobs/{other}").status, 200)


@test
def keys_are_read_again_on_hangup():
    with guarded() as one:
        one.keys.write_text(f"new admin {sha('new-key')}\n")
        one.process.send_signal(1)
        wait_for(lambda: one.get(f"{API}/jobs").status == 401, "the old key to end")
        equal(one.get(f"{API}/jobs", headers={"X-API-Key": "new-key"}).status, 200)
        one.keys.write_text("broken\n")
        one.process.send_signal(1)
        wait_for(lambda: "settings stay as they were" in one.log(), "a word in the log")
        equal(one.get(f"{API}/jobs", headers={"X-API-Key": "new-key"}).status, 200)


@test
def callers_have_a_rate():
    with guarded(**{"api.rate_limit_rps": 1, "api.rate_limit_burst": 10}) as one:
        def ask():
            return one.get(f"{API}/tenants", headers={"X-API-Key": "viewer-key"})
        equal([ask().status for _ in range(10)], [200] * 10, "so many at once")
        answer = wait_for(lambda: next((a for a in [ask()] if a.status == 429), None), "a limit",
                          pause=0)
        check(int(answer.headers["Retry-After"]) >= 1 and "requests" in answer.error, answer)
        equal(one.get("/health").status, 200)
        wait_for(lambda: one.get(f"{API}/tenants").status == 200, "another caller has a rate of its own")
        wait_for(lambda: ask().status == 200, "another second")


def answers(one):
    try:
        return one.get("/health").status == 200
    except OSError:
        return False


@test
def other_addresses_need_credentials():
    def run(**settings):
        with Service(settings={"api.bind": "0.0.0.0", **settings}, start=False) as one:
            one.spawn()
            wait_for(lambda: one.process.poll() is not None or answers(one), "an end, or an answer")
            if one.process.poll() is None:
                return None, one.log()
            code, one.process = one.process.returncode, None
            return code, one.log()
    code, log = run()
    check(code and "auth" in log, code, log)
    code, log = run(**{"auth.enabled": "off"})
    check(code and "allow_unauthenticated" in log, code, log)
    code, log = run(**{"auth.allow_unauthenticated": "true"})
    check(code is None, code, log)


@test
def everything_speaks_tls():
    folder = temporary_folder("tls")
    key, certificate = f"{folder}/key.pem", f"{folder}/cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-keyout", key, "-out", certificate, "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                   check=True, capture_output=True)
    one = Service(settings={"api.enable_tls": "true", "api.tls_cert_path": certificate,
                            "api.tls_key_path": key}, start=False)
    one.context = ssl.create_default_context(cafile=certificate)
    with one:
        one.start()  # with its local agent
        watching = WebSocket(one.http_port, "/api/v1/events", tls=one.context)
        equal(watching.status, 101)
        one.wait_state(one.submit(one.tenant(), ["true"]), "completed")
        wait_for(lambda: json.loads(watching.text())["type"] == "job.completed", "the event")
        watching.send(8, b"\x03\xe8")  # the server answers a close, and then closes TLS and all
        opcode = 1
        while opcode != 8:
            opcode, _ = watching.frame()
        equal(watching.socket.recv(1), b"")
        watching.close()
        try:
            answer = http_plain(one.http_port)
            check(answer != 200, answer)
        except (OSError, http.client.HTTPException):
            pass
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        try:
            with socket.create_connection(("127.0.0.1", one.http_port), 5) as raw:
                old.wrap_socket(raw)
            raise AssertionError("TLS 1.1 was accepted")
        except (ssl.SSLError, OSError, ValueError):
            pass
        one.stop()


@test
def broken_certificates_are_named_with_what_is_wrong():
    folder = temporary_folder("tls")

    def make(name):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.pem", "-subj",
                        "/CN=localhost"], check=True, capture_output=True)
        return f"{folder}/{name}.pem", f"{folder}/{name}.key"
    good, key = make("good")
    _, strange = make("other")
    text = f"{folder}/text"
    pathlib.Path(text).write_text("no certificate\n")
    locked = f"{folder}/locked.key"
    subprocess.run(["openssl", "pkey", "-in", key, "-aes256", "-passout", "pass:x", "-out", locked],
                   check=True, capture_output=True)
    for certificate_file, key_file, words in (
            (text, key, [text, "no certificate in PEM"]),
            (f"{folder}/nowhere", key, [f"{folder}/nowhere", "No such file"]),
            (good, text, [text, "no private key in PEM"]),
            (good, strange, [strange, "does not belong to the certificate", good]),
            (good, locked, [locked, "encrypted"])):
        sets = ["api.enable_tls=true", f"api.tls_cert_path={certificate_file}",
                f"api.tls_key_path={key_file}"]
        for more in ([], ["--check-config"]):
            done = subprocess.run(
                [BINARY, "serve", "--state-dir", f"{folder}/state", *more,
                 *(f"--set={one}" for one in sets)], capture_output=True, text=True, timeout=60)
            check(done.returncode != 0, sets, done)
            for word in words:
                check(word in done.stderr, f"{word!r} is not in", done.stderr)


@test
def settings_without_effect_are_named():
    done = subprocess.run(
        [BINARY, "serve", "--check-config", "--set=database.host=db", "--set=store.path=x.db",
         "--set=database.max_idle_conns=7", "--set=redis.host=cache"],
        capture_output=True, text=True, timeout=60)
    equal(done.returncode, 0, done)
    for key in ("store.path", "database.max_idle_conns", "redis.host"):
        check(f"{key} has no effect" in done.stdout, done.stdout)
    check("database.host" not in done.stdout, done.stdout)


def http_plain(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", "/health")
    return connection.getresponse().status


@test
def pages_of_other_origins_may_ask():
    ours = "http://localhost:3000"
    preflight = service().http("OPTIONS", f"{API}/jobs", headers={
        "Origin": ours, "Access-Control-Request-Method": "POST"})
    equal(preflight.status, 204)
    equal(preflight.headers["Access-Control-Allow-Origin"], ours)
    check("POST" in preflight.headers["Access-Control-Allow-Methods"], preflight.headers)
    check("Idempotency-Key" in preflight.headers["Access-Control-Allow-Headers"], preflight.headers)
    answer = service().get(f"{API}/jobs", headers={"Origin": ours})
    equal((answer.status, answer.headers["Access-Control-Allow-Origin"]), (200, ours))
    stream = Stream(f"{API}/events", {"Origin": ours})
    equal(stream.answer.headers["Access-Control-Allow-Origin"], ours)
    stream.stop()
    # Where everybody on this machine is admin, pages of strangers are not let in.
    refused(service().get(f"{API}/jobs", headers={"Origin": "http://page.example"}), 403, "page.example")
    with Service(settings={"api.cors_origins": "http://a.example,http://b.example"}, wait_nodes=0) as one:
        for origin, want in (("http://b.example", "http://b.example"), ("http://c.example", None)):
            answer = one.get(f"{API}/jobs", headers={"Origin": origin})
            equal(answer.headers["Access-Control-Allow-Origin"], want)
    with Service(settings={"api.cors_enabled": "false"}, wait_nodes=0) as one:
        equal(one.get(f"{API}/jobs", headers={"Origin": ours}).headers["Access-Control-Allow-Origin"], None)
    with guarded() as one:
        answer = one.get(f"{API}/jobs", headers={"Origin": "http://page.example"})
        equal((answer.status, answer.headers["Access-Control-Allow-Origin"]), (200, "*"))


@test
def many_callers_at_once():
    one = service().tenant(max_concurrent_jobs=1000)
    statuses = []

    def send(number):
        connection = http.client.HTTPConnection("127.0.0.1", service().http_port, timeout=30)
        for i in range(20):
            connection.request("POST", f"{API}/jobs", json.dumps(
                {**job_body(), "tenant_id": one, "name": f"{number}-{i}", "held": True}))
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
    threads = [threading.Thread(target=send, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(statuses, [201] * 320)
    equal(service().get(f"{API}/jobs?tenant_id={one}").json["total"], 320)


@test
def answers_are_as_the_document_says():
    service()
    equal(sorted(set(_undescribed))[:20], [])
    operations = {operation["operationId"] for item in _shared["document"].document["paths"].values()
                  for word, operation in item.items() if word != "parameters"}
    if len(sys.argv) == 1:  # a part of the tests sees a part of the answers
        seen = {name for name, status in _answered if status < 300}
        # These have servers of their own above.
        elsewhere = {"drain_node", "undrain_node", "delete_node"}
        equal(sorted(operations - seen - elsewhere), [])


if __name__ == "__main__":
    code = main()
    for started in _shared.values():
        if isinstance(started, Service):
            started.close()
    sys.exit(code)
