#!/usr/bin/env bash
# Builds the container images.
#   build-images.sh [--prebuilt] [scheduler] [webhook] [agent] [check]
# Without names all of them: gpu-scheduler, gpu-scheduler-webhook, gpu-scheduler-agent and
# gpu-scheduler-check.
#   --prebuilt   takes build/release/gpu-scheduler and gpu-cli as they are instead of compiling them
#                inside the image (for Debian 12 or newer)
#   TAG          latest by default
#   REGISTRY     put before the names, such as registry.example/team
#   ENGINE       docker, or podman, with the arguments that it needs before `build`
#   BUILD_ARGS   more arguments for its `build`
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${ENGINE:-}" ]; then
  ENGINE=$(command -v docker || command -v podman || true)
  [ -n "$ENGINE" ] || { echo "build-images: neither docker nor podman is installed" >&2; exit 1; }
fi
prebuilt=false
wanted=()
for argument in "$@"; do
  case "$argument" in
    --prebuilt) prebuilt=true ;;
    scheduler | webhook | agent | check) wanted+=("$argument") ;;
    *) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2 ;;
  esac
done
[ ${#wanted[@]} -gt 0 ] || wanted=(scheduler webhook agent check)

# ENGINE and BUILD_ARGS are lists of words.
# shellcheck disable=SC2086
build() {  # NAME, then arguments and the context
  local name="${REGISTRY:+$REGISTRY/}$1:${TAG:-latest}"
  echo "build-images: $name"
  $ENGINE build ${BUILD_ARGS:-} -t "$name" "${@:2}"
}

# The main Dockerfile without its first stage, in a folder with what the other stages copy.
prebuilt_context() {
  mkdir -p "$1/scripts" "$1/config"
  cp build/release/gpu-scheduler build/release/gpu-cli "$1/"
  cp scripts/image-files.sh "$1/scripts/"
  cp config/scheduler-config.yaml "$1/config/"
  sed -e '/ AS build$/,/^$/d' -e 's#--from=build /src/build/release/gpu-scheduler /src/build/release/#gpu-scheduler #' \
    Dockerfile >"$1/Dockerfile"
}

context=.
if $prebuilt; then
  context=$(mktemp -d)
  trap 'rm -rf "$context"' EXIT
  prebuilt_context "$context"
fi
for one in "${wanted[@]}"; do
  case "$one" in
    check) build gpu-scheduler-check gpu-scheduler-check ;;
    scheduler) build gpu-scheduler --target scheduler "$context" ;;
    *) build "gpu-scheduler-$one" --target "$one" "$context" ;;
  esac
done
