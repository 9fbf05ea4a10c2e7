#include "placement/refill.hpp"

#include <algorithm>

namespace gs {
namespace {

// A working copy: whole GPUs can be broken, so there is room for more parts than a FreeState keeps.
class Room {
 public:
  explicit Room(const FreeState& state)
      : cpu_(state.cpu_milli), whole_(state.whole), left_(state.gpu_milli()), parts_(state.parts) {
    // Ascending: the tightest part that holds a task is the first that is large enough.
    for (int i = 0; i < parts_; ++i)
      part_[i] = state.part[static_cast<std::size_t>(parts_ - 1 - i)];
  }
  std::int64_t left() const { return left_; }

  void offer(const Offer& task) {
    if (task.cpu_milli > cpu_) return;
    const bool fits = task.milli == kWholeGpu ? take_whole(task.gpus)
                      : task.gpus == 1        ? take_part(task.milli)
                                              : take_parts(task);
    if (!fits) return;
    cpu_ -= task.cpu_milli;
    left_ -= task.gpu_milli();
  }

 private:
  bool take_whole(int gpus) {
    if (whole_ < gpus) return false;
    whole_ -= gpus;
    return true;
  }
  bool take_part(int milli) {
    int at = 0;
    while (at < parts_ && part_[at] < milli) ++at;
    if (at == parts_) {
      if (whole_ == 0) return false;
      --whole_;
      part_[parts_++] = kWholeGpu;
    }
    // What is left of it moves down to where it belongs.
    const int rest = part_[at] - milli;
    for (; at > 0 && part_[at - 1] > rest; --at) part_[at] = part_[at - 1];
    part_[at] = rest;
    return true;
  }
  // Parts of several GPUs, all different.
  bool take_parts(const Offer& task) {
    const int holding = static_cast<int>(
        std::count_if(part_, part_ + parts_, [&](int p) { return p >= task.milli; }));
    const int broken = std::max(0, task.gpus - holding);
    if (broken > whole_) return false;
    whole_ -= broken;
    for (int i = 0; i < broken; ++i) part_[parts_++] = kWholeGpu;
    int open = task.gpus;
    for (int i = 0; i < parts_ && open > 0; ++i)
      if (part_[i] >= task.milli) part_[i] -= task.milli, --open;
    std::sort(part_, part_ + parts_);
    return true;
  }

  std::int64_t cpu_;
  int whole_;
  std::int64_t left_;
  int parts_;
  int part_[kMaxGpusPerNode + FreeState::kMaxParts];
};

}  // namespace

std::int64_t refill(const FreeState& state, std::span<const Batch> batches) {
  const std::int64_t all = state.gpu_milli();
  if (all == 0) return 0;
  std::int64_t placed = 0;
  for (const Batch& batch : batches) {
    Room room(state);
    for (const Offer& task : batch) {
      room.offer(task);
      if (room.left() == 0) break;
    }
    placed += all - room.left();
  }
  return placed;
}

std::int64_t copies(const FreeState& state, const Offer& offer) {
  std::int64_t fit = 0;
  if (offer.milli == kWholeGpu) {
    fit = state.whole / offer.gpus;
  } else {
    fit = std::int64_t{state.whole} * (kWholeGpu / offer.milli);
    for (int i = 0; i < state.parts; ++i)
      fit += state.part[static_cast<std::size_t>(i)] / offer.milli;
    fit /= offer.gpus;
  }
  fit *= kOneCopy;
  if (offer.cpu_milli > 0)
    fit = std::min(fit, std::max<std::int64_t>(state.cpu_milli, 0) * kOneCopy / offer.cpu_milli);
  return fit < kOneCopy ? 0 : fit;
}

}  // namespace gs
