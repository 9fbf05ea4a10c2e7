"""Starts a scheduler with some jobs in it and runs schemathesis against it: schemathesis_run.py PROGRAM
SECONDS. Its exit code is that of schemathesis; running out of time is fine."""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from service import Service


def main():
    program, seconds = sys.argv[1], int(sys.argv[2])
    with Service(settings={"agent.grace_ms": 500, "api.rate_limit_rps": 100000}) as service:
        tenant = service.tenant()
        for command in (["true"], ["sleep", "600"]):
            service.submit(tenant, command)
        version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
        arguments = [program, "run", f"{service.url}/api/v1/openapi.json",
                     "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,"
                                 "response_schema_conformance", "--request-timeout"]
        # Times are milliseconds in version 3, seconds later; streams never end, they are left out.
        old = " 3." in version
        arguments += ["5000" if old else "5"]
        arguments += ["--hypothesis-max-examples", "40"] if old else ["--max-examples", "40"]
        try:
            code = subprocess.run(arguments, timeout=seconds).returncode
        except subprocess.TimeoutExpired:
            code = 0
            print(f"schemathesis: stopped after {seconds} s")
        if service.process.poll() is not None:
            print(f"the scheduler has ended:\n{service.log()[-3000:]}")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
