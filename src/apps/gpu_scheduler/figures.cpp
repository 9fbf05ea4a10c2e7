#include "apps/gpu_scheduler/figures.hpp"

namespace gs {
namespace {

NodeFigures node_figures(const NodeView& view, Instant now) {
  NodeFigures node;
  node.name = view.row.node.name;
  node.online = view.online;
  node.cordoned = view.row.cordoned;
  node.agent_lag = now - view.last_contact;
  for (const GpuView& one : view.gpus) {
    GpuFigures gpu;
    gpu.index = one.gpu.index;
    gpu.model = one.gpu.model;
    gpu.healthy = one.gpu.health == Health::Healthy;
    gpu.available = gpu.healthy && view.takes_jobs() && one.used_milli == 0;
    gpu.utilization_percent = one.report.utilization;
    gpu.temperature_c = one.gpu.temperature_c;
    gpu.power_watts = one.report.power_w;
    gpu.memory_used_mb = one.report.memory_used_mb;
    gpu.memory_total_mb = one.gpu.memory_mib;
    node.gpus.push_back(std::move(gpu));
  }
  return node;
}

}  // namespace

void FiguresKeeper::note(const TurnFigures& turn) {
  const std::lock_guard lock(mutex_);
  ++kept_.turn;
  if (turn.ran_cycle) kept_.scheduling_latency.observe(turn.cycle_s);
  if (turn.commit_s > 0) kept_.commit.observe(turn.commit_s);
  const auto phase = [&](const char* name, double seconds) {
    auto& one = kept_.phases[name];
    if (one.bounds.empty()) one = Distribution(short_times());
    one.observe(seconds);
  };
  phase("apply", turn.apply_s);
  if (turn.ran_cycle) phase("cycle", turn.cycle_s);
  if (turn.commit_s > 0) phase("commit", turn.commit_s);
  for (std::size_t i = 0; i < kRunStates; ++i) kept_.jobs_total[i] += turn.entered[i];
  for (const double wait : turn.queue_waits_s) kept_.queue_wait.observe(wait);
  for (const auto& [reason, count] : turn.rejections) kept_.rejections_total[reason] += count;
  kept_.commit_failures_total += turn.commit_failures;
}

Figures FiguresKeeper::figures() const {
  const auto view = service_.view();
  Figures out;
  {
    const std::lock_guard lock(mutex_);
    out = kept_;
  }
  out.time = view->time;
  out.leader = view->leads;
  out.jobs = view->jobs;
  out.queue_size = view->queue_size;
  out.preemptions_total = static_cast<std::uint64_t>(view->preemptions);
  out.inbox_depth = static_cast<std::int64_t>(service_.inbox_depth());
  out.inbox_capacity = static_cast<std::int64_t>(service_.inbox_capacity());
  for (const NodeView& node : *view->nodes) out.nodes.push_back(node_figures(node, view->time));
  out.tenants = view->tenants ? *view->tenants : std::vector<TenantFigures>{};
  return out;
}

}  // namespace gs
