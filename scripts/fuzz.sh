#!/usr/bin/env bash
# Runs every fuzz target of a folder for some seconds: fuzz.sh BINARIES SECONDS
# Starts from tests/fuzz/corpus/<name>/ where it is there; new inputs and crashes stay under build/fuzz/.
set -euo pipefail

binaries="$1"
seconds="$2"
status=0
export ASAN_SYMBOLIZER_PATH="${ASAN_SYMBOLIZER_PATH:-$(command -v llvm-symbolizer-16 || true)}"
for binary in "$binaries"/*; do
  [ -x "$binary" ] && [ -f "$binary" ] || continue
  name="$(basename "$binary")"
  found="build/fuzz/corpus/$name"
  crashes="build/fuzz/crashes/$name-"
  mkdir -p "$found" "$(dirname "$crashes")"
  seeds=()
  [ -d "tests/fuzz/corpus/$name" ] && seeds=("tests/fuzz/corpus/$name")
  echo "== $name, $seconds s"
  if ! "$binary" -max_total_time="$seconds" -print_final_stats=1 -print_funcs=0 -verbosity=0 \
      -artifact_prefix="$crashes" "$found" "${seeds[@]}"; then
    echo "$name: failed; to see it again: $binary ${crashes}<file>" >&2
    status=1
  fi
done
exit $status
