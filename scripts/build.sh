#!/usr/bin/env bash
# Configures and builds one CMake preset: build.sh PRESET [TARGET...]
# Quiet where there is nothing to do; JOBS sets the number of compilers (default: one per core).
set -euo pipefail
cd "$(dirname "$0")/.."

preset="$1"
shift
directory="build/$preset"
if [ ! -f "$directory/build.ninja" ] || [ CMakePresets.json -nt "$directory/build.ninja" ]; then
  mkdir -p build
  if ! cmake --preset "$preset" >"build/configure-$preset.log" 2>&1; then
    cat "build/configure-$preset.log" >&2
    exit 1
  fi
fi
exec cmake --build "$directory" --parallel "${JOBS:-$(nproc)}" ${1:+--target "$@"}
