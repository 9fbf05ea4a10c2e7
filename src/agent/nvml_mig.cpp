#include "agent/nvml_mig.hpp"

#include <optional>
#include <vector>

#include <fmt/format.h>

#include "agent/nvml_gpus.hpp"
#include "model/mig.hpp"

namespace gs::agent {
namespace {

using namespace nvml;

struct Instance {
  std::string profile, uuid;
  Placement placement{};
  GpuInstance handle = nullptr;
};

// "NVIDIA H200 MIG 1g.18gb" -> "1g.18gb"
std::string profile_in_name(const std::string& name) {
  const std::size_t at = name.rfind("MIG ");
  return at == std::string::npos ? std::string() : name.substr(at + 4);
}

std::vector<Instance> instances_of(const Api& api, Device device) {
  std::vector<Instance> found;
  unsigned count = 0;
  if (api.nvmlDeviceGetMaxMigDeviceCount == nullptr ||
      api.nvmlDeviceGetMaxMigDeviceCount(device, &count) != kSuccess)
    return found;
  for (unsigned i = 0; i < count; ++i) {
    Device mig = nullptr;
    if (api.nvmlDeviceGetMigDeviceHandleByIndex(device, i, &mig) != kSuccess) continue;
    Instance instance;
    char text[96] = "";
    if (api.nvmlDeviceGetName(mig, text, 96) == kSuccess) instance.profile = profile_in_name(text);
    if (api.nvmlDeviceGetUUID(mig, text, 96) == kSuccess) instance.uuid = text;
    unsigned id = 0;
    GpuInstanceInfo info{};
    if (api.nvmlDeviceGetGpuInstanceId(mig, &id) == kSuccess &&
        api.nvmlDeviceGetGpuInstanceById(device, id, &instance.handle) == kSuccess &&
        api.nvmlGpuInstanceGetInfo(instance.handle, &info) == kSuccess)
      instance.placement = info.placement;
    found.push_back(instance);
  }
  return found;
}

std::optional<std::string> existing(const Api& api, Device device, const std::string& profile,
                                    int start) {
  for (const Instance& instance : instances_of(api, device))
    if (instance.profile == profile &&
        (start < 0 || instance.placement.start == static_cast<unsigned>(start)))
      return instance.uuid;
  return std::nullopt;
}

Error failed(const Api& api, const char* what, Return answer) {
  return {ErrorCode::Unavailable, fmt::format("{}: {}", what, api.nvmlErrorString(answer))};
}

Status remove_instance(const Api& api, const Instance& instance) {
  for (unsigned profile = 0; profile < 8; ++profile) {
    ComputeInstance inside[8] = {};
    unsigned count = 8;
    if (api.nvmlGpuInstanceGetComputeInstances(instance.handle, profile, inside, &count) !=
        kSuccess)
      continue;
    for (unsigned i = 0; i < count; ++i)
      if (const Return answer = api.nvmlComputeInstanceDestroy(inside[i]); answer != kSuccess)
        return failed(api, "cannot remove a compute instance that is in the way", answer);
  }
  if (const Return answer = api.nvmlGpuInstanceDestroy(instance.handle); answer != kSuccess)
    return failed(api, "cannot remove a GPU instance that is in the way", answer);
  return ok_status();
}

bool overlap(const Placement& a, const Placement& b) {
  return a.start < b.start + b.size && b.start < a.start + a.size;
}

// The driver numbers its profiles; slices and memory tell which one a name means.
std::optional<unsigned> driver_profile(const Api& api, Device device, const std::string& profile) {
  const int slices = mig_compute_slices(profile);
  const bool media = profile.find("+me") != std::string::npos;
  const std::size_t dot = profile.find('.');
  const int gigabytes = dot == std::string::npos ? 0 : std::atoi(profile.c_str() + dot + 1);
  std::optional<unsigned> best;
  long long best_distance = 0;
  for (unsigned i = 0; i < kGpuInstanceProfiles; ++i) {
    GpuInstanceProfile info{};
    if (api.nvmlDeviceGetGpuInstanceProfileInfo(device, i, &info) != kSuccess) continue;
    if (static_cast<int>(info.slices) != slices) continue;
    const bool has_media = info.jpegs > 0 || info.ofas > 0;
    if (slices == 1 && media != has_media) continue;
    const long long distance =
        std::abs(static_cast<long long>(info.memory_mb) - gigabytes * 1024LL);
    if (!best || distance < best_distance) {
      best = info.id;
      best_distance = distance;
    }
  }
  return best;
}

Status cut(const Api& api, Device device, const std::string& profile, const Placement& placement) {
  for (const Instance& instance : instances_of(api, device))
    if (overlap(instance.placement, placement))
      if (Status removed = remove_instance(api, instance); !removed.ok()) return removed;
  const auto id = driver_profile(api, device, profile);
  if (!id) return invalid(fmt::format("this GPU has no MIG profile {}", profile));
  GpuInstance instance = nullptr;
  if (const Return answer =
          api.nvmlDeviceCreateGpuInstanceWithPlacement(device, *id, &placement, &instance);
      answer != kSuccess)
    return failed(api, "cannot create the GPU instance", answer);
  // Compute instance profiles count slices too: 1, 2, 3, 4, 7, 8, 6 in the driver's order.
  const unsigned wanted = static_cast<unsigned>(mig_compute_slices(profile));
  for (unsigned i = 0; i < 8; ++i) {
    ComputeInstanceProfile info{};
    if (api.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, i, 0, &info) != kSuccess ||
        info.slices != wanted)
      continue;
    ComputeInstance inside = nullptr;
    const Return answer = api.nvmlGpuInstanceCreateComputeInstance(instance, info.id, &inside);
    if (answer == kSuccess) return ok_status();
    api.nvmlGpuInstanceDestroy(instance);
    return failed(api, "cannot create the compute instance", answer);
  }
  api.nvmlGpuInstanceDestroy(instance);
  return Error{ErrorCode::Unavailable, "the driver has no compute instance of that size"};
}

}  // namespace

void add_mig(const Api& api, Device device, GpuEntry& entry) {
  unsigned current = 0;
  unsigned pending = 0;
  if (api.nvmlDeviceGetMigMode == nullptr ||
      api.nvmlDeviceGetMigMode(device, &current, &pending) != kSuccess || current == 0)
    return;
  entry.gpu.mig_enabled = true;
  entry.gpu.mig_dynamic = api.nvmlDeviceCreateGpuInstanceWithPlacement != nullptr;
  for (const Instance& instance : instances_of(api, device)) {
    const bool placed = instance.placement.size > 0;
    entry.gpu.mig.push_back(
        {instance.profile, placed ? static_cast<int>(instance.placement.start) : -1});
    entry.mig_uuids.push_back(instance.uuid);
  }
}

Result<std::string> find_or_cut_mig(const Api& api, Device device, const std::string& profile,
                                    int start, bool create) {
  if (const auto uuid = existing(api, device, profile, start)) return *uuid;
  if (!create || start < 0)
    return not_found(fmt::format("there is no MIG instance {} at slot {}", profile, start));
  char name[96] = "";
  api.nvmlDeviceGetName(device, name, 96);
  Memory memory{};
  api.nvmlDeviceGetMemoryInfo(device, &memory);
  const MigProfile* facts = find_mig_profile(
      canonical_gpu_model(name), static_cast<std::int64_t>(memory.total / (1024 * 1024)), profile);
  if (facts == nullptr) return invalid(fmt::format("{} has no MIG profile {}", name, profile));
  const Placement placement{static_cast<unsigned>(start), static_cast<unsigned>(facts->size)};
  if (Status made = cut(api, device, profile, placement); !made.ok()) return made.error();
  if (const auto uuid = existing(api, device, profile, start)) return *uuid;
  return Error{ErrorCode::Internal, "the MIG instance was made and cannot be found"};
}

}  // namespace gs::agent
