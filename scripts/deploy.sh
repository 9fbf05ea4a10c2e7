#!/usr/bin/env bash
# Installs deploy/ into the cluster that kubectl speaks to, and waits until the scheduler is ready.
#   deploy.sh             install or update
#   deploy.sh --dry-run   let the API server check everything, and change nothing
#   deploy.sh --delete    remove it again; the resource definitions stay, and with them all claims
# KUBECTL names the program, TIMEOUT (120s) how long to wait.
set -euo pipefail
cd "$(dirname "$0")/.."
KUBECTL=${KUBECTL:-kubectl}

case "${1:-}" in
  "")
    "$KUBECTL" apply -f deploy/
    "$KUBECTL" wait --for=condition=Established --timeout="${TIMEOUT:-120s}" -f deploy/10-crds.yaml
    "$KUBECTL" rollout status -n kube-system deployment/gpu-scheduler --timeout="${TIMEOUT:-120s}"
    ;;
  --dry-run)
    # Roles in a namespace that is not there yet can't be asked about.
    "$KUBECTL" get namespace gpu-scheduler >/dev/null 2>&1 ||
      { echo "deploy: create the namespace gpu-scheduler first" >&2; exit 1; }
    "$KUBECTL" apply --dry-run=server -f deploy/
    ;;
  --delete)
    "$KUBECTL" delete --ignore-not-found -f deploy/20-gpu-scheduler.yaml
    ;;
  *)
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2
    exit 2
    ;;
esac
