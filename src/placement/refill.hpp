// Refill: how much of what is left on a node would still be used by the tasks that usually come.
//
// Batches of tasks are offered to the node one by one; a task that fits takes what it needs, a task
// that shares a GPU takes the tightest part that holds it. What all of them together place is the
// node's worth. A rest that nobody can use is worth nothing, and CPU is worth something exactly
// where it runs out before the GPUs do.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "placement/free_state.hpp"

namespace gs {

// A task as far as it matters here.
struct Offer {
  std::int64_t cpu_milli = 0;
  int gpus = 1;
  int milli = kWholeGpu;  // of each GPU
  std::int64_t gpu_milli() const { return std::int64_t{gpus} * milli; }
  bool operator==(const Offer&) const = default;
};
using Batch = std::vector<Offer>;

// GPU milli placed, summed over the batches; each starts from the same state.
std::int64_t refill(const FreeState& state, std::span<const Batch> batches);

// How many such tasks still fit, in 1/1024. The part that CPU allows is not rounded down, so that
// every bit of CPU has its price; less than one task is none.
inline constexpr std::int64_t kOneCopy = 1024;
std::int64_t copies(const FreeState& state, const Offer& offer);

}  // namespace gs
