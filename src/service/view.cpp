#include "service/view.hpp"

#include <algorithm>
#include <unordered_map>

#include "service/desk.hpp"

namespace gs {
namespace {

void add_reports(const NodeStatus& status, NodeView& view) {
  for (const GpuReport& report : status.report.gpus)
    if (report.index >= 0 && report.index < static_cast<int>(view.gpus.size()))
      view.gpus[static_cast<std::size_t>(report.index)].report = report;
}

void add_usage(const Cluster& cluster, NodeView& view) {
  const NodeId id = cluster.find_node(view.row.node.name);
  if (!id.valid() || cluster.node(id).gone) return;
  const NodeState& node = cluster.node(id);
  view.used_cpu_milli = node.cpu_milli.used;
  view.used_memory_mb = node.memory_bytes.used / kMiB;
  for (std::size_t i = 0; i < view.gpus.size() && i < node.gpus.size(); ++i) {
    view.gpus[i].used_milli = static_cast<int>(node.gpus[i].milli.used);
    view.gpus[i].hot = (node.hot & gpu_bit(static_cast<int>(i))) != 0;
    // An instance in use keeps the whole GPU from others.
    if (const MigGpuState* mig = node.mig_gpu(static_cast<int>(i)))
      for (const MigSlotState& instance : mig->instances)
        if (instance.used) view.gpus[i].used_milli += 1000 * instance.size / 8;
  }
}

}  // namespace

int NodeView::available_gpus() const {
  if (!takes_jobs()) return 0;
  return static_cast<int>(std::count_if(gpus.begin(), gpus.end(), [](const GpuView& view) {
    return view.gpu.health == Health::Healthy && !view.hot && view.used_milli == 0 &&
           !view.gpu.mig_enabled;
  }));
}

NodeViews node_views(const Desk& desk) {
  NodeViews views;
  std::unordered_map<std::string, std::size_t> index;
  for (const auto& [name, status] : desk.nodes()) {
    NodeView view;
    view.row = status.row;
    view.online = status.online;
    view.lost = !status.in_engine;
    view.last_contact = status.last_contact;
    view.cpu_utilization = status.report.cpu_utilization;
    view.memory_utilization = status.report.memory_utilization;
    for (const Gpu& gpu : status.row.node.gpus) {
      GpuView& one = view.gpus.emplace_back();
      one.gpu = gpu;
      one.report.index = gpu.index;
      one.report.temperature_c = gpu.temperature_c;
    }
    add_reports(status, view);
    add_usage(desk.engine().cluster(), view);
    index[name] = views.size();
    views.push_back(std::move(view));
  }
  desk.for_each_process([&](const JobRow& job, const Process& process) {
    const auto at = index.find(process.node);
    if (at == index.end()) return;
    std::vector<int> used = process.gpus;
    for (const MigPlace& place : process.mig) used.push_back(place.gpu);
    for (const int gpu : used)
      if (gpu < static_cast<int>(views[at->second].gpus.size()))
        views[at->second].gpus[static_cast<std::size_t>(gpu)].jobs.push_back({job.seq, job.tenant});
  });
  for (NodeView& view : views)
    for (GpuView& gpu : view.gpus) std::sort(gpu.jobs.begin(), gpu.jobs.end());
  return views;
}

std::vector<TenantFigures> tenant_figures(const Desk& desk) {
  std::vector<TenantFigures> all;
  const Cluster& cluster = desk.engine().cluster();
  for (const auto& [id, row] : desk.tenants()) {
    TenantFigures one;
    one.id = id;
    one.gpu_ms = row.gpu_ms;
    if (const TenantId known = cluster.find_tenant(id); known.valid()) {
      one.gpu_milli = cluster.tenant(known).used.gpu_milli;
      one.running = cluster.tenant(known).running_jobs;
      one.waiting = cluster.tenant(known).waiting_jobs;
    }
    all.push_back(std::move(one));
  }
  return all;
}

ClusterView cluster_view(const Desk& desk, std::shared_ptr<const NodeViews> nodes) {
  ClusterView view;
  view.time = desk.now();
  view.leads = true;
  view.nodes = std::move(nodes);
  double utilization = 0;
  for (const NodeView& node : *view.nodes) {
    ++view.total_nodes;
    view.online_nodes += node.online;
    view.total_gpus += static_cast<int>(node.gpus.size());
    view.available_gpus += node.available_gpus();
    for (const GpuView& gpu : node.gpus) utilization += gpu.report.utilization;
  }
  if (view.total_gpus > 0) view.mean_gpu_utilization = utilization / view.total_gpus;
  for (std::size_t i = 0; i < view.jobs.size(); ++i)
    view.jobs[i] = desk.count(static_cast<RunState>(i));
  view.total_jobs = desk.total_jobs();
  view.preemptions = desk.preemptions();
  view.queue_size = static_cast<std::int64_t>(desk.engine().waiting());
  return view;
}

}  // namespace gs
