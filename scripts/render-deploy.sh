#!/usr/bin/env bash
# Copies api/crds into the chart and renders deploy/ from it: for those who have no Helm.
#   render-deploy.sh [FOLDER]      another folder than deploy/ (the chart is then left alone)
# HELM names the program. Its values are those of `kubectl apply -f deploy/`: everything in kube-system,
# GPU leases in the namespace gpu-scheduler.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-deploy}
HELM=${HELM:-helm}

if [ $# -eq 0 ]; then
  rm -f charts/gpu-scheduler/files/crds/*.yaml
  cp api/crds/*.yaml charts/gpu-scheduler/files/crds/
fi
mkdir -p "$out"

render() {  # FILE, then arguments
  {
    echo "# Rendered from charts/gpu-scheduler by scripts/render-deploy.sh."
    "$HELM" template gpu-scheduler charts/gpu-scheduler --namespace kube-system \
      --set leases.namespace=gpu-scheduler "${@:2}" |
      sed -e '/^ *helm.sh\/chart: /d' -e '/^ *app.kubernetes.io\/managed-by: Helm$/d' -e '/^# Source: /d'
  } >"$out/$1"
}

cat >"$out/00-namespace.yaml" <<'YAML'
# Where the leases of GPUs lie.
apiVersion: v1
kind: Namespace
metadata:
  name: gpu-scheduler
  labels:
    app.kubernetes.io/name: gpu-scheduler
YAML
render 10-crds.yaml --set crds.keep=false --show-only templates/crds.yaml
render 20-gpu-scheduler.yaml --set crds.install=false
