#!/usr/bin/env bash
# Shows a running scheduler at work: a tenant, a few jobs of different size and priority, a gang.
#
#   ./demo.sh            against http://localhost:8080 (or $GPU_SCHEDULER_URL)
#
# `make demo` starts a scheduler first and then runs this.
set -euo pipefail

url="${GPU_SCHEDULER_URL:-http://localhost:8080}/api/v1"

if ! curl -fsS "$url/health" >/dev/null 2>&1; then
  echo "demo: nothing answers at $url. Start a scheduler first: bin/scheduler, or make demo" >&2
  exit 1
fi

post() { curl -sS -X POST "$url/$1" -H "Content-Type: application/json" -d "$2"; }

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }

say "The cluster"
curl -sS "$url/nodes" | jq -r '.nodes[] |
  "  \(.name): \(.total_gpus) GPUs (\(.gpus[0].model // "none"))\(if .simulated then ", simulated: this machine has no NVIDIA GPU" else "" end), \(.total_cpu_cores) CPU cores"'

say "A tenant with a quota"
tenant=$(post tenants '{"name": "Data Science Team", "max_gpus": 12, "max_gpu_memory_mb": 150000,
  "max_cpu_cores": 48, "max_memory_mb": 400000, "max_concurrent_jobs": 10}' | jq -r .id)
echo "  $tenant"

# What a job does here: it says where it runs, and takes its time.
work='i=0; while [ $i -lt '"${DEMO_SECONDS:-30}"' ]; do echo "step $i on GPUs $CUDA_VISIBLE_DEVICES"; i=$((i+1)); sleep 1; done'

submit() {  # name gpus priority [more fields]
  local body
  body=$(jq -n --arg name "$1" --arg tenant "$tenant" --arg work "$work" --argjson gpus "$2" \
    --argjson priority "$3" --argjson more "${4:-{\}}" \
    '{name: $name, tenant_id: $tenant, gpu_count: $gpus, priority: $priority,
      command: ["sh", "-c", $work], expected_runtime_minutes: 1} + $more')
  post jobs "$body" | jq -r '"  \(.job_id // .error)"'
}

say "Four jobs"
submit "Production Model Training" 8 2000 '{"gpu_memory_mb": 80000, "cpu_cores": 32, "memory_mb": 128000, "image": "pytorch:2.0-cuda11.8"}'
submit "Research Experiment" 2 500 '{"image": "tensorflow:2.13-gpu"}'
submit "Data Preprocessing" 1 100 '{"image": "cuda:11.8-base"}'
submit "Distributed Fine-tuning (gang)" 4 1000 '{"gang_scheduling": true}'

sleep 1
say "Jobs, by priority"
curl -sS "$url/jobs?tenant_id=$tenant" | jq -r '.jobs | sort_by(-.priority) | .[] |
  "  \(.priority)\t\(.gpu_count) GPU\(if .gpu_count == 1 then "" else "s" end)\t\(.state)\t\(.name)\(if .node_name != "" then "  on \(.node_name)" else "" end)"'

say "Why one of them waits"
waiting=$(curl -sS "$url/jobs?tenant_id=$tenant&state=pending,preempted&limit=1" | jq -r '.jobs[0].job_id // empty')
if [ -n "$waiting" ]; then
  curl -sS "$url/jobs/$waiting/explain" |
    jq -r '"  \(.job_id): \(.why.sentence)"'
else
  echo "  (nothing waits: there was room for all)"
fi

say "What a job writes"
running=$(curl -sS "$url/jobs?tenant_id=$tenant&state=running&limit=1" | jq -r '.jobs[0].job_id // empty')
[ -n "$running" ] && curl -sS "$url/jobs/$running/logs?tail=3" | sed 's/^/  /'

say "The cluster in figures"
curl -sS "$url/cluster/status" | jq -r '"  \(.available_gpus) of \(.total_gpus) GPUs free, \(.running_jobs) jobs run, \(.pending_jobs) wait"'
