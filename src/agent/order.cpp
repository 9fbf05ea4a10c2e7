#include "agent/order.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "agent/clock.hpp"
#include "agent/processes.hpp"

namespace gs::agent {
namespace {

using Environment = std::map<std::string, std::string>;

std::string joined(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ","));
}

// torchrun, MPI starters and plain NCCL programs all find their peers by these.
void add_gang(const ::agent::JobAssignmentResponse& order, Environment& environment) {
  if (order.world_size() <= 0) return;
  environment["RANK"] = environment["NODE_RANK"] = std::to_string(order.rank());
  environment["WORLD_SIZE"] = environment["NNODES"] = std::to_string(order.world_size());
  environment["LOCAL_RANK"] = "0";
  environment["LOCAL_WORLD_SIZE"] = "1";
  if (!order.master_addr().empty()) environment["MASTER_ADDR"] = order.master_addr();
  if (order.master_port() > 0) environment["MASTER_PORT"] = std::to_string(order.master_port());
}

// A part of a GPU. NVIDIA's multi-process service keeps to it where it runs; a program that is
// alone on its GPU may read it.
void add_share(const ::agent::JobAssignmentResponse& order, Environment& environment) {
  if (order.gpu_milli() > 0 && order.gpu_milli() < kWholeGpu) {
    environment["GPU_SCHEDULER_GPU_MILLI"] = std::to_string(order.gpu_milli());
    environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] =
        std::to_string(std::max(1, order.gpu_milli() / 10));
  }
  if (order.gpu_memory_mb() <= 0) return;
  environment["GPU_SCHEDULER_GPU_MEMORY_MB"] = std::to_string(order.gpu_memory_mb());
  std::vector<std::string> limits;
  for (int i = 0; i < std::max(order.gpu_indexes_size(), 1); ++i)
    limits.push_back(fmt::format("{}={}M", i, order.gpu_memory_mb()));
  environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = joined(limits);
}

}  // namespace

Result<GivenDevices> given_devices(const ::agent::JobAssignmentResponse& order, GpuSource& source,
                                   const Gpus& gpus) {
  GivenDevices given;
  for (const ::agent::MigSlice& slice : order.mig()) {
    Result<std::string> uuid =
        source.mig_uuid(slice.gpu_index(), slice.profile(), slice.start(), slice.create());
    if (!uuid.ok()) return uuid.error();
    given.names.push_back(*uuid);
    given.uuids.push_back(*uuid);
    given.gpus.push_back(slice.gpu_index());
  }
  if (order.mig_size() == 0) {
    for (const int index : order.gpu_indexes()) {
      const auto at = static_cast<std::size_t>(index);
      if (index < 0 || at >= gpus.entries.size())
        return not_found(fmt::format("there is no GPU {} on this machine, which has {}", index,
                                     gpus.entries.size()));
      const std::string& uuid = gpus.entries[at].gpu.uuid;
      given.names.push_back(source.simulated() ? std::to_string(index) : uuid);
      given.uuids.push_back(uuid);
      given.gpus.push_back(index);
    }
    // An order may name the GPUs by their UUIDs alone.
    if (order.gpu_indexes_size() == 0)
      for (const std::string& uuid : order.gpu_ids()) {
        const auto found =
            std::find_if(gpus.entries.begin(), gpus.entries.end(),
                         [&](const GpuEntry& entry) { return entry.gpu.uuid == uuid; });
        if (found == gpus.entries.end())
          return not_found(fmt::format("there is no GPU {} on this machine", uuid));
        given.names.push_back(source.simulated() ? std::to_string(found->gpu.index) : uuid);
        given.uuids.push_back(uuid);
        given.gpus.push_back(found->gpu.index);
      }
  }
  if (source.simulated()) given.uuids.clear();
  return given;
}

Environment task_environment(const ::agent::JobAssignmentResponse& order,
                             const GivenDevices& devices, const std::string& node_id) {
  Environment environment(order.environment().begin(), order.environment().end());
  // Ours last: what was given is not the job's to say. Without GPUs it shall see none.
  environment["CUDA_VISIBLE_DEVICES"] = joined(devices.names);
  environment["NVIDIA_VISIBLE_DEVICES"] = devices.names.empty() ? "void" : joined(devices.names);
  environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";  // indexes mean the same as on the outside
  add_gang(order, environment);
  add_share(order, environment);
  environment[kMarker] = order.allocation_id();
  environment["GPU_SCHEDULER_JOB_ID"] = order.job_id();
  environment["GPU_SCHEDULER_JOB_NAME"] = order.job_name();
  environment["GPU_SCHEDULER_TENANT_ID"] = order.tenant_id();
  environment["GPU_SCHEDULER_ATTEMPT"] = std::to_string(std::max(order.attempt(), 1));
  environment["GPU_SCHEDULER_GROUP"] = std::to_string(order.group());
  environment["GPU_SCHEDULER_NODE_ID"] = node_id;
  if (!order.checkpoint_path().empty())
    environment["GPU_SCHEDULER_CHECKPOINT_PATH"] = order.checkpoint_path();
  return environment;
}

TaskOrder task_order(const ::agent::JobAssignmentResponse& order, const GivenDevices& devices,
                     const Options& options, const std::string& lease_file) {
  TaskOrder task;
  task.allocation_id = order.allocation_id();
  task.job_id = order.job_id();
  task.command.assign(order.command().begin(), order.command().end());
  task.command.insert(task.command.end(), order.args().begin(), order.args().end());
  task.script = order.script();
  task.image = order.image();
  task.environment = task_environment(order, devices, options.node_id);
  task.working_dir = order.working_dir();
  task.user = order.user();
  task.default_user = options.default_user;
  task.allow_root = options.allow_root;
  task.cpu_milli = order.cpu_milli() > 0 ? order.cpu_milli() : order.cpu_cores() * 1000LL;
  task.memory_mb = order.memory_mb();
  task.max_runtime_ms = order.max_runtime_ms();
  task.grace_ms = order.grace_ms() > 0 ? order.grace_ms() : options.grace_ms;
  task.lease_file = lease_file;
  task.log_bytes = options.log_bytes;
  task.log_files = options.log_files;
  task.cgroup_root = options.cgroup_root;
  task.container_runtime = options.container_runtime;
  task.container_args = options.container_args;
  task.devices = devices.uuids;
  task.gpus = devices.gpus;
  task.boot_id = boot_id();
  if (!task.image.empty() && task.container_runtime.empty())
    task.note =
        fmt::format("the image {} was ignored: this agent has no --container-runtime", task.image);
  return task;
}

}  // namespace gs::agent
