#!/bin/sh
# Says every LOG_INTERVAL seconds where it runs and which GPUs it was given.
trap 'exit 0' TERM INT
while :; do
  echo "Node: ${NODE_NAME:-$(hostname)}, CUDA_VISIBLE_DEVICES: ${CUDA_VISIBLE_DEVICES-not set}"
  sleep "${LOG_INTERVAL:-10}" &
  wait $!
done
