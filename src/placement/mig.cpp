#include "placement/mig.hpp"

#include <algorithm>
#include <bit>

#include "model/mig.hpp"

namespace gs {
namespace {

bool usable(const NodeState& node, const MigGpuState& gpu) {
  const GpuMask bit = gpu_bit(gpu.gpu);
  return (node.healthy & bit) != 0 && (node.hot & bit) == 0 &&
         node.gpus[static_cast<std::size_t>(gpu.gpu)].mig_holds == 0;
}

bool right_model(const NodeState& node, const MigGpuState& gpu, const Shape& shape) {
  if (shape.models.empty()) return true;
  const auto model = node.layout->model[static_cast<std::size_t>(gpu.gpu)];
  for (const auto wanted : shape.models)
    if (wanted == model) return true;
  return false;
}

std::uint8_t taken_slots(const MigGpuState& gpu, bool unused_too) {
  std::uint8_t taken = 0;
  for (const auto& instance : gpu.instances)
    if (unused_too || instance.used || instance.nominated)
      taken |= mig_slots(instance.start, instance.size);
  return taken;
}

// Legal positions left for the largest profiles afterwards: halves count most, then pairs, then
// slots.
int room_left(std::uint8_t taken) {
  int room = 0;
  for (const int start : {0, 4}) room += (taken & mig_slots(start, 4)) == 0 ? 100 : 0;
  for (const int start : {0, 2, 4, 6}) room += (taken & mig_slots(start, 2)) == 0 ? 10 : 0;
  return room + std::popcount(static_cast<unsigned>(static_cast<std::uint8_t>(~taken)));
}

// Not where an instance lies at an unknown place; "+me" only once on a GPU (those in use count).
bool may_cut(const MigGpuState& gpu, const MigProfile& profile, std::uint32_t profile_id) {
  for (const auto& instance : gpu.instances) {
    if (instance.start < 0) return false;
    if (profile.media && instance.profile == profile_id && (instance.used || instance.nominated))
      return false;
  }
  return true;
}

struct Cut {
  int room = -1;
  MigGpuState* gpu = nullptr;
  int start = 0;
  int size = 1;
};

// The best place to cut `profile`, on GPUs that may be cut; first without, then with destroying.
Cut find_cut(std::vector<MigGpuState>& gpus, const NodeState& node, const Shape& shape,
             std::uint32_t profile_id, const std::string& profile) {
  for (const bool keep_unused : {true, false}) {
    Cut best;
    for (auto& gpu : gpus) {
      const Gpu& spec = node.spec.gpus[static_cast<std::size_t>(gpu.gpu)];
      const MigProfile* geometry = find_mig_profile(spec.model, spec.memory_mib, profile);
      if (!gpu.dynamic || geometry == nullptr || !usable(node, gpu) ||
          !right_model(node, gpu, shape))
        continue;
      if (!may_cut(gpu, *geometry, profile_id)) continue;
      const std::uint8_t taken = taken_slots(gpu, keep_unused);
      for (int start = 0; start < 8; ++start) {
        const std::uint8_t wanted = gs::mig_slots(start, geometry->size);
        if ((geometry->starts >> start & 1) == 0 || (taken & wanted) != 0) continue;
        const int room = room_left(static_cast<std::uint8_t>(taken | wanted));
        const bool fresh = taken == 0;  // an untouched GPU is broken only when no other does
        const int value = fresh ? room : room + 1000;
        if (value > best.room) best = {value, &gpu, start, geometry->size};
      }
    }
    if (best.gpu != nullptr) return best;
  }
  return {};
}

std::optional<MigPick> take_one(std::vector<MigGpuState>& gpus, const NodeState& node,
                                const Shape& shape, View view, std::uint32_t profile_id,
                                const std::string& profile) {
  for (auto& gpu : gpus) {
    if (!usable(node, gpu) || !right_model(node, gpu, shape)) continue;
    for (auto& instance : gpu.instances) {
      if (instance.profile != profile_id || !instance.free(view)) continue;
      instance.nominated = true;  // in our scratch copy: taken
      return MigPick{static_cast<std::uint8_t>(gpu.gpu),
                     instance.start,
                     instance.size,
                     instance.id,
                     profile_id,
                     false};
    }
  }
  const Cut cut = find_cut(gpus, node, shape, profile_id, profile);
  if (cut.gpu == nullptr) return std::nullopt;
  const std::uint8_t wanted = gs::mig_slots(cut.start, cut.size);
  std::erase_if(cut.gpu->instances, [&](const MigSlotState& instance) {
    return (gs::mig_slots(instance.start, instance.size) & wanted) != 0;
  });
  cut.gpu->instances.push_back({profile_id, static_cast<std::int8_t>(cut.start),
                                static_cast<std::uint8_t>(cut.size), 0, false, false, true});
  return MigPick{static_cast<std::uint8_t>(cut.gpu->gpu),
                 static_cast<std::int8_t>(cut.start),
                 static_cast<std::uint8_t>(cut.size),
                 0,
                 profile_id,
                 true};
}

bool take_all(std::vector<MigGpuState>& gpus, const NodeState& node, const Shape& shape, View view,
              std::vector<MigPick>& picks) {
  for (std::size_t i = 0; i < shape.request.gpu.mig.size(); ++i) {
    const MigAsk& ask = shape.request.gpu.mig[i];
    for (int n = 0; n < ask.count; ++n) {
      const auto pick = take_one(gpus, node, shape, view, shape.mig_profiles[i], ask.profile);
      if (!pick) return false;
      picks.push_back(*pick);
    }
  }
  return true;
}

}  // namespace

std::optional<std::vector<MigPick>> choose_mig(const NodeState& node, const Shape& shape,
                                               View view) {
  std::vector<MigGpuState> scratch = node.mig;
  std::vector<MigPick> picks;
  if (!take_all(scratch, node, shape, view, picks)) return std::nullopt;
  return picks;
}

std::optional<std::vector<MigPick>> mig_at(const NodeState& node, const std::vector<MigPlace>& at,
                                           Names& resources) {
  std::vector<MigGpuState> scratch = node.mig;
  std::vector<MigPick> picks;
  for (const MigPlace& place : at) {
    const std::uint32_t profile = resources.intern("mig:" + place.profile);
    const auto gpu = std::find_if(scratch.begin(), scratch.end(),
                                  [&](const MigGpuState& g) { return g.gpu == place.gpu; });
    if (gpu == scratch.end()) return std::nullopt;
    const auto fits = [&](const MigSlotState& i) {
      return i.profile == profile && !i.used && (place.start < 0 || i.start == place.start);
    };
    // Rather one that is promised to nobody.
    auto there = std::find_if(gpu->instances.begin(), gpu->instances.end(),
                              [&](const MigSlotState& i) { return fits(i) && !i.nominated; });
    if (there == gpu->instances.end())
      there = std::find_if(gpu->instances.begin(), gpu->instances.end(), fits);
    if (there != gpu->instances.end()) {
      there->used = true;
      picks.push_back({static_cast<std::uint8_t>(place.gpu), there->start, there->size, there->id,
                       profile, false});
      continue;
    }
    const Gpu& spec = node.spec.gpus[static_cast<std::size_t>(place.gpu)];
    const MigProfile* geometry = find_mig_profile(spec.model, spec.memory_mib, place.profile);
    if (!gpu->dynamic || geometry == nullptr || place.start < 0 || place.start > 7)
      return std::nullopt;
    const std::uint8_t wanted = gs::mig_slots(place.start, geometry->size);
    if ((geometry->starts >> place.start & 1) == 0 || (taken_slots(*gpu, false) & wanted) != 0)
      return std::nullopt;
    MigSlotState cut;
    cut.profile = profile;
    cut.start = static_cast<std::int8_t>(place.start);
    cut.size = static_cast<std::uint8_t>(geometry->size);
    cut.used = true;
    gpu->instances.push_back(cut);
    picks.push_back({static_cast<std::uint8_t>(place.gpu), cut.start, cut.size, 0, profile, true});
  }
  return picks;
}

int mig_slots(const NodeState& node, const Shape& shape, View view, int at_most) {
  std::vector<MigGpuState> scratch = node.mig;
  std::vector<MigPick> picks;
  int fit = 0;
  while (fit < at_most && take_all(scratch, node, shape, view, picks)) ++fit;
  return fit;
}

}  // namespace gs
