#!/usr/bin/env python3
"""The first five minutes: what `make demo` shows, and that it can be stopped and started again."""

import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from service import (ROOT, check, equal, free_port, main, processes_in, temporary_folder, test,
                     wait_for)


class Demo:
    def __init__(self):
        self.folder = temporary_folder("demo")
        # A container runtime that is installed and of no use, as on many machines.
        tools = pathlib.Path(self.folder) / "tools"
        tools.mkdir()
        for name in ("docker", "podman", "nerdctl"):
            (tools / name).write_text("#!/bin/sh\nexit 125\n")
            (tools / name).chmod(0o755)
        ports = (f"--set api.grpc_port={free_port()} --set metrics.port={free_port()} "
                 "--set agent.simulate=16xH100-SXM5-80GB")
        self.environment = {**os.environ, "DEMO_FOLDER": f"{self.folder}/demo",
                            "DEMO_PORT": str(free_port()), "DEMO_SET": ports, "DEMO_SECONDS": "10",
                            "PATH": f"{tools}:{os.environ['PATH']}", "no_proxy": "localhost"}

    def run(self, *words):
        done = subprocess.run([str(ROOT / "scripts/demo.sh"), *words], capture_output=True,
                              text=True, timeout=120, env=self.environment)
        check(done.returncode == 0, done.stdout + done.stderr)
        return done.stdout


def states_in(shown):
    """Priority -> state."""
    return dict(re.findall(r"^  (\d+)\t\d+ GPUs?\t(\w+)\t", shown, re.MULTILINE))


@test
def the_demo_shows_jobs_that_run_and_one_that_waits():
    demo = Demo()
    try:
        shown = demo.run()
        states = states_in(shown)
        equal(sorted(states), ["100", "1000", "2000", "500"], shown)
        # The tenant may have 12 GPUs: the gang of 4 takes the place of the two small ones.
        equal((states["2000"], states["1000"]), ("running", "running"), shown)
        check({states["500"], states["100"]} <= {"pending", "preempted"}, shown)
        check("simulated: this machine has no NVIDIA GPU" in shown, shown)
        check(re.search(r"step \d+ on GPUs [\d,]+", shown), shown)
        check(re.search(r"Why one of them waits\n  job-\d+: waits for its tenant", shown), shown)
        again = demo.run()  # takes the scheduler that runs
        check("failed" not in states_in(again).values(), again)
    finally:
        demo.run("stop")
    check("nothing runs" in demo.run("stop"))
    wait_for(lambda: not processes_in(demo.folder), "its jobs to end with it", 60)


if __name__ == "__main__":
    sys.exit(main())
