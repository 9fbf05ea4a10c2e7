#!/usr/bin/env bash
# Runs every benchmark binary of a folder: bench.sh BINARIES OUTPUT
# A benchmark prints its table, and writes its rows to the file that BENCH_JSON names.
set -euo pipefail

binaries="$1"
output="$2"
mkdir -p "$output"
status=0
for binary in "$binaries"/*; do
  [ -x "$binary" ] && [ -f "$binary" ] || continue
  name="$(basename "$binary")"
  case "$name" in
    submit | streams | history) continue ;;  # make bench-submit and bench-scale: they start servers
  esac
  echo "== $name"
  BENCH_JSON="$output/$name.json" "$binary" || { echo "$name: failed" >&2; status=1; }
done
exit $status
