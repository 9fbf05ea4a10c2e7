// What readers see of the cluster: published whole after each turn, never changed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "service/figures.hpp"
#include "service/fleet.hpp"
#include "service/records.hpp"

namespace gs {

struct GpuJob {
  std::int64_t seq = 0;
  std::string tenant;
  auto operator<=>(const GpuJob&) const = default;
};

struct GpuView {
  Gpu gpu;
  GpuReport report;
  bool hot = false;
  int used_milli = 0;
  std::vector<GpuJob> jobs;
};

struct NodeView {
  NodeRow row;
  bool online = false;
  bool lost = false;
  Instant last_contact;
  double cpu_utilization = 0, memory_utilization = 0;
  std::int64_t used_cpu_milli = 0, used_memory_mb = 0;
  std::vector<GpuView> gpus;

  bool takes_jobs() const { return online && !row.cordoned; }
  int available_gpus() const;  // whole ones that a job could get now
};

using NodeViews = std::vector<NodeView>;

struct ClusterView {
  Instant time;
  bool leads = false;
  std::shared_ptr<const NodeViews> nodes = std::make_shared<NodeViews>();
  int total_nodes = 0, online_nodes = 0, total_gpus = 0, available_gpus = 0;
  std::array<std::int64_t, 7> jobs{};  // by RunState, those that have not ended
  std::int64_t total_jobs = 0;         // ever
  std::int64_t preemptions = 0;
  std::int64_t queue_size = 0;
  double mean_gpu_utilization = 0;
  std::shared_ptr<const std::vector<TenantFigures>> tenants;  // by id

  std::int64_t count(RunState state) const { return jobs[static_cast<std::size_t>(state)]; }
  std::int64_t waiting() const { return count(RunState::Pending) + count(RunState::Preempted); }
};

class Desk;
NodeViews node_views(const Desk& desk);
std::vector<TenantFigures> tenant_figures(const Desk& desk);
ClusterView cluster_view(const Desk& desk, std::shared_ptr<const NodeViews> nodes);

}  // namespace gs
