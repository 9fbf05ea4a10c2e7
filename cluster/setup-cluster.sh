#!/usr/bin/env bash
# Creates the KinD cluster of kind-config.yaml: one control plane, four workers with labels of a network.
#   setup-cluster.sh            create it, where it is not there yet
#   setup-cluster.sh --delete   remove it
set -euo pipefail
cd "$(dirname "$0")"
name=gpu-scheduler-cluster
for tool in kind kubectl; do
  command -v "$tool" >/dev/null || { echo "setup-cluster: $tool is not installed" >&2; exit 1; }
done

case "${1:-}" in
  "") ;;
  --delete)
    kind delete cluster --name "$name"
    exit 0
    ;;
  *)
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2
    exit 2
    ;;
esac

if ! kind get clusters | grep -qxF "$name"; then
  kind create cluster --config kind-config.yaml --wait 3m
fi
kubectl --context "kind-$name" get nodes -L topology.scheduler/spine,topology.scheduler/leaf
