"""A scheduler of our own for tests: real processes on free ports, in a temporary folder.

    with Service(settings={"agent.lease_ms": 2000}) as service:
        answer = service.get("/api/v1/health")      # .status .headers .text .json
        done = service.cli("submit", "--", "true")  # .code .out .err

Also PostgreSQL (started for real, in a temporary folder), and a tiny runner: functions marked with
@test are called in order, and the last line says `N passed, N failed`.

BUILD names another folder with the binaries than build/release, GPU_SCHEDULER_BINARY another
scheduler; KEEP=1 leaves the folders of servers behind. Waits are long, for machines that are slow.
"""

import atexit
import json
import os
import pathlib
import pty
import pwd
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / os.environ.get("BUILD", "build/release")
BINARY = os.environ.get("GPU_SCHEDULER_BINARY") or str(BUILD / "gpu-scheduler")
CLI = str(BUILD / "gpu-cli")
KEEP = bool(os.environ.get("KEEP"))
GPUS = "8xH100-SXM5-80GB"

QUOTA = {"max_gpus": 16, "max_gpu_memory_mb": 2000000, "max_cpu_cores": 64, "max_memory_mb": 500000,
         "max_concurrent_jobs": 100}

# ---------------------------------------------------------------- terminals


def on_terminal(command, is_shown, leave, environment=None):
    """Runs a command on a terminal until is_shown(what it wrote), then leave(terminal, pid) once;
    its exit code and all that it wrote."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(command[0], command, environment or dict(os.environ))
    seen, left = b"", False
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                seen += os.read(terminal, 65536)
            except OSError:  # the other side is closed
                break
        if not left and is_shown(seen):
            left = True
            leave(terminal, pid)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), seen.decode(errors="replace")


def press_ctrl_c(terminal, _):
    os.write(terminal, b"\x03")


# ---------------------------------------------------------------- running tests

_tests = []


def test(function):
    _tests.append(function)
    return function


def main():
    """Runs what is marked with @test (or those named by words on the command line)."""
    wanted = [word for word in sys.argv[1:] if not word.startswith("-")]
    passed = failed = 0
    for function in _tests:
        if wanted and not any(word in function.__name__ for word in wanted):
            continue
        begin = time.monotonic()
        try:
            function()
            passed += 1
            print(f"ok    {function.__name__}  {time.monotonic() - begin:.1f} s", flush=True)
        except Exception:  # whatever it is, the others are still run
            failed += 1
            print(f"FAIL  {function.__name__}\n{traceback.format_exc()}", flush=True)
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


def skip_all(why):
    """Instead of main(), where nothing of it can be shown on this machine."""
    print(f"skipped: {why}\n0 passed, 0 failed, {len(_tests)} skipped", flush=True)
    return 0


def check(holds, *what):
    if not holds:
        raise AssertionError(" ".join(str(word) for word in what))


def equal(got, want, what=""):
    check(got == want, f"{what}: " if what else "", f"got {got!r}, want {want!r}")


def wait_for(question, what, seconds=90.0, pause=0.05):
    """The first answer that is true."""
    end = time.monotonic() + seconds
    while True:
        answer = question()
        if answer:
            return answer
        check(time.monotonic() < end, f"waited {seconds} s for {what}; last answer: {answer!r}")
        time.sleep(pause)


# ---------------------------------------------------------------- pieces

_given = set()


def free_port():
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port not in _given:  # the kernel may offer one again that we have not used yet
            _given.add(port)
            return port


def temporary_folder(name):
    folder = tempfile.mkdtemp(prefix=f"gpu-{name}-")
    os.chmod(folder, 0o755)
    if not KEEP:
        atexit.register(shutil.rmtree, folder, True)
    return folder


def processes_in(folder):
    """Processes that have something in this folder open, or work there."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            links = [f"/proc/{entry}/cwd"]
            links += [f"/proc/{entry}/fd/{fd}" for fd in os.listdir(f"/proc/{entry}/fd")]
            if any(_target(link).startswith(folder) for link in links):
                found.append(int(entry))
        except OSError:
            continue
    return found


def _target(link):
    try:
        return os.readlink(link)
    except OSError:
        return ""


def end_processes_in(folder):
    for signal_number, patience in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 3.0)):
        end = time.monotonic() + patience
        for pid in processes_in(folder):
            try:
                os.kill(pid, signal_number)
            except ProcessLookupError:
                pass
        while processes_in(folder) and time.monotonic() < end:
            time.sleep(0.05)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]

    def __repr__(self):
        return f"<{self.status} {self.text[:300]}>"


class Finished:
    """How a command ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def run_cli(url, folder, *arguments, stdin="", environment=None, timeout=120):
    """Runs gpu-cli as a user would, with nothing stored but what is in `folder`."""
    variables = {**_environment(), "GPU_SCHEDULER_URL": url, "XDG_CONFIG_HOME": f"{folder}/config",
                 "TZ": "UTC", **(environment or {})}
    done = subprocess.run([CLI, *map(str, arguments)], input=stdin, text=True, capture_output=True,
                          timeout=timeout, env=variables)
    return Finished(done.returncode, done.stdout, done.stderr)


def _environment():
    """Ours, without what would change the settings of a server or of a client."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith("GPU_SCHEDULER_")}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def http(url, method="GET", body=None, headers=None, timeout=30, context=None):
    """A request and its answer, whatever its status. A body that is no bytes is sent as JSON."""
    headers = dict(headers or {})
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    if body is not None:
        headers.setdefault("Content-Type", "application/json")
    request = urllib.request.Request(url, data=body, headers=headers, method=method)
    handlers = [_NoRedirect, urllib.request.ProxyHandler({})]
    if context:
        handlers.append(urllib.request.HTTPSHandler(context=context))
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=timeout) as response:
            return Answer(response.status, response.headers, response.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.headers, error.read())


# ---------------------------------------------------------------- PostgreSQL


class Postgres:
    """A server in a folder of its own, with fsync on, on a free port of 127.0.0.1."""

    USER, PASSWORD, DATABASE = "postgres", "gpu123", "gpu_scheduler"

    @staticmethod
    def binaries():
        for version in ("15", "16", "17", "14"):
            folder = f"/usr/lib/postgresql/{version}/bin"
            if os.access(f"{folder}/initdb", os.X_OK):
                return folder
        return None

    def __init__(self):
        self.folder = temporary_folder("postgres")
        self.data = f"{self.folder}/data"
        self.port = free_port()
        password = f"{self.folder}/password"
        pathlib.Path(password).write_text(self.PASSWORD)
        if self._owner():
            shutil.chown(self.folder, *self._owner())
            shutil.chown(password, *self._owner())
        self._call("initdb", "-D", self.data, "-U", self.USER, "-A", "scram-sha-256",
                   f"--pwfile={password}", "-E", "UTF8", "--locale=C", "--no-sync")
        with open(f"{self.data}/postgresql.conf", "a") as config:
            config.write(f"listen_addresses = '127.0.0.1'\nport = {self.port}\n"
                         f"unix_socket_directories = '{self.folder}'\nfsync = on\n"
                         "max_connections = 60\nrecovery_init_sync_method = syncfs\n")
        atexit.register(self.stop)
        self.start()
        self._call("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", self.USER,
                   self.DATABASE)

    # PostgreSQL refuses to run as root.
    @staticmethod
    def _owner():
        if os.geteuid() != 0:
            return None
        for name in ("postgres", "nobody"):
            try:
                entry = pwd.getpwnam(name)
                return entry.pw_uid, entry.pw_gid
            except KeyError:
                continue
        raise RuntimeError("no user that PostgreSQL could run as")

    def _call(self, program, *arguments):
        owner = self._owner()
        extra = {"user": owner[0], "group": owner[1], "extra_groups": []} if owner else {}
        done = subprocess.run(
            [f"{self.binaries()}/{program}", *arguments], cwd="/", timeout=120, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "PGPASSWORD": self.PASSWORD}, **extra)
        check(done.returncode == 0, f"{program} failed:\n{done.stdout}")
        return done.stdout

    def start(self):
        self._call("pg_ctl", "-D", self.data, "-l", f"{self.folder}/log", "-w", "-t", "60", "start")

    def stop(self):
        if self._postmaster():
            try:
                self._call("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")
            except Exception as error:
                print(f"PostgreSQL could not be stopped: {error}", file=sys.stderr)

    def _postmaster(self):
        try:
            pid = int(pathlib.Path(f"{self.data}/postmaster.pid").read_text().split()[0])
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_text()
            return pid if self.data in words else 0
        except (OSError, ValueError, IndexError):
            return 0

    def kill(self):
        """As if the power went: no process of it gets to say a word."""
        main_pid = self._postmaster()
        if not main_pid:
            return
        family = [main_pid]
        for entry in os.listdir("/proc"):
            if entry.isdigit() and _parent(entry) == main_pid:
                family.append(int(entry))
        for pid in family:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        wait_for(lambda: not any(_alive(pid) for pid in family), "PostgreSQL's end")
        for file in ("data/postmaster.pid", f".s.PGSQL.{self.port}.lock", f".s.PGSQL.{self.port}"):
            pathlib.Path(self.folder, file).unlink(missing_ok=True)

    def psql(self, sql):
        """What psql prints: a line a row, columns separated by |."""
        return self._call("psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", self.USER, "-d",
                          self.DATABASE, "-X", "-A", "-t", "-c", sql)

    def settings(self):
        return {"database.host": "127.0.0.1", "database.port": self.port,
                "database.user": self.USER, "database.password": self.PASSWORD,
                "database.database": self.DATABASE}


def _parent(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError):
        return 0


def _alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        return state not in "ZX"
    except (OSError, IndexError):
        return False


# ---------------------------------------------------------------- the scheduler


class Service:
    """`gpu-scheduler serve` with its local agent; start, stop, kill and start again on one state."""

    def __init__(self, settings=None, postgres=None, start=True, wait_nodes=1, environment=None,
                 headers=None):
        self.folder = temporary_folder("service")
        self.state = f"{self.folder}/state"
        self.log_path = f"{self.folder}/log"
        self.http_port, self.grpc_port, self.metrics_port = free_port(), free_port(), free_port()
        self.settings = {"api.http_port": self.http_port, "api.grpc_port": self.grpc_port,
                         "metrics.port": self.metrics_port, "agent.simulate": GPUS,
                         "agent.container_runtime": "none", **(settings or {})}
        if postgres:
            self.settings.update(postgres.settings())
        self.environment = environment or {}
        self.headers = headers or {}
        self.context = None
        self.process = None
        self.observe = None  # called with each request's method and path, and its answer
        self.wait_nodes = wait_nodes
        atexit.register(self.close)
        if start:
            self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def command(self):
        sets = [f"--set={key}={value}" for key, value in self.settings.items()]
        return [BINARY, "serve", "--state-dir", self.state, *sets]

    @property
    def url(self):
        return f"{'https' if self.context else 'http'}://127.0.0.1:{self.http_port}"

    def spawn(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT,
                env={**_environment(), **self.environment}, start_new_session=True)

    def start(self, seconds=90.0):
        self.spawn()
        self.wait_ready(seconds)
        return self

    def wait_ready(self, seconds=90.0):
        def ready():
            check(self.process.poll() is None,
                  f"the scheduler has ended with {self.process.returncode}:\n{self.log()[-3000:]}")
            try:
                return self.get("/ready", timeout=5).status == 200 and self.online() >= self.wait_nodes
            except (OSError, ssl.SSLError):
                return False
        wait_for(ready, f"the scheduler and {self.wait_nodes} node(s)\n{self.log()[-3000:]}", seconds)

    def online(self):
        if not self.wait_nodes:
            return 0
        answer = self.get("/api/v1/cluster/status", timeout=5)
        return answer.json["online_nodes"] if answer.status == 200 else -1

    def stop(self, seconds=30.0):
        """Politely. Its exit code."""
        if self.process is None:
            return None
        self.process.terminate()
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        self.process = None
        return code

    def kill(self):
        """kill -9 of the scheduler only: its agent and its tasks go on."""
        self.process.kill()
        self.process.wait()
        self.process = None

    def agent_pid(self):
        """The local agent's, whoever has started it; None: there is none."""
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                words = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"agent" in words[1:2] and f"{self.state}/agent".encode() in words and _alive(entry):
                return int(entry)
        return None

    def kill_agent(self):
        pid = self.agent_pid()
        if pid:
            os.kill(pid, signal.SIGKILL)
        return pid

    def close(self):
        atexit.unregister(self.close)
        if self.process is not None:
            try:
                self.stop(10)
            except Exception as error:
                print(f"the scheduler did not stop: {error}", file=sys.stderr)
        agent = self.agent_pid()
        if agent:
            os.kill(agent, signal.SIGKILL)
        end_processes_in(self.folder)
        if not KEEP:
            shutil.rmtree(self.folder, ignore_errors=True)

    def log(self):
        return pathlib.Path(self.log_path).read_text(errors="replace")

    # --- requests ---

    def http(self, method, path, body=None, headers=None, timeout=30):
        answer = http(self.url + path, method, body, {**self.headers, **(headers or {})}, timeout,
                      self.context)
        if self.observe:
            self.observe(method, path, answer)
        return answer

    def get(self, path, **more):
        return self.http("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.http("POST", path, body, **more)

    def metrics(self):
        return http(f"http://127.0.0.1:{self.metrics_port}/metrics").text

    # --- what most tests need ---

    def tenant(self, name="Team", **fields):
        answer = self.post("/api/v1/tenants", {"name": name, **QUOTA, **fields})
        equal(answer.status, 201, f"create a tenant: {answer}")
        return answer.json["id"]

    def submit(self, tenant, command=("true",), **fields):
        body = {"name": "job", "tenant_id": tenant, "gpu_count": 1, "command": list(command), **fields}
        answer = self.post("/api/v1/jobs", body)
        equal(answer.status, 201, f"submit: {answer}")
        return answer.json["job_id"]

    def job(self, job_id):
        answer = self.get(f"/api/v1/jobs/{job_id}")
        equal(answer.status, 200, f"job {job_id}: {answer}")
        return answer.json

    def cli(self, *arguments, **more):
        return run_cli(self.url, self.folder, *arguments, **more)

    def wait_state(self, job_id, *states, seconds=90.0):
        last = {}

        def there():
            last.update(self.job(job_id))
            return last["state"] in states
        try:
            wait_for(there, f"{job_id} to be {' or '.join(states)}", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; the job: {json.dumps(last)}") from None
        return last
