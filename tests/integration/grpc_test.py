#!/usr/bin/env python3
"""gRPC as any client sees it: by reflection, without our own generated code, as grpcurl does.

Needs the Python packages grpcio, grpcio-reflection and grpcio-health-checking; they are installed into
build/venv. Where they can't be had the test is skipped, and says so.
"""

import os
import subprocess
import sys
import threading

from service import QUOTA, ROOT, Service, check, equal, main, test, wait_for

VENV = ROOT / "build/venv"
PACKAGES = ["grpcio", "grpcio-reflection", "grpcio-health-checking"]


def with_packages():
    """Runs this file again inside the virtual environment."""
    python = VENV / "bin/python3"
    if sys.executable == str(python):
        return
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=False)
    installed = subprocess.run([str(python), "-c", "import grpc, grpc_reflection, grpc_health"],
                               capture_output=True, check=False) if python.exists() else None
    if installed is None or installed.returncode != 0:
        installed = subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES],
                                   capture_output=True, check=False, timeout=300) \
            if python.exists() else None
    if installed is None or installed.returncode != 0:
        print("skipped: grpcio can't be installed here\n0 passed, 0 failed, 1 skipped")
        sys.exit(0)
    os.execv(str(python), [str(python), *sys.argv])


with_packages()
import grpc  # noqa: E402
from google.protobuf import json_format  # noqa: E402
from google.protobuf.descriptor_pool import DescriptorPool  # noqa: E402
from google.protobuf.message_factory import GetMessageClass  # noqa: E402
from grpc_health.v1 import health_pb2, health_pb2_grpc  # noqa: E402
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (  # noqa: E402
    ProtoReflectionDescriptorDatabase)


class Client:
    """Calls methods of a service that it only knows by reflection."""

    def __init__(self, port, metadata=()):
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.database = ProtoReflectionDescriptorDatabase(self.channel)
        self.pool = DescriptorPool(self.database)
        self.metadata = metadata

    def method(self, name):
        service = self.pool.FindServiceByName("scheduler.SchedulerService")
        return service.FindMethodByName(name)

    def call(self, rpc, /, **fields):
        method = self.method(rpc)
        request = json_format.ParseDict(fields, GetMessageClass(method.input_type)())
        unary = self.channel.unary_unary(
            f"/scheduler.SchedulerService/{rpc}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString)
        answer = unary(request, timeout=60, metadata=self.metadata)
        return json_format.MessageToDict(answer, preserving_proto_field_name=True)

    def stream(self, rpc, /, **fields):
        method = self.method(rpc)
        request = json_format.ParseDict(fields, GetMessageClass(method.input_type)())
        return self.channel.unary_stream(
            f"/scheduler.SchedulerService/{rpc}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString)(request)


SERVICE = Service(start=False)
CLIENT = None
TENANT = None


def refused(code, function):
    try:
        function()
    except grpc.RpcError as error:
        equal(error.code(), code, error.details())
        return error.details()
    raise AssertionError(f"was not refused with {code}")


@test
def reflection_and_health():
    global CLIENT, TENANT
    SERVICE.start()
    CLIENT = Client(SERVICE.grpc_port)
    names = CLIENT.database.get_services()
    for name in ("scheduler.SchedulerService", "agent.AgentService", "grpc.health.v1.Health"):
        check(name in names, name, "is not told by reflection:", names)
    health = health_pb2_grpc.HealthStub(CLIENT.channel).Check(health_pb2.HealthCheckRequest())
    equal(health.status, health_pb2.HealthCheckResponse.SERVING)
    TENANT = SERVICE.post("/api/v1/tenants", {"name": "lab", **QUOTA}).json["id"]


@test
def job_from_submission_to_its_end():
    answer = CLIENT.call("SubmitJob", tenant_id=TENANT, name="quick", gpu_count=1,
                         command=["sh", "-c", "exit 3"])
    equal(answer["status"], "submitted")
    job = answer["job_id"]
    status = wait_for(lambda: (lambda s: s if s["state"] == "failed" else None)(
        CLIENT.call("GetJobStatus", job_id=job)), "the job fails")
    check("exited with code 3" in status["message"], status)
    check(status["allocated_gpus"] and status["node_name"], status)
    jobs = CLIENT.call("ListJobs", tenant_id=TENANT, state="failed")["jobs"]
    equal([one["job_id"] for one in jobs], [job])


@test
def waiting_job_tells_its_place_in_the_queue():
    full = CLIENT.call("SubmitJob", tenant_id=TENANT, name="full", gpu_count=8, priority=900,
                       command=["sleep", "600"])["job_id"]
    waits = CLIENT.call("SubmitJob", tenant_id=TENANT, name="waits", gpu_count=8, priority=100,
                        command=["true"])["job_id"]
    status = CLIENT.call("GetJobStatus", job_id=waits)
    equal(status["state"], "pending")
    equal(status["queue_position"], 1)
    check(status["message"], "no reason is told")
    for job in (waits, full):
        check(CLIENT.call("CancelJob", job_id=job)["success"], job)
    wait_for(lambda: CLIENT.call("GetJobStatus", job_id=full)["state"] == "cancelled", "its end")


@test
def same_key_same_job():
    ask = dict(tenant_id=TENANT, name="once", command=["true"], idempotency_key="k1")
    first = CLIENT.call("SubmitJob", **ask)["job_id"]
    equal(CLIENT.call("SubmitJob", **ask)["job_id"], first)
    refused(grpc.StatusCode.FAILED_PRECONDITION,
            lambda: CLIENT.call("SubmitJob", **{**ask, "name": "other"}))


@test
def wrong_input_is_refused_in_words():
    text = refused(grpc.StatusCode.INVALID_ARGUMENT,
                   lambda: CLIENT.call("SubmitJob", tenant_id=TENANT, name="x", gpu_count=-1,
                                       command=["true"]))
    check("gpu_count" in text, text)
    refused(grpc.StatusCode.NOT_FOUND,
            lambda: CLIENT.call("SubmitJob", tenant_id="tenant-1", name="x", command=["true"]))
    refused(grpc.StatusCode.NOT_FOUND, lambda: CLIENT.call("GetJobStatus", job_id="job-1"))
    text = refused(grpc.StatusCode.RESOURCE_EXHAUSTED,
                   lambda: CLIENT.call("SubmitJob", tenant_id=TENANT, name="x", gpu_count=17,
                                       command=["true"]))
    check("quota exceeded for tenant" in text, text)


@test
def quota_metrics_and_cluster():
    check(CLIENT.call("UpdateTenantQuota", tenant_id=TENANT, max_gpus=20)["success"], "quota")
    equal(SERVICE.get(f"/api/v1/tenants/{TENANT}").json["max_gpus"], 20)
    metrics = CLIENT.call("GetMetrics", metric_type="gpu_scheduler_queue")["metrics"]
    check("gpu_scheduler_queue_size" in metrics, metrics)
    cluster = CLIENT.call("GetClusterStatus")
    equal(cluster["total_gpus"], 8)
    equal(cluster["nodes"][0]["online"], True)


@test
def events_are_streamed():
    seen = []
    stream = CLIENT.stream("WatchEvents", tenant_id=TENANT, types=["job."])

    def read():
        try:
            for event in stream:
                seen.append(event.type)
        except grpc.RpcError:
            pass

    thread = threading.Thread(target=read, daemon=True)
    thread.start()

    def submit_until_seen():
        CLIENT.call("SubmitJob", tenant_id=TENANT, name="seen", command=["true"])
        return "job.completed" in seen

    wait_for(submit_until_seen, "events of a whole life", pause=0.2)
    check("job.submitted" in seen and "job.scheduled" in seen, seen)
    stream.cancel()
    thread.join(5)


@test
def stop():
    CLIENT.channel.close()
    SERVICE.stop()


if __name__ == "__main__":
    code = main()
    SERVICE.stop()
    sys.exit(code)
