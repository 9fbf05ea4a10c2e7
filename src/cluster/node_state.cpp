#include "cluster/node_state.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "model/mig.hpp"

namespace gs {

GpuPart gpu_part(const GpuRequest& request, std::int64_t gpu_memory_mib) {
  GpuPart part{request.milli, request.memory_mib};
  if (part.milli == 0 && gpu_memory_mib > 0)
    // Rounded down: it is the memory that must not be given away twice, and three thirds are one.
    part.milli = std::max(1, static_cast<int>(part.memory_mib * kWholeGpu / gpu_memory_mib));
  if (part.memory_mib == 0) part.memory_mib = part.milli * gpu_memory_mib / kWholeGpu;
  return part;
}

Usage usage_of(const Shape& shape, std::int64_t gpu_memory_mib) {
  const GpuRequest& gpu = shape.request.gpu;
  Usage usage;
  usage.cpu_milli = shape.request.resources.cpu_milli;
  usage.memory_bytes = shape.request.resources.memory_bytes;
  switch (gpu.sharing) {
    case Sharing::Exclusive:
      usage.gpu_milli = std::int64_t{gpu.count} * kWholeGpu;
      usage.gpu_memory_mib =
          gpu.count * (gpu.quota_memory_mib >= 0 ? gpu.quota_memory_mib : gpu_memory_mib);
      break;
    case Sharing::Shared: {
      const GpuPart part = gpu_part(gpu, gpu_memory_mib);
      usage.gpu_milli = std::int64_t{gpu.count} * part.milli;
      usage.gpu_memory_mib = gpu.count * part.memory_mib;
      break;
    }
    case Sharing::Mig:
      usage.gpu_milli = shape.mig_milli;
      for (const auto& ask : gpu.mig) {
        const int slices = mig_compute_slices(ask.profile);
        usage.gpu_memory_mib += ask.count * slices * gpu_memory_mib / 8;
      }
      break;
  }
  return usage;
}

void MigGpuState::sort_by_start() {
  std::stable_sort(instances.begin(), instances.end(),
                   [](const MigSlotState& a, const MigSlotState& b) { return a.start < b.start; });
}

const MigGpuState* NodeState::mig_gpu(int gpu) const {
  for (const auto& state : mig)
    if (state.gpu == gpu) return &state;
  return nullptr;
}

void NodeState::refresh_gpu(int gpu) {
  const GpuState& state = gpus[static_cast<std::size_t>(gpu)];
  const GpuMask bit = gpu_bit(gpu);
  const std::int64_t later = state.milli.used - state.milli.releasing + state.milli.nominated;
  const bool now = state.milli.used > 0 || state.milli.nominated > 0 || state.pin_tasks > 0;
  const bool future = later > 0 || state.pin_tasks > state.pin_releasing;
  busy_now = now ? busy_now | bit : busy_now & ~bit;
  busy_future = future ? busy_future | bit : busy_future & ~bit;
  const bool part = (now || future) && state.pin_tasks == 0 &&
                    (state.milli.used + state.milli.nominated < kWholeGpu || later < kWholeGpu);
  partly = part ? partly | bit : partly & ~bit;
}

namespace {

void charge_mig(NodeState& node, const MigPick& pick, TaskState state, int sign) {
  for (auto& gpu : node.mig) {
    if (gpu.gpu != pick.gpu) continue;
    for (auto& instance : gpu.instances) {
      if (instance.id != pick.id) continue;
      const bool on = sign > 0;
      if (state == TaskState::Nominated) {
        instance.nominated = on;
      } else {
        instance.used = on;
        instance.releasing = on && state == TaskState::Releasing;
      }
      return;
    }
  }
  CHECK_MSG(false, "MIG instance of a task is not on its node");
}

}  // namespace

void NodeState::charge(const Shape& shape, const Allocation& place, JobId job, TaskState state,
                       int sign) {
  const auto& request = shape.request;
  cpu_milli.charge(state, sign * request.resources.cpu_milli);
  memory_bytes.charge(state, sign * request.resources.memory_bytes);
  for (const auto& [id, amount] : shape.named) {
    if (named.size() <= id) named.resize(id + 1);
    named[id].charge(state, sign * amount);
  }
  for (const auto& pick : place.mig) charge_mig(*this, pick, state, sign);
  const bool pinned = !request.gpu.pinned_ids.empty();
  for_each_gpu(place.gpus, [&](int gpu) {
    GpuState& books = gpus[static_cast<std::size_t>(gpu)];
    if (pinned) {
      books.pin_tasks += sign;
      if (state == TaskState::Releasing) books.pin_releasing += sign;
      if (state != TaskState::Releasing && sign > 0) books.pin_owner = PinOwner(shape, job);
      if (books.pin_tasks == books.pin_releasing) books.pin_owner = {};
    } else if (shape.exclusive()) {
      books.milli.charge(state, std::int64_t{sign} * kWholeGpu);
      books.memory_mib.charge(state, sign * books.memory_mib.capacity);
    } else {
      const GpuPart part = gpu_part(request.gpu, books.memory_mib.capacity);
      books.milli.charge(state, std::int64_t{sign} * part.milli);
      books.memory_mib.charge(state, sign * part.memory_mib);
    }
    refresh_gpu(gpu);
  });
}

}  // namespace gs
