#include "drivers/agents/messages.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/mig.hpp"

namespace gs {
namespace {

// At most so many bytes of a text in UTF-8, and no half character.
std::string beginning(const std::string& text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U) --bytes;
  return text.substr(0, bytes);
}

Health health_of(const std::string& text) {
  if (text == "unhealthy") return Health::Unhealthy;
  if (text == "unknown") return Health::Unknown;
  return Health::Healthy;
}

Gpu gpu_of(const agent::GPUInfo& info) {
  Gpu gpu;
  gpu.index = info.index();
  gpu.uuid = info.gpu_id();
  gpu.model = info.model();
  gpu.memory_mib = info.memory_total_mb();
  gpu.health = health_of(info.health());
  gpu.temperature_c = info.temperature_c();
  gpu.island = info.island();
  gpu.bandwidth_gbps = info.bandwidth_gbps();
  gpu.numa = info.numa_node();
  gpu.mig_enabled = info.mig_enabled();
  gpu.mig_dynamic = info.mig_dynamic();
  for (const auto& instance : info.mig())
    gpu.mig.push_back({canonical_mig_profile(instance.profile()), instance.start()});
  return gpu;
}

Result<TaintEffect> effect_of(const std::string& text) {
  if (text == "NoSchedule" || text.empty()) return TaintEffect::NoSchedule;
  if (text == "PreferNoSchedule") return TaintEffect::PreferNoSchedule;
  if (text == "NoExecute") return TaintEffect::NoExecute;
  return invalid("taints: effect '" + text + "' must be NoSchedule, PreferNoSchedule or NoExecute");
}

void put_process(const StartOrder& start, agent::JobAssignmentResponse& out) {
  const Process& process = start.process;
  out.set_allocation_id(process.allocation);
  for (const std::string& id : process.gpu_ids) out.add_gpu_ids(id);
  for (const int index : process.gpus) out.add_gpu_indexes(index);
  for (const MigPlace& place : process.mig) {
    auto* slice = out.add_mig();
    slice->set_gpu_index(place.gpu);
    slice->set_profile(place.profile);
    slice->set_start(place.start);
    slice->set_create(place.create);
  }
  out.set_rank(process.rank);
  out.set_group(process.tasks.empty() ? 0 : process.tasks.front().first);
}

void put(const StartOrder& start, agent::JobAssignmentResponse& out) {
  const JobSpec& spec = *start.spec;
  out.set_order(agent::START);
  put_process(start, out);
  out.set_job_id(start.job);
  out.set_job_name(spec.name);
  out.set_tenant_id(spec.tenant_id);
  out.set_attempt(start.attempt);
  out.set_cpu_milli(start.cpu_milli);
  out.set_cpu_cores(static_cast<int>((start.cpu_milli + 999) / 1000));
  out.set_memory_mb(start.memory_mb);
  out.set_image(spec.image);
  for (const std::string& word : spec.command) out.add_command(word);
  for (const std::string& word : spec.args) out.add_args(word);
  for (const auto& [name, value] : spec.environment) (*out.mutable_environment())[name] = value;
  out.set_script(spec.script);
  if (spec.gpu_milli > 0 && spec.gpu_milli < kWholeGpu) {
    out.set_gpu_milli(spec.gpu_milli);
    out.set_gpu_memory_mb(spec.gpu_count > 0 ? spec.gpu_memory_mb / spec.gpu_count : 0);
  }
  out.set_world_size(start.world_size);
  out.set_master_addr(start.master_addr);
  out.set_master_port(start.master_port);
  out.set_working_dir(spec.working_dir);
  out.set_user(spec.user);
  out.set_max_runtime_ms(start.max_runtime.ms);
  out.set_grace_ms(start.grace.ms);
  out.set_checkpoint_path(spec.checkpoint_path);
}

void put(const StopOrder& stop, agent::JobAssignmentResponse& out) {
  out.set_order(agent::STOP);
  out.set_allocation_id(stop.allocation);
  out.set_grace_ms(stop.grace.ms);
  out.set_reason(stop.reason);
}

void put(const ForgetOrder& forget, agent::JobAssignmentResponse& out) {
  out.set_order(agent::FORGET);
  out.set_allocation_id(forget.allocation);
}

}  // namespace

Result<NodeRow> node_of(const agent::RegisterAgentRequest& request) {
  NodeRow row;
  Node& node = row.node;
  node.name = request.node_id();
  node.capacity.cpu_milli = std::int64_t{request.total_cpu_cores()} * 1000;
  constexpr std::int64_t kMostMb = std::numeric_limits<std::int64_t>::max() / kMiB;
  if (request.total_memory_mb() < 0 || request.total_memory_mb() > kMostMb)
    return invalid("total_memory_mb must be from 0 to " + std::to_string(kMostMb));
  node.capacity.memory_bytes = request.total_memory_mb() * kMiB;
  for (const auto& info : request.gpus()) node.gpus.push_back(gpu_of(info));
  std::sort(node.gpus.begin(), node.gpus.end(),
            [](const Gpu& a, const Gpu& b) { return a.index < b.index; });
  node.peer_bandwidth_gbps.assign(request.peer_bandwidth_gbps().begin(),
                                  request.peer_bandwidth_gbps().end());
  for (const auto& [key, value] : request.labels()) set_label(node.labels, key, value);
  node.domain.assign(request.domain().begin(), request.domain().end());
  node.fabric.rdma_ports = request.fabric().rdma_ports();
  node.fabric.rdma_gbps = request.fabric().rdma_gbps();
  node.fabric.gpudirect_rdma = request.fabric().gpudirect_rdma();
  node.fabric.cufile = request.fabric().cufile();
  for (const auto& taint : request.taints()) {
    Result<TaintEffect> effect = effect_of(taint.effect());
    if (!effect) return effect.error();
    node.taints.push_back({taint.key(), taint.value(), *effect});
  }
  row.address = request.ip_address();
  row.version = request.version();
  row.instance = beginning(request.instance_id(), 200);
  row.container_runtime = request.container_runtime();
  row.simulated = request.simulated();
  return row;
}

TaskReport report_of(const agent::TaskReport& in) {
  TaskReport out;
  out.allocation = in.allocation_id();
  out.state = in.state() == "running"   ? TaskReport::State::Running
              : in.state() == "refused" ? TaskReport::State::Refused
                                        : TaskReport::State::Exited;
  out.exit_code = in.exit_code();
  out.signal = in.signal();
  out.out_of_memory = in.out_of_memory();
  out.timed_out = in.timed_out();
  out.stopped = in.stopped();
  out.lease_lost = in.lease_lost();
  out.message = beginning(in.message(), 1000);
  out.gpus.assign(in.gpu_indexes().begin(), in.gpu_indexes().end());
  out.ended_ago = {std::max<std::int64_t>(0, in.ended_ms_ago())};
  return out;
}

NodeReport report_of(const agent::HeartbeatRequest& in) {
  NodeReport out;
  for (const auto& metrics : in.gpu_metrics()) {
    GpuReport gpu;
    gpu.index = metrics.index();
    gpu.health = health_of(metrics.health());
    if (std::isfinite(metrics.temperature()))
      gpu.temperature_c =
          static_cast<int>(std::lround(std::clamp(metrics.temperature(), 0.0, 500.0)));
    gpu.utilization = metrics.utilization();
    gpu.power_w = metrics.power_usage();
    gpu.memory_used_mb = metrics.memory_used_mb();
    gpu.error_count = metrics.error_count();
    gpu.last_error = beginning(metrics.last_error(), 200);
    out.gpus.push_back(std::move(gpu));
  }
  out.cpu_utilization = in.cpu_utilization();
  out.memory_utilization = in.memory_utilization();
  return out;
}

agent::JobAssignmentResponse message_of(const AgentOrder& order) {
  agent::JobAssignmentResponse out;
  std::visit([&](const auto& one) { put(one, out); }, order);
  return out;
}

}  // namespace gs
