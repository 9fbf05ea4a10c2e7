#include "placement/free_state.hpp"

#include <algorithm>

namespace gs {

void FreeState::add_part(int milli) {
  if (milli <= 0) return;
  if (parts == kMaxParts) {
    if (part[kMaxParts - 1] >= milli) return;
    --parts;
  }
  int at = parts++;
  for (; at > 0 && part[static_cast<std::size_t>(at - 1)] < milli; --at)
    part[static_cast<std::size_t>(at)] = part[static_cast<std::size_t>(at - 1)];
  part[static_cast<std::size_t>(at)] = static_cast<std::uint16_t>(milli);
}

void FreeState::remove_part(int milli) {
  const auto end = part.begin() + parts;
  const auto it = std::find(part.begin(), end, milli);
  if (it == end) return;
  std::copy(it + 1, end, it);
  part[--parts] = 0;
}

void FreeState::use_part(int free, int milli) {
  if (free >= kWholeGpu)
    whole -= whole > 0 ? 1 : 0;
  else
    remove_part(free);
  add_part(free - milli);
}

std::int64_t FreeState::gpu_milli() const {
  std::int64_t sum = std::int64_t{whole} * kWholeGpu;
  for (int i = 0; i < parts; ++i) sum += part[static_cast<std::size_t>(i)];
  return sum;
}

std::uint32_t Kinds::of(const Layout* layout) {
  if (layout == last_ && !layouts_.empty()) return last_kind_;
  const auto [it, added] =
      numbers_.try_emplace(layout, static_cast<std::uint32_t>(layouts_.size()));
  if (added) layouts_.push_back(layout);
  last_ = layout;
  last_kind_ = it->second;
  return it->second;
}

int free_part(const NodeState& node, int gpu, View view) {
  const GpuState& books = node.gpus[static_cast<std::size_t>(gpu)];
  std::int64_t milli = books.milli.free(view);
  if (books.memory_mib.capacity > 0)
    milli = std::min(milli, books.memory_mib.free(view) * kWholeGpu / books.memory_mib.capacity);
  return static_cast<int>(std::max<std::int64_t>(milli, 0));
}

FreeState free_state(const NodeState& node, View view, std::uint32_t kind) {
  FreeState state;
  state.cpu_milli = node.cpu_milli.free(view);
  state.kind = kind;
  const GpuMask whole = node.free_gpus(view);
  state.whole = static_cast<std::uint16_t>(gpu_count(whole));
  for_each_gpu(node.partly & node.usable() & ~whole, [&](int gpu) {
    state.add_part(std::min(free_part(node, gpu, view), kWholeGpu - 1));
  });
  return state;
}

int use_gpu(const NodeState& node, const Shape& shape, View view, int gpu, FreeState& state) {
  const GpuPart part =
      gpu_part(shape.request.gpu, node.gpus[static_cast<std::size_t>(gpu)].memory_mib.capacity);
  const bool whole = (node.free_gpus(view) & gpu_bit(gpu)) != 0;
  state.use_part(whole ? kWholeGpu : std::min(free_part(node, gpu, view), kWholeGpu - 1),
                 part.milli);
  return part.milli;
}

namespace {

std::uint64_t hash_of(const FreeState& s) {
  std::uint64_t h = static_cast<std::uint64_t>(s.cpu_milli) * 0x9e3779b97f4a7c15ULL ^
                    (std::uint64_t{s.kind} << 32 | std::uint64_t{s.whole} << 16 | s.parts);
  for (int i = 0; i < s.parts; ++i)
    h = (h ^ h >> 29 ^ s.part[static_cast<std::size_t>(i)]) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ h >> 31) * 0x94d049bb133111ebULL;
  return h ^ h >> 32;
}

}  // namespace

std::uint32_t FreeStates::intern(const FreeState& state) {
  if (slots_.size() < 2 * (states_.size() + 1)) grow();
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = hash_of(state) & mask;; i = (i + 1) & mask) {
    if (slots_[i] == 0) {
      states_.push_back(state);
      slots_[i] = static_cast<std::uint32_t>(states_.size());
      return slots_[i] - 1;
    }
    if (states_[slots_[i] - 1] == state) return slots_[i] - 1;
  }
}

void FreeStates::grow() {
  slots_.assign(std::max<std::size_t>(256, slots_.size() * 2), 0);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t id = 0; id < states_.size(); ++id) {
    std::size_t i = hash_of(states_[id]) & mask;
    while (slots_[i] != 0) i = (i + 1) & mask;
    slots_[i] = static_cast<std::uint32_t>(id + 1);
  }
}

void FreeStates::clear() {
  states_.clear();
  slots_.clear();
}

}  // namespace gs
