#include "agent/messages.hpp"

#include <algorithm>

#include "agent/clock.hpp"
#include "base/version.hpp"

namespace gs::agent {
namespace {

constexpr std::int64_t kCoresOfGpu = 12;
constexpr std::int64_t kMemoryOfGpuMb = 128 * 1024;

const char* effect_name(TaintEffect effect) {
  switch (effect) {
    case TaintEffect::NoSchedule:
      return "NoSchedule";
    case TaintEffect::PreferNoSchedule:
      return "PreferNoSchedule";
    case TaintEffect::NoExecute:
      break;
  }
  return "NoExecute";
}

void fill_gpu(const GpuEntry& entry, ::agent::GPUInfo& message) {
  const Gpu& gpu = entry.gpu;
  message.set_gpu_id(gpu.uuid);
  message.set_index(gpu.index);
  message.set_model(gpu.model);
  message.set_memory_total_mb(gpu.memory_mib);
  message.set_compute_capability(entry.compute_capability);
  message.set_cuda_cores(entry.cuda_cores);
  message.set_tensor_cores(entry.tensor_cores);
  message.set_health(health_name(gpu.health));
  message.set_island(gpu.island);
  message.set_bandwidth_gbps(gpu.bandwidth_gbps);
  message.set_numa_node(gpu.numa);
  message.set_mig_enabled(gpu.mig_enabled);
  message.set_mig_dynamic(gpu.mig_dynamic);
  message.set_temperature_c(gpu.temperature_c);
  for (std::size_t i = 0; i < gpu.mig.size(); ++i) {
    ::agent::MigInstance& instance = *message.add_mig();
    instance.set_profile(gpu.mig[i].profile);
    instance.set_start(gpu.mig[i].start);
    instance.set_uuid(entry.mig_uuids[i]);
  }
}

}  // namespace

void fill_timestamp(std::int64_t ms, google::protobuf::Timestamp& message) {
  message.set_seconds(ms / 1000);
  message.set_nanos(static_cast<std::int32_t>(ms % 1000) * 1'000'000);
}

::agent::TaskReport report_message(const TaskView& task) {
  ::agent::TaskReport report;
  const TaskStatus& status = task.status;
  report.set_allocation_id(task.allocation_id);
  report.set_job_id(task.job_id);
  // A task whose supervisor has not spoken yet is under way: for the scheduler it runs.
  report.set_state(status.state.empty() ? "running" : status.state);
  report.set_exit_code(status.exit_code);
  report.set_signal(status.signal);
  report.set_out_of_memory(status.out_of_memory);
  report.set_timed_out(status.timed_out);
  report.set_stopped(status.stopped);
  report.set_lease_lost(status.lease_lost);
  report.set_message(status.message);
  if (status.started_at_ms > 0) fill_timestamp(status.started_at_ms, *report.mutable_started_at());
  if (status.finished_at_ms > 0) {
    fill_timestamp(status.finished_at_ms, *report.mutable_finished_at());
    report.set_ended_ms_ago(std::max<std::int64_t>(0, wall_ms() - status.finished_at_ms));
  }
  report.set_pid(status.pid);
  for (const int gpu : task.gpus) report.add_gpu_indexes(gpu);
  return report;
}

void fill_metrics(const GpuSample& sample, ::agent::GPUMetrics& message) {
  message.set_gpu_id(sample.uuid);
  message.set_index(sample.index);
  message.set_utilization(sample.utilization);
  message.set_temperature(sample.temperature_c);
  message.set_power_usage(sample.power_w);
  message.set_memory_used_mb(sample.memory_used_mb);
  message.set_memory_free_mb(sample.memory_free_mb);
  message.set_thermal_throttle(sample.thermal_throttle);
  message.set_error_count(static_cast<std::int32_t>(sample.error_count));
  message.set_health(health_name(sample.health));
  message.set_last_error(sample.last_error);
  for (const GpuProcess& process : sample.processes) {
    ::agent::GPUProcess& one = *message.add_processes();
    one.set_pid(process.pid);
    one.set_memory_used_mb(process.memory_used_mb);
  }
}

::agent::RegisterAgentRequest register_message(const Options& options, const Machine& machine,
                                               const Gpus& gpus, bool simulated,
                                               const std::string& address) {
  ::agent::RegisterAgentRequest request;
  request.set_node_id(options.node_id);
  request.set_instance_id(options.instance_id);
  request.set_hostname(machine.hostname);
  request.set_ip_address(address);
  request.set_total_gpus(static_cast<int>(gpus.entries.size()));
  // Made-up GPUs come with the cores and the memory that such a machine has: what is made up is to
  // be tried out, and jobs of its size would never start otherwise.
  const auto count = static_cast<std::int64_t>(gpus.entries.size());
  const std::int64_t cores = simulated ? count * kCoresOfGpu : 0;
  const std::int64_t memory_mb = simulated ? count * kMemoryOfGpuMb : 0;
  request.set_total_cpu_cores(static_cast<int>(std::max(machine.cpu_milli / 1000, cores)));
  request.set_total_memory_mb(std::max(machine.memory_mb, memory_mb));
  for (const GpuEntry& entry : gpus.entries) fill_gpu(entry, *request.add_gpus());
  for (const auto& [key, value] : options.labels) (*request.mutable_labels())[key] = value;
  for (const int gbps : gpus.peer_bandwidth_gbps) request.add_peer_bandwidth_gbps(gbps);
  ::agent::Fabric& fabric = *request.mutable_fabric();
  fabric.set_rdma_ports(machine.fabric.rdma_ports);
  fabric.set_rdma_gbps(machine.fabric.rdma_gbps);
  fabric.set_gpudirect_rdma(machine.fabric.gpudirect_rdma);
  fabric.set_cufile(machine.fabric.cufile);
  request.set_simulated(simulated);
  request.set_version(kVersion);
  request.set_container_runtime(options.container_runtime);
  for (const std::string& part : options.domain) request.add_domain(part);
  for (const Taint& taint : options.taints) {
    ::agent::Taint& message = *request.add_taints();
    message.set_key(taint.key);
    message.set_value(taint.value);
    message.set_effect(effect_name(taint.effect));
  }
  return request;
}

}  // namespace gs::agent
