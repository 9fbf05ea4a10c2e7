// Random jobs of every kind: whole, shared and cut GPUs, gangs with wishes, leader and workers,
// elastic ones, pinned ones, with right and wrong estimates.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/faults_source.hpp"

namespace gs {

Job FaultsSource::make_job() {
  Job job;
  job.id = fmt::format("j{}", next_job_++);
  job.name = job.id;
  job.tenant = fmt::format("t{}", rng_.below(tenants_.size()));
  job.priority = static_cast<int>(rng_.between(1, 20)) * 100;
  make_groups(job);
  const double draw = -std::log(1.0 - rng_.unit()) * static_cast<double>(mean_runtime_.ms);
  runs_ = Duration{std::max<std::int64_t>(1000, static_cast<std::int64_t>(draw) / 1000 * 1000)};
  set_times(job, *runs_);
  if (calm_) return job;
  job.preemptible = rng_.chance(0.8);
  job.can_preempt_others = rng_.chance(0.85);
  if (rng_.chance(0.2)) job.max_preemptions = static_cast<int>(rng_.between(1, 3));
  if (rng_.chance(0.2)) job.disruption_budget = static_cast<int>(rng_.between(1, 3));
  job.checkpointable = rng_.chance(0.3);
  job.movable = rng_.chance(0.4);
  job.held = rng_.chance(0.05);
  if (rng_.chance(0.1))
    job.arrived = static_cast<int>(rng_.below(static_cast<std::uint64_t>(task_count(job))));
  return job;
}

void FaultsSource::set_times(Job& job, Duration runs) {
  if (calm_) {
    job.expected_runtime = runs;
    return;
  }
  if (rng_.chance(0.6)) job.expected_runtime = runs;
  if (rng_.chance(0.2)) job.expected_runtime = Duration{std::max<std::int64_t>(1, runs.ms / 3)};
  if (rng_.chance(0.2)) job.expected_runtime = Duration{runs.ms * 4};
  if (rng_.chance(0.3))
    job.max_runtime = Duration{std::max<std::int64_t>(1000, runs.ms * rng_.between(1, 4) / 2)};
  if (rng_.chance(0.2)) job.min_runtime = seconds(rng_.between(1, 120));
  if (rng_.chance(0.1)) job.start_timeout = seconds(rng_.between(10, 600));
}

TaskRequest FaultsSource::make_request() {
  TaskRequest request;
  request.resources.cpu_milli = 500 * rng_.between(0, 8);
  request.resources.memory_bytes = rng_.between(0, 16) * 1024 * kMiB;
  request.resources.named = {{"pods", 1}};
  make_gpu_request(request.gpu);
  if (!request.gpu.pinned_ids.empty()) {
    const Node& node = pick(nodes_);
    request.only_nodes = {node.name};
    for (int& id : request.gpu.pinned_ids)
      id = static_cast<int>(rng_.below(std::max<std::uint64_t>(1, node.gpus.size())));
    std::sort(request.gpu.pinned_ids.begin(), request.gpu.pinned_ids.end());
    auto& ids = request.gpu.pinned_ids;
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    request.gpu.count = static_cast<int>(ids.size());
    if (rng_.chance(0.5)) request.gpu.pin_group = rng_.chance(0.5) ? "pins-a" : "pins-b";
  }
  add_wishes(request);
  return request;
}

void FaultsSource::make_gpu_request(GpuRequest& gpu) {
  double sum = 0;
  for (const double weight : jobs_) sum += weight;
  double left = rng_.unit() * sum;
  int kind = 0;
  while (kind < 5 && left >= jobs_[static_cast<std::size_t>(kind)])
    left -= jobs_[static_cast<std::size_t>(kind++)];
  switch (kind) {
    case 0:
      gpu.count = 1;
      break;
    case 1:
      gpu.count = rng_.chance(0.85) ? 1 : 2;
      gpu.sharing = Sharing::Shared;
      gpu.milli = static_cast<int>(rng_.between(1, 10)) * 100;
      if (rng_.chance(0.3)) gpu.memory_mib = 1024 * rng_.between(1, 20);
      if (rng_.chance(0.3) && gpu.memory_mib > 0) gpu.milli = 0;
      break;
    case 2:
      gpu.sharing = Sharing::Mig;
      gpu.mig = {
          {pick(std::vector<std::string>{"1g.10gb", "2g.20gb", "3g.40gb", "1g.5gb", "2g.10gb"}),
           1}};
      if (rng_.chance(0.2)) gpu.mig[0].count = 2;
      break;
    case 3:
      gpu.count = static_cast<int>(pick(std::vector<int>{2, 2, 4, 8}));
      gpu.policy = static_cast<DevicePolicy>(rng_.below(4));
      if (gpu.policy == DevicePolicy::PreferIds) gpu.prefer_ids = {0, 1, 2};
      gpu.topology = static_cast<TopologyMode>(rng_.below(3));
      if (rng_.chance(0.3)) gpu.min_bandwidth_gbps = 300;
      break;
    case 4:
      break;  // without GPU
    default:
      gpu.count = static_cast<int>(rng_.between(1, 2));
      gpu.pinned_ids.resize(static_cast<std::size_t>(gpu.count));
      break;
  }
  if (gpu.count > 0 && gpu.sharing != Sharing::Mig && rng_.chance(0.1))
    gpu.models = {"H100-SXM5-80GB"};
  if (gpu.count > 0 && rng_.chance(0.05)) gpu.min_memory_mib = 40'000;
}

void FaultsSource::add_wishes(TaskRequest& request) {
  if (rng_.chance(0.1)) request.selector = {{"zone", "a"}};
  if (rng_.chance(0.3)) request.tolerations.push_back({"dedicated", "x", false, true, {}});
  if (rng_.chance(0.05)) request.affinity = {{LabelTerm{"zone", LabelOp::NotIn, {"b"}}}};
  if (rng_.chance(0.1))
    request.preferred_affinity = {{10, {LabelTerm{"zone", LabelOp::In, {"b"}}}}};
  if (rng_.chance(0.05)) request.rdma = static_cast<Wish>(rng_.below(3));
  if (rng_.chance(0.05)) request.cufile = static_cast<Wish>(rng_.below(3));
  if (rng_.chance(0.05)) request.min_network_gbps = 100;
  if (rng_.chance(0.2)) request.strategy = static_cast<Strategy>(rng_.below(4));
  if (rng_.chance(0.05)) request.latency_sensitive = true;
  if (rng_.chance(0.05) && !levels_.empty()) request.preferred_domain = levels_.back() + "-0";
}

std::string FaultsSource::level() {
  return levels_.empty() || rng_.chance(0.3) ? "node" : pick(levels_);
}

void FaultsSource::make_groups(Job& job) {
  const auto shape = rng_.below(10);
  if (shape < 5) {
    Group group;
    group.request = make_request();
    if (!group.request.gpu.pinned_ids.empty()) group.count = static_cast<int>(rng_.between(1, 3));
    job.groups.push_back(std::move(group));
  } else if (shape < 9) {
    make_gang(job);
  } else {
    make_leader_and_workers(job);
  }
}

void FaultsSource::make_gang(Job& job) {
  Group group;
  group.request = make_request();
  group.count = static_cast<int>(rng_.between(2, 8));
  const bool elastic = !calm_ && rng_.chance(0.35);
  if (elastic)
    group.min = rng_.chance(0.15) ? kNoMinimum : static_cast<int>(rng_.between(1, group.count));
  if (rng_.chance(0.3)) group.topology.required_level = level();
  if (rng_.chance(0.2)) group.topology.preferred_level = level();
  if (!elastic && group.count % 2 == 0 && group.topology.required_level != "node" &&
      rng_.chance(0.2))
    group.slices = {{rng_.chance(0.5) || levels_.empty() ? "node" : levels_.back(), 2}};
  job.groups.push_back(std::move(group));
}

void FaultsSource::make_leader_and_workers(Job& job) {
  Group leader;
  leader.name = "leader";
  leader.request = make_request();
  leader.count = static_cast<int>(rng_.between(1, 2));
  Group workers;
  workers.name = "workers";
  workers.request = make_request();
  workers.count = static_cast<int>(rng_.between(1, 6));
  if (!calm_ && rng_.chance(0.3)) workers.min = static_cast<int>(rng_.between(1, workers.count));
  if (rng_.chance(0.4)) job.sets[0].topology.required_level = level();
  if (rng_.chance(0.2)) workers.topology.preferred_level = level();
  if (rng_.chance(0.3)) {  // a set of their own inside the job
    job.sets.push_back({"pair", 0, {}, 0});
    if (rng_.chance(0.5)) job.sets[1].topology.required_level = level();
    workers.set = 1;
  }
  job.groups = {std::move(leader), std::move(workers)};
}

}  // namespace gs
