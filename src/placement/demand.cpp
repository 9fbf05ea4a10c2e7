#include "placement/demand.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "base/hash.hpp"
#include "base/rng.hpp"
#include "model/resources.hpp"

namespace gs {
namespace {

// Learning: at the 1st, 3rd, 9th ... task, then every kLearnEvery tasks.
constexpr std::uint64_t kLearnEvery = 1600;
constexpr std::uint64_t kLearnGrowth = 3;
// When so many tasks have been counted, all counts are halved: what was asked for long ago fades.
constexpr std::int64_t kFadeAt = 32'768;
// Prices that have moved less than this, relative to what they were, stay as they are.
constexpr double kPriceStep = 0.02;
// Kinds with the largest weight that have a price; those among the recent tasks come on top.
constexpr std::size_t kMaxPriced = 256;
// Before the first of them is seen: so many tasks each of 2, 4 and 8 whole GPUs are supposed to
// have come, so that not every large machine is broken up for small tasks meanwhile.
constexpr std::int64_t kSupposed = 2;
constexpr std::int64_t kSupposedCpuPerGpu = 8000;

DemandKind kind_of(const Shape& shape) {
  const GpuRequest& gpu = shape.request.gpu;
  DemandKind kind;
  kind.cpu_milli = shape.request.resources.cpu_milli;
  kind.gpus = gpu.count;
  if (gpu.count == 0) return kind;
  const bool shared = gpu.sharing == Sharing::Shared;
  kind.milli = shared ? gpu.milli : kWholeGpu;
  kind.memory_mib = shared && gpu.milli == 0 ? gpu.memory_mib : 0;
  kind.min_memory_mib = gpu.min_memory_mib;
  kind.models = gpu.models;
  std::sort(kind.models.begin(), kind.models.end());
  return kind;
}

// What the kind asks for in GPU milli. A part in memory counts as half a GPU: how much it really is
// depends on where it goes.
double gpu_milli(const DemandKind& kind) {
  return kind.gpus * (kind.milli > 0 ? kind.milli : kWholeGpu / 2.0);
}

}  // namespace

void Demand::observe(const Shape& shape, ShapeId id, int tasks) {
  if (tasks <= 0 || shape.request.gpu.sharing == Sharing::Mig) return;
  if (by_shape_.size() <= id.index()) by_shape_.resize(id.index() + 1, 0);
  std::uint32_t& known = by_shape_[id.index()];
  if (known == 0) known = number_of(kind_of(shape)) + 1;
  const std::uint32_t number = known - 1;
  state_.counts[number].tasks += tasks;
  const int counted = std::min(tasks, kOfOneGroup);
  state_.seen += static_cast<std::uint64_t>(counted);
  if (shape.gpus() == 0) return;
  state_.recent.insert(state_.recent.end(), static_cast<std::size_t>(counted), number);
  // Cut back now and then only: taking one off the front each time would move them all.
  if (state_.recent.size() >= 2 * kWindow)
    state_.recent.erase(state_.recent.begin(), state_.recent.end() - kWindow);
}

std::uint32_t Demand::number_of(const DemandKind& kind) {
  const auto [it, added] =
      numbers_.try_emplace(kind, static_cast<std::uint32_t>(state_.counts.size()));
  if (added) state_.counts.push_back({kind, 0});
  return it->second;
}

void Demand::learn(std::uint64_t every) {
  std::vector<std::uint32_t>& recent = state_.recent;
  if (recent.size() > kWindow) recent.erase(recent.begin(), recent.end() - kWindow);
  std::int64_t all = 0;
  for (const DemandCount& count : state_.counts) all += count.tasks;
  if (all >= kFadeAt) fade();

  // Kinds by weight; those supposed to come are kinds like any other.
  std::map<DemandKind, std::int64_t> tasks;
  state_.tasks_without_gpu = 0;
  for (const auto& [kind, n] : state_.counts)
    (kind.gpus > 0 ? tasks[kind] : state_.tasks_without_gpu) += n;
  for (const int gpus : {2, 4, 8})
    tasks[{kSupposedCpuPerGpu * gpus, gpus, kWholeGpu, 0, 0, {}}] += kSupposed;
  std::vector<DemandShare>& shares = state_.shares;
  shares.clear();
  double sum = 0;
  for (const auto& [kind, n] : tasks) {
    shares.push_back({kind, n, static_cast<double>(n) * gpu_milli(kind), 0});
    sum += shares.back().weight;
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const DemandShare& a, const DemandShare& b) { return a.weight > b.weight; });
  std::set<DemandKind> kept;
  for (const std::uint32_t number : std::set<std::uint32_t>(recent.begin(), recent.end()))
    kept.insert(state_.counts[number].kind);
  std::size_t rank = 0;
  std::erase_if(shares, [&](const DemandShare& share) {
    return rank++ >= kMaxPriced && !kept.contains(share.kind);
  });
  for (DemandShare& share : shares) share.weight /= sum;
  fill_batches();
  const std::uint64_t step = std::max(kLearnEvery, every);
  state_.learn_at =
      state_.seen + std::min(step, std::max<std::uint64_t>(state_.seen * (kLearnGrowth - 1), 1));
  state_.price_at = state_.seen;
}

// Few tasks so far: they come again and again, in no order.
void Demand::fill_batches() {
  std::map<DemandKind, std::uint32_t> shares;
  for (const DemandShare& share : state_.shares)
    shares.emplace(share.kind, static_cast<std::uint32_t>(shares.size()));
  constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<std::uint32_t> share_of(state_.counts.size(), kNone);
  const std::vector<std::uint32_t>& recent = state_.recent;
  state_.batches.clear();
  for (std::size_t i = 0; i < kWindow && !recent.empty(); ++i) {
    const std::uint32_t number = recent[i % recent.size()];
    if (share_of[number] == kNone) share_of[number] = shares.at(state_.counts[number].kind);
    state_.batches.push_back(share_of[number]);
  }
  if (recent.size() >= kWindow) return;
  Rng rng(1);
  for (std::size_t i = state_.batches.size(); i > 1; --i)
    std::swap(state_.batches[i - 1], state_.batches[rng.below(i)]);
}

void Demand::fade() {
  std::vector<bool> needed(state_.counts.size(), false);
  for (const std::uint32_t number : state_.recent) needed[number] = true;
  std::vector<std::uint32_t> renumbered(state_.counts.size(), 0);
  std::vector<DemandCount> counts;
  for (std::size_t i = 0; i < state_.counts.size(); ++i) {
    DemandCount& count = state_.counts[i];
    count.tasks /= 2;
    if (count.tasks == 0 && !needed[i]) continue;
    renumbered[i] = static_cast<std::uint32_t>(counts.size());
    counts.push_back(std::move(count));
  }
  for (std::uint32_t& number : state_.recent) number = renumbered[number];
  state_.counts = std::move(counts);
  set_state(std::move(state_));
}

bool Demand::set_prices(const std::vector<double>& prices, std::uint64_t every) {
  state_.price_at = state_.seen + every;
  bool moved = false;
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const double before = state_.shares[i].price;
    moved |= std::abs(prices[i] - before) > kPriceStep * before;
  }
  if (moved)
    for (std::size_t i = 0; i < prices.size(); ++i) state_.shares[i].price = prices[i];
  return moved;
}

void Demand::set_state(DemandState state) {
  state_ = std::move(state);
  numbers_.clear();
  by_shape_.clear();
  for (const DemandCount& count : state_.counts)
    numbers_.emplace(count.kind, static_cast<std::uint32_t>(numbers_.size()));
}

std::uint64_t Demand::hash() const {
  Hash h;
  const auto put_kind = [&](const DemandKind& k) {
    h.add(static_cast<std::uint64_t>(k.cpu_milli)).add(static_cast<std::uint64_t>(k.gpus));
    h.add(static_cast<std::uint64_t>(k.milli)).add(static_cast<std::uint64_t>(k.memory_mib));
    h.add(static_cast<std::uint64_t>(k.min_memory_mib)).add(k.models.size());
    for (const std::string& model : k.models) h.add(model);
  };
  for (const DemandCount& count : state_.counts) {
    put_kind(count.kind);
    h.add(static_cast<std::uint64_t>(count.tasks));
  }
  // Of the recent tasks only the last kWindow will ever matter.
  const std::size_t skip = state_.recent.size() > kWindow ? state_.recent.size() - kWindow : 0;
  for (std::size_t i = skip; i < state_.recent.size(); ++i) h.add(std::uint64_t{state_.recent[i]});
  h.add(state_.seen).add(state_.learn_at).add(state_.price_at);
  for (const DemandShare& share : state_.shares) {
    put_kind(share.kind);
    h.add(static_cast<std::uint64_t>(share.tasks)).add(std::bit_cast<std::uint64_t>(share.price));
  }
  for (const std::uint32_t number : state_.batches) h.add(std::uint64_t{number});
  return h.value();
}

}  // namespace gs
