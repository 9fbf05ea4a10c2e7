#!/usr/bin/env python3
"""Runs the project's checks, stage by stage, and keeps going after a failure.

    test.py [STAGE...]      all stages but those on request where none is named

Prints a line per check as it ends, then a table, how many were skipped, and `N passed, N failed`
alone on the last line.
Exits with 1 if anything failed. The full output of each check lies in build/test-logs/.
SHARED names the folder with the conformance suites and traces (default ../shared).
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "build/test-logs"
SHARED = pathlib.Path(os.environ.get("SHARED") or "../shared")
SEEDS = os.environ.get("SEEDS")  # of sim faults; both have defaults per stage
STEPS = os.environ.get("STEPS")
JOBS = os.environ.get("JOBS") or str(os.cpu_count() or 1)
SCENARIOS = "tests/scenarios"
PROGRAMS = ("gpu-scheduler", "gpu-cli")
TAIL_LINES = 60
TOOLCHAIN_UNAVAILABLE = 77  # exit code of scripts/kube_toolchain.py
LIMIT_S = int(os.environ.get("TEST_LIMIT_S") or "3600")  # a check that hangs fails

CLOSING_LINE = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.MULTILINE)

SANITIZER_ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": f"second_deadlock_stack=1:suppressions={ROOT / 'tests/tsan.supp'}",
}


class Check:
    """One line of the report."""

    def __init__(self, stage, name, passed=0, failed=0, skipped=0, seconds=0.0, note=""):
        self.stage, self.name = stage, name
        self.passed, self.failed, self.skipped = passed, failed, skipped
        self.seconds, self.note = seconds, note

    def line(self):
        verdict = "FAIL" if self.failed else "ok" if self.passed else "skip"
        counts = f"{self.passed} passed, {self.failed} failed"
        if self.skipped:
            counts += f", {self.skipped} skipped"
        text = self.note if verdict == "skip" and self.note else counts
        return f"{verdict:4}  {self.stage:11}  {self.name:38}  {self.seconds:7.1f} s  {text}"


class Run:
    """Runs commands, keeps their output, collects the checks."""

    def __init__(self):
        self.checks = []
        self.built = {}  # preset and targets -> did it build

    def add(self, check, output=""):
        self.checks.append(check)
        if check.failed and output:
            print("\n".join(output.splitlines()[-TAIL_LINES:]), flush=True)
        print(check.line(), flush=True)

    def execute(self, stage, name, command, environment=None):
        """(exit code, output, seconds); the output goes to a log file too."""
        begin = time.monotonic()
        LOGS.mkdir(parents=True, exist_ok=True)
        log = LOGS / (re.sub(r"[^\w.-]+", "-", f"{stage}-{name}") + ".log")
        with open(log, "w") as sink:
            try:
                code = subprocess.run(
                    command, cwd=ROOT, stdout=sink, stderr=subprocess.STDOUT, timeout=LIMIT_S,
                    env={**os.environ, **(environment or {})}).returncode
            except subprocess.TimeoutExpired:
                code = 124
                sink.write(f"\nstopped after {LIMIT_S} s\n")
            except OSError as error:
                code = 127
                sink.write(f"{error}\n")
        return code, log.read_text(errors="replace"), time.monotonic() - begin

    def command(self, stage, name, command, environment=None):
        """A command as a check: counted by its closing line where it prints one, else as one."""
        code, output, seconds = self.execute(stage, name, command, environment)
        counts = CLOSING_LINE.findall(output)
        passed, failed, skipped = (int(n or 0) for n in counts[-1]) if counts else (0, 0, 0)
        if code != 0 and failed == 0:
            failed = 1
        if code == 0 and not counts:
            passed = 1
        if failed:
            output += f"\n(exit code {code}) to run it again: {' '.join(map(str, command))}"
        self.add(Check(stage, name, passed, failed, skipped, seconds), output)

    def skip(self, stage, name, why):
        self.add(Check(stage, name, skipped=1, note=f"skipped: {why}"))

    def build(self, stage, preset, targets=()):
        """Builds a preset once, or some of it; a failure counts once, and the stages that need it
        don't go on."""
        key = (preset, targets)
        if key not in self.built:
            name = f"build {preset}"
            print(f"      {stage:11}  {name} ...", flush=True)
            code, output, seconds = self.execute(stage, name,
                                                 ["scripts/build.sh", preset, *targets])
            self.built[key] = code == 0
            self.add(Check(stage, name, int(code == 0), int(code != 0), 0, seconds), output)
        elif not self.built[key]:
            self.add(Check(stage, f"build {preset}", failed=1))
        return self.built[key]

    def unit_tests(self, stage, preset, environment=None, prefix=()):
        """One ctest entry per layer; every single test in it counts."""
        results = ROOT / "build" / preset / "test-results"
        results.mkdir(parents=True, exist_ok=True)
        for old in results.glob("*"):
            old.unlink()
        report = results / "ctest.xml"
        code, output, seconds = self.execute(
            stage, "unit tests",
            [*prefix, "ctest", "--test-dir", f"build/{preset}", "-L", "unit", "-j", JOBS,
             "--output-on-failure", "--output-junit", str(report)],
            {**(environment or {}), "GTEST_OUTPUT": f"json:{results}/"})
        cases = xml.etree.ElementTree.parse(report).findall("testcase") if report.exists() else []
        if code != 0 and not cases:
            self.add(Check(stage, "unit tests", failed=1, seconds=seconds), output)
        if code == 0 and not cases:
            self.skip(stage, "unit tests", "there are none")
        for case in cases:
            self.unit_test_binary(stage, case, results)

    def unit_test_binary(self, stage, case, results):
        name = case.get("name")
        broken = case.get("status") != "run"
        tests = failures = skipped = 0
        counted = results / f"{name.replace('unit.', 'test_')}.json"
        if counted.exists():
            data = json.loads(counted.read_text())
            tests, failures = data["tests"] - data.get("disabled", 0), data["failures"]
            skipped = sum(one.get("result") == "SKIPPED"
                          for suite in data["testsuites"] for one in suite["testsuite"])
        if broken and failures == 0:
            failures, tests = 1, max(tests, 1)  # it crashed, or was stopped
        output = (case.findtext("system-out") or "") if broken else ""
        self.add(Check(stage, name, tests - failures - skipped, failures, skipped,
                       float(case.get("time") or 0)), output)


def simulator(preset):
    return f"build/{preset}/gpu-scheduler"


def layers(run):
    run.command("layers", "check_layers.py --self-test",
                ["python3", "scripts/check_layers.py", "--self-test"])
    run.command("layers", "includes follow layers.txt", ["python3", "scripts/check_layers.py"])


def lint(run):
    run.command("lint", "lint.py --self-test", ["python3", "scripts/lint.py", "--self-test"])
    run.command("lint", "rules", ["python3", "scripts/lint.py", "--rules"])
    run.command("lint", "format", ["python3", "scripts/lint.py", "--format"])


def unit(run):
    if run.build("unit", "release"):
        run.unit_tests("unit", "release")


def run_scenarios(run, stage, preset, environment=None, prefix=()):
    if not (ROOT / SCENARIOS).is_dir():
        run.skip(stage, "scenarios", f"no {SCENARIOS}")
        return
    run.command(stage, "scenarios", [*prefix, simulator(preset), "sim", "run", SCENARIOS],
                environment)


def scenarios(run):
    if run.build("scenarios", "release"):
        run_scenarios(run, "scenarios", "release")


def integration_tests():
    return sorted((ROOT / "tests/integration").glob("*_test.py"))


def integration(run):
    """Programs that run the binaries as users do; each ends with its own closing line."""
    if not run.build("integration", "release"):
        return
    for test in integration_tests():
        run.command("integration", test.stem, ["python3", str(test.relative_to(ROOT))])


def kube_tests():
    return sorted((ROOT / "tests/kube").glob("*_test.py"))


def kube_toolchain(run, stage, tests):
    """Builds the programs of the control plane; False, with the tests skipped, where it can't."""
    command = ["python3", "scripts/kube_toolchain.py"]
    print(f"      {stage:11}  programs of the control plane (some minutes the first time) ...",
          flush=True)
    code, output, seconds = run.execute(stage, "toolchain", command)
    if code == TOOLCHAIN_UNAVAILABLE:
        why = output.strip().splitlines()[-1]
        for test in tests:
            run.skip(stage, test.stem, why)
        return False
    run.add(Check(stage, "toolchain", int(code == 0), int(code != 0), 0, seconds), output)
    return code == 0


def kube(run):
    """The Kubernetes side on a real control plane; KUBE_VERSION names another version."""
    tests = kube_tests()
    if kube_toolchain(run, "kube", tests) and run.build("kube", "release"):
        for test in tests:
            run.command("kube", test.stem, ["python3", str(test.relative_to(ROOT))])


def yardsticks(run):
    stage = "yardsticks"
    if not run.build(stage, "release"):
        return
    sim = [simulator("release"), "sim"]
    suites = sorted((ROOT / SHARED / "conformance").glob("*.json"))
    for suite in suites:
        run.command(stage, f"conformance {suite.stem}",
                    [*sim, "conformance", str(SHARED / "conformance" / suite.name)])
    if not suites:
        run.skip(stage, "conformance", f"no {SHARED}/conformance")
    trace(run, stage, "openb", "fgd-openb")
    trace(run, stage, "topo", "lingjun-topo")
    faults(run, stage, "200", "300")
    histories(run, stage, "400")


def trace(run, stage, name, folder):
    data = SHARED / "traces" / folder
    if (ROOT / data).is_dir():
        run.command(stage, name, [simulator("release"), "sim", name, str(data)])
    else:
        run.skip(stage, name, f"no {data}")


def faults(run, stage, seeds, steps):
    seeds, steps = SEEDS or seeds, STEPS or steps
    run.command(stage, f"faults, {seeds} seeds x {steps} steps",
                [simulator("release"), "sim", "faults", "--seed", "1", "--seeds", seeds,
                 "--steps", steps])


def histories(run, stage, each):
    """Of the Kubernetes desk: pods, nodes and schedulers come and go."""
    run.command(stage, f"histories, {each} of each kind",
                ["build/release/tests/test_drivers_kubernetes", "--gtest_brief=1",
                 "--gtest_filter=*Histories.*"], {"HISTORIES": each})


def soak(run):
    """Random faults for hours (docs/known-findings.md says what they find today)."""
    if run.build("soak", "release"):
        faults(run, "soak", "1000", "10000")
        histories(run, "soak", "10000")


def sanitized(run, stage, preset, prefix=()):
    if run.build(stage, preset):
        run.unit_tests(stage, preset, SANITIZER_ENVIRONMENT, prefix)
        run_scenarios(run, stage, preset, SANITIZER_ENVIRONMENT, prefix)


def sanitized_programs(run, stage, preset, tests, prefix=()):
    """Tests that start our programs, with sanitized ones. What such a program reports fails the
    stage, whatever the test that started it says."""
    # The release ones are for what names them: `make demo`, bin/scheduler.
    if not all([run.build(stage, "release", PROGRAMS), run.build(stage, preset, PROGRAMS)]):
        return
    reports = ROOT / "build" / preset / "reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir()
    environment = {name: f"{options}:log_path={reports / name.lower()}"
                   for name, options in SANITIZER_ENVIRONMENT.items()}
    for test in tests:
        run.command(stage, test.stem, [*prefix, "python3", str(test.relative_to(ROOT))],
                    {**environment, "BUILD": f"build/{preset}"})
    found = sorted(reports.iterdir())
    text = "\n".join(report.read_text(errors="replace") for report in found[:3])
    run.add(Check(stage, "reports of the sanitizers", int(not found), len(found)), text)


def asan(run):
    sanitized(run, "asan", "asan")


def tsan(run):
    sanitized(run, "tsan", "tsan", fixed_addresses())


def asan_integration(run):
    sanitized_programs(run, "asan_integration", "asan", integration_tests())


def tsan_integration(run):
    sanitized_programs(run, "tsan_integration", "tsan", integration_tests(), fixed_addresses())


def sanitized_kube(run, stage, preset, prefix=()):
    # Images hold the release program, and some tests start no program of ours at all.
    others = {"chart_test", "control_plane_test", "crd_test", "image_test", "install_test"}
    tests = [test for test in kube_tests() if test.stem not in others]
    if kube_toolchain(run, stage, tests):
        sanitized_programs(run, stage, preset, tests, prefix)


def asan_kube(run):
    sanitized_kube(run, "asan_kube", "asan")


def tsan_kube(run):
    sanitized_kube(run, "tsan_kube", "tsan", fixed_addresses())


def fixed_addresses():
    """ThreadSanitizer's shadow memory clashes with high-entropy address randomisation."""
    command = ["setarch", "-R"]
    works = subprocess.run([*command, "true"], capture_output=True).returncode == 0
    return command if works else ()


STAGES = {stage.__name__: stage
          for stage in (layers, lint, unit, scenarios, integration, kube, yardsticks, asan,
                        tsan, asan_integration, tsan_integration, asan_kube, tsan_kube, soak)}
ON_REQUEST = {"tsan", "asan_integration", "tsan_integration", "asan_kube", "tsan_kube", "soak"}


def main():
    asked = sys.argv[1:] or [name for name in STAGES if name not in ON_REQUEST]
    unknown = [name for name in asked if name not in STAGES]
    if unknown:
        print(f"{__doc__}\nstages: {' '.join(STAGES)}; unknown: {' '.join(unknown)}")
        return 2
    begin = time.monotonic()
    run = Run()
    for name in asked:
        STAGES[name](run)
    print(f"\n{'':4}  {'stage':11}  {'check':38}  {'time':>9}")
    for check in run.checks:
        print(check.line())
    passed = sum(check.passed for check in run.checks)
    failed = sum(check.failed for check in run.checks)
    skipped = sum(check.skipped for check in run.checks)
    if skipped:
        print(f"\n{skipped} SKIPPED: what they would have shown is not shown by this run")
    print(f"\n{time.monotonic() - begin:.0f} s; logs in build/test-logs/")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
