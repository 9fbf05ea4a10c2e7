#!/usr/bin/env bash
# Installs the Debian packages that are missing; asks for nothing; says what it installs; returns at
# once when nothing is missing.
#   setup.sh                all that building, testing and linting need
#   setup.sh --build-only   what building and running need
#   setup.sh --slurm        the Slurm that `make bench-submit` measures beside ours; never needed
set -euo pipefail

build=(
  g++ cmake ninja-build ccache pkg-config python3 git
  libgtest-dev libbenchmark-dev
  nlohmann-json3-dev libcli11-dev libfmt-dev zlib1g-dev
  libboost1.81-dev libssl-dev libyaml-cpp-dev libsqlite3-dev libpq-dev
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  libc-ares-dev libre2-dev libabsl-dev
  curl jq
)
check=(
  clang-format clang-16 clang-tidy-16 libclang-rt-16-dev llvm-16
  postgresql-15 podman runc busybox-static debootstrap
  python3-pip openssl procps containernetworking-plugins
)
# Whoever has a containerd keeps it: Debian's would replace another vendor's.
command -v containerd >/dev/null || check+=(containerd)
slurm=(slurmctld slurm-client)
case "${1:-}" in
  --build-only) packages=("${build[@]}") ;;
  --slurm) packages=("${slurm[@]}") ;;
  *) packages=("${build[@]}" "${check[@]}") ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "setup: not a Debian system; please provide: ${packages[*]}"
  exit 0
fi

installed="$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null || true)"
missing=()
for package in "${packages[@]}"; do
  grep -qxF "installed $package" <<<"$installed" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: missing packages, and neither root nor sudo to install them. As root, run:" >&2
    echo "  apt-get install -y --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

export DEBIAN_FRONTEND=noninteractive
echo "setup: installing ${missing[*]}"
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
if ! { "${as_root[@]}" apt-get update -qq &&
       "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
         apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  cat "$log" >&2
  echo "setup: the installation failed" >&2
  exit 1
fi
echo "setup: done"
