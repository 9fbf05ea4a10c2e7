"""Programs that a test starts and that don't outlive it.

A program gets SIGKILL from the kernel as soon as the thread that started it is gone, whatever ends
that: so even a killed test run leaves nothing behind. Start programs from the main thread.
"""

import ctypes
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
from service import free_port, wait_for  # noqa: E402,F401

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def _die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Program:
    """One command with its log; may be stopped, killed, paused and started again."""

    def __init__(self, name, command, folder, environment=None):
        self.name, self.command = name, [str(word) for word in command]
        self.log = pathlib.Path(folder) / f"{name}.log"
        self.environment = environment
        self.process = None

    def start(self):
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=self.environment,
                                            start_new_session=True, preexec_fn=_die_with_parent)
        return self

    @property
    def pid(self):
        return self.process.pid

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def check_running(self):
        if not self.is_running():
            raise AssertionError(f"{self.name} ended with code {self.process.returncode}:\n"
                                 f"{self.tail()}")

    def signal(self, number):
        if self.is_running():
            self.process.send_signal(number)

    def kill(self):
        """As a crash would."""
        self.signal(signal.SIGKILL)
        if self.process:
            self.process.wait()

    def stop(self, seconds=5):
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            if self.process:
                self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def tail(self, lines=30):
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""
