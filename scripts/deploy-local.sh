#!/usr/bin/env bash
# Puts the images into the local KinD cluster (cluster/setup-cluster.sh) and installs both charts there.
#   deploy-local.sh [--no-images]
# CLUSTER names the cluster (gpu-scheduler-cluster).
set -euo pipefail
cd "$(dirname "$0")/.."
cluster=${CLUSTER:-gpu-scheduler-cluster}
for tool in kind kubectl helm; do
  command -v "$tool" >/dev/null || { echo "deploy-local: $tool is not installed" >&2; exit 1; }
done

if [ "${1:-}" != --no-images ]; then
  scripts/build-images.sh scheduler check
  kind load docker-image --name "$cluster" gpu-scheduler:latest gpu-scheduler-check:latest
fi
kubectl config use-context "kind-$cluster"

# Made-up GPUs: the nodes of KinD have none.
helm upgrade --install gpu-scheduler charts/gpu-scheduler \
  --namespace gpu-scheduler-system --create-namespace \
  --set webhook.enabled=true --set agent.simulate=4xH100-SXM5-80GB --wait --timeout 5m
helm upgrade --install gpu-test charts/gpu-scheduler-check \
  --namespace gpu-scheduler-tests --create-namespace --wait --timeout 5m

kubectl get pods -n gpu-scheduler-system
kubectl logs -l app.kubernetes.io/name=gpu-scheduler-check -n gpu-scheduler-tests --prefix --tail=1
