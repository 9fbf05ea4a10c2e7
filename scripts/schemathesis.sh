#!/usr/bin/env bash
# Throws generated requests at a scheduler of its own and holds the answers against api/openapi.yaml.
#   scripts/schemathesis.sh [SECONDS]      default 120
# Skips with a message where schemathesis can't be installed.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds="${1:-120}"
venv="build/schemathesis"
if [ ! -x "$venv/bin/schemathesis" ]; then
  if ! { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet "schemathesis>=3.39,<5"; } >build/schemathesis.log 2>&1; then
    echo "schemathesis: skipped, it can't be installed (see build/schemathesis.log)"
    rm -rf "$venv"
    exit 0
  fi
fi
exec python3 tests/integration/schemathesis_run.py "$venv/bin/schemathesis" "$seconds"
