#!/usr/bin/env bash
# Starts the scheduler in the background (or takes the one that runs) and shows it at work.
#   scripts/demo.sh         start and show
#   scripts/demo.sh stop    stop it again
# DEMO_PORT, DEMO_FOLDER and DEMO_SET (more arguments of `serve`) change where and how it runs.
set -euo pipefail
cd "$(dirname "$0")/.."

folder="${DEMO_FOLDER:-build/demo}"
pid_file=$folder/pid
binary=build/release/gpu-scheduler
port="${DEMO_PORT:-8080}"
export GPU_SCHEDULER_URL="http://localhost:$port"

runs() { [ -f "$pid_file" ] && kill -0 "$(cat "$pid_file")" 2>/dev/null; }

if [ "${1:-}" = stop ]; then
  if runs; then
    pid="$(cat "$pid_file")"
    kill "$pid"
    for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    echo "demo: stopped"
  else
    echo "demo: nothing runs"
  fi
  rm -f "$pid_file"
  exit 0
fi

mkdir -p "$folder/state"
if ! runs; then
  if curl -fsS "$GPU_SCHEDULER_URL/health" >/dev/null 2>&1; then
    echo "demo: port $port is taken by another server; set DEMO_PORT to use another one" >&2
    exit 1
  fi
  # The images of the example are made up: its jobs run as plain processes, whatever is installed.
  setsid nohup "$binary" serve --state-dir "$folder/state" --set "api.http_port=$port" \
    --set agent.container_runtime=none \
    ${DEMO_SET:-} >"$folder/serve.log" 2>&1 </dev/null &
  echo $! >"$pid_file"
fi

# Until the agent of this machine has told what it has.
for _ in $(seq 100); do
  nodes=$(curl -fsS "$GPU_SCHEDULER_URL/api/v1/cluster/status" 2>/dev/null | jq -r .online_nodes || true)
  [ "${nodes:-0}" -ge 1 ] 2>/dev/null && break
  runs || { echo "demo: the scheduler did not start:" >&2; tail -5 "$folder/serve.log" >&2; exit 1; }
  sleep 0.1
done

./demo.sh
printf '\nJobs run as plain processes here, without the images that they name.\n'

cli=bin/gpu-cli
[ "$port" = 8080 ] || cli="bin/gpu-cli --server $GPU_SCHEDULER_URL"
cat <<END

It runs at $GPU_SCHEDULER_URL (log: $folder/serve.log; stop it with: make demo-stop). Try next:

  $cli jobs
  $cli why JOB_ID
  curl $GPU_SCHEDULER_URL/api/v1/cluster/status
END
