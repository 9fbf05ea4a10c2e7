// The part of Session that tells how busy GPUs and tasks are.
#include <algorithm>
#include <chrono>
#include <utility>

#include "agent/clock.hpp"
#include "agent/messages.hpp"
#include "agent/processes.hpp"
#include "agent/session.hpp"

namespace gs::agent {
namespace {

// Of the GPUs on which one of these processes computes; of none: 0.
double gpu_utilization(const std::vector<GpuSample>& samples, const std::set<int>& pids) {
  double sum = 0;
  int count = 0;
  for (const GpuSample& sample : samples) {
    const bool uses = std::any_of(
        sample.processes.begin(), sample.processes.end(),
        [&](const GpuProcess& process) { return pids.contains(static_cast<int>(process.pid)); });
    if (!uses) continue;
    sum += sample.utilization;
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

}  // namespace

void Session::send_metrics() {
  ::agent::ReportMetricsRequest request;
  request.set_node_id(parts_.options.node_id);
  fill_timestamp(wall_ms(), *request.mutable_timestamp());
  const std::vector<GpuSample> samples = parts_.sampler.latest();
  for (const GpuSample& sample : samples) fill_metrics(sample, *request.add_gpu_metrics());

  std::vector<TaskView> tasks = parts_.tasks.all();
  std::erase_if(tasks, [](const TaskView& task) { return task.status.state != "running"; });
  std::vector<int> roots;
  for (const TaskView& task : tasks) roots.push_back(static_cast<int>(task.status.supervisor_pid));
  const std::vector<Usage> usages = usage_below(roots);
  const std::int64_t now = boottime_ms();
  std::map<std::string, std::int64_t> cpu_ms;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    ::agent::JobMetrics& metrics = *request.add_job_metrics();
    metrics.set_job_id(tasks[i].job_id);
    metrics.set_allocation_id(tasks[i].allocation_id);
    metrics.set_state(tasks[i].status.state);
    metrics.set_memory_used_mb(usages[i].memory_mb);
    metrics.set_gpu_utilization(gpu_utilization(samples, usages[i].pids));
    fill_timestamp(tasks[i].status.started_at_ms, *metrics.mutable_started_at());
    cpu_ms[tasks[i].allocation_id] = usages[i].cpu_ms;
    const auto before = cpu_before_ms_.find(tasks[i].allocation_id);
    if (before != cpu_before_ms_.end() && now > metrics_before_ms_)
      metrics.set_cpu_utilization(100.0 * static_cast<double>(usages[i].cpu_ms - before->second) /
                                  static_cast<double>(now - metrics_before_ms_));
  }
  cpu_before_ms_ = std::move(cpu_ms);
  metrics_before_ms_ = now;

  grpc::ClientContext context;
  prepare(context);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(2));
  ::agent::ReportMetricsResponse response;
  (void)scheduler_->ReportMetrics(&context, request, &response);  // lost ones are not missed
}

}  // namespace gs::agent
