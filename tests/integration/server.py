"""A scheduler for tests: `gpu-scheduler serve` on free ports, with a state directory of its own.

    with Server(gpus="8xH100-SXM5-80GB") as server:
        server.cli("submit", "--gpus", "2", "--", "true")
        server.get("/api/v1/jobs")

It is stopped with SIGTERM, then SIGKILL, and the tasks that it has left are ended. The end of its
log is printed where a test fails inside the `with`, or where it does not start.
BUILD names the folder with the binaries (default: build/release).
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / os.environ.get("BUILD", "build/release")
SCHEDULER = BUILD / "gpu-scheduler"
CLI = BUILD / "gpu-cli"
TAIL_LINES = 40


def free_ports(count):
    """Ports that nobody has: all are taken at once, so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def wait_until(question, what, seconds=30):
    """The first true answer; an AssertionError that says `what` where there is none in time."""
    end = time.monotonic() + seconds
    while True:
        answer = question()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)


class Finished:
    """How a command ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class Server:
    def __init__(self, gpus="8xH100-SXM5-80GB", settings=(), state=None, keep_state=False,
                 environment=None):
        self.gpus, self.settings = gpus, list(settings)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpu-scheduler-test-"))
        self.folder.chmod(0o755)  # tasks run as another user, in folders below it
        self.state = pathlib.Path(state) if state else self.folder / "state"
        self.log = self.folder / "serve.log"
        self.environment = {**os.environ, **(environment or {})}
        for name in list(self.environment):
            if name.startswith("GPU_SCHEDULER_") and name not in (environment or {}):
                del self.environment[name]
        self.process = None
        self.http, self.grpc, self.metrics = free_ports(3)
        self.url = f"http://127.0.0.1:{self.http}"
        self.keep_state = keep_state

    # ------------------------------------------------------------ running

    def start(self, nodes=1):
        command = [str(SCHEDULER), "serve", "--state-dir", str(self.state),
                   "--set", f"api.http_port={self.http}", "--set", f"api.grpc_port={self.grpc}",
                   "--set", f"metrics.port={self.metrics}"]
        if self.gpus:
            command += ["--set", f"agent.simulate={self.gpus}"]
        for setting in self.settings:
            command += ["--set", setting]
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, env=self.environment,
                                            start_new_session=True)
        try:
            wait_until(lambda: self._is_ready(nodes), "the server is ready with its nodes")
        except AssertionError:
            self.print_log()
            self.stop()
            raise
        return self

    def _is_ready(self, nodes):
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended with code {self.process.returncode}")
        try:
            self.get("/ready")
            return nodes == 0 or self.get("/api/v1/cluster/status")["online_nodes"] >= nodes
        except urllib.error.HTTPError as error:
            return error.code in (401, 403)  # it is there, and asks who we are
        except (OSError, ValueError):
            return False

    def stop(self, seconds=15):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._end_tasks()
        if not self.keep_state:
            shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self):
        """As a crash would: the tasks go on."""
        self.process.kill()
        self.process.wait()

    def _end_tasks(self):
        """Ends supervisors (their locks name them) and what they have started."""
        for lock in self.state.glob("agent/tasks/*/lock"):
            try:
                supervisor = int(lock.read_text().split()[0])
            except (OSError, ValueError, IndexError):
                continue
            for pid in [*descendants(supervisor), supervisor]:
                if belongs(pid, str(lock.parent)) or pid != supervisor:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except OSError:
                        pass

    def print_log(self):
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except OSError:
            return
        print(f"--- the end of the server's log\n" + "\n".join(lines[-TAIL_LINES:]),
              file=sys.stderr)

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        if kind is not None:
            self.print_log()
        self.stop()

    # ------------------------------------------------------------ asking

    def request(self, method, path, body=None, headers=None, timeout=30):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers or {}, method=method)
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.loads(answer.read() or b"null")

    def get(self, path):
        return self.request("GET", path)

    def post(self, path, body=None):
        return self.request("POST", path, body)

    def tenant(self, name="team", **fields):
        """The id of a new tenant that may use plenty."""
        body = {"name": name, "max_gpus": 64, "max_gpu_memory_mb": 100_000_000,
                "max_cpu_cores": 10_000, "max_memory_mb": 10_000_000, "max_concurrent_jobs": 1000}
        return self.post("/api/v1/tenants", {**body, **fields})["id"]

    def state_of(self, job):
        return self.get(f"/api/v1/jobs/{job}")["state"]

    def wait_for_state(self, job, *states, seconds=30):
        def is_there():
            body = self.get(f"/api/v1/jobs/{job}")
            if body["state"] in states:
                return body["state"]
            if body["state"] in ("completed", "failed", "cancelled"):
                raise AssertionError(f"{job} has {body['state']}: {body['message']}")
            return None
        return wait_until(is_there, f"{job} is {' or '.join(states)}", seconds)

    def cli(self, *arguments, stdin="", environment=None, timeout=60):
        """Runs gpu-cli as a user would, with nothing stored and this server."""
        variables = {name: value for name, value in self.environment.items()
                     if not name.startswith("GPU_SCHEDULER_")}
        variables.update(GPU_SCHEDULER_URL=self.url, XDG_CONFIG_HOME=str(self.folder / "config"),
                         TZ="UTC")
        variables.update(environment or {})
        done = subprocess.run([str(CLI), *map(str, arguments)], input=stdin, text=True,
                              capture_output=True, timeout=timeout, env=variables)
        return Finished(done.returncode, done.stdout, done.stderr)


def descendants(pid):
    """Deepest first."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            found += [*descendants(child), child]
    return found


def belongs(pid, directory):
    """Whether the process was started for this directory; pids are used again."""
    try:
        return directory.encode() in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
