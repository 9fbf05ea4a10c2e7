#include "placement/policies/fragmentation.hpp"

#include <algorithm>
#include <array>

#include "placement/policies/kinds.hpp"

namespace gs {
namespace {

constexpr std::size_t kMaxStates = 200'000;

}  // namespace

void Fragmentation::set_typical(std::vector<TypicalTask> typical) {
  typical_ = std::move(typical);
  on_.clear();
  states_.clear();
  kept_.clear();
}

double Fragmentation::of(const FreeState& state) {
  if (states_.size() >= kMaxStates) {
    states_.clear();
    kept_.clear();
  }
  const std::uint32_t id = states_.intern(state);
  if (id == kept_.size()) kept_.push_back(compute(state));
  return kept_[id];
}

// By reason, as the authors sum it up: the last digits decide where a score is cut off.
double Fragmentation::compute(const FreeState& state) {
  enum Reason { kBoth, kGpu, kCpu, kNoGpuAsked, kNoGpuNorCpu, kWrongModel, kReasons };
  std::array<double, kReasons> lost{};
  const auto& offers = offers_on(state.kind);
  const auto all = static_cast<double>(state.gpu_milli());
  for (std::size_t i = 0; i < typical_.size(); ++i) {
    const TypicalTask& task = typical_[i];
    const bool cpu = state.cpu_milli >= task.cpu_milli;
    if (task.gpus == 0) {
      lost[cpu ? kNoGpuAsked : kNoGpuNorCpu] += task.share * all;
      continue;
    }
    if (!offers[i]) {
      lost[kWrongModel] += task.share * all;
      continue;
    }
    int holding = state.whole;
    std::int64_t small = 0;
    for (int p = 0; p < state.parts; ++p) {
      const int part = state.part[static_cast<std::size_t>(p)];
      part >= task.milli ? void(++holding) : void(small += part);
    }
    if (holding < task.gpus)
      lost[cpu ? kGpu : kBoth] += task.share * all;
    else if (!cpu)
      lost[kCpu] += task.share * all;
    else
      lost[kGpu] += task.share * static_cast<double>(small);
  }
  double sum = 0;
  for (const double part : lost) sum += part;
  return sum;
}

const std::vector<std::optional<Offer>>& Fragmentation::offers_on(std::uint32_t kind) {
  if (on_.size() <= kind) on_.resize(kinds_.size());
  std::vector<std::optional<Offer>>& offers = on_[kind];
  if (!offers.empty()) return offers;
  for (const TypicalTask& task : typical_) {
    // Too few GPUs is a matter of what is free, not of the model, as long as one is of the right
    // one.
    DemandKind one{task.cpu_milli, std::min(task.gpus, 1), task.milli, 0, 0, task.models};
    std::sort(one.models.begin(), one.models.end());
    offers.push_back(offer_on(kinds_.at(kind), models_, one));
  }
  return offers;
}

}  // namespace gs
