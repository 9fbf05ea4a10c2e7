#include "placement/scorers.hpp"

#include <algorithm>

#include "placement/filters.hpp"

namespace gs {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? std::clamp(static_cast<double>(part) / static_cast<double>(whole), 0.0, 1.0)
                   : 0.0;
}

// Free GPUs in absolute numbers, so that the fullest node wins whatever its size; CPU for tasks
// without GPU.
double emptiness(const NodeState& node, const Shape& shape) {
  if (shape.gpus() == 0 && shape.request.gpu.mig.empty())
    return share(node.cpu_milli.free(View::Future),
                 std::max<std::int64_t>(node.cpu_milli.capacity, 1));
  return static_cast<double>(gpu_count(node.free_gpus(View::Future))) / kMaxGpusPerNode;
}

// How many of the GPUs that it wishes for are free, of as many as it can have.
double wishes_met(const GpuRequest& gpu, GpuMask free) {
  int met = 0;
  for (const int id : gpu.prefer_ids) met += (free & gpu_bit(id)) != 0;
  const int most = std::min(gpu.count, static_cast<int>(gpu.prefer_ids.size()));
  return share(std::min(met, most), most);
}

// Bandwidth inside the best island for the task, against the best that the node has; or its wishes.
double alignment(const NodeState& node, const Shape& shape, View view) {
  if (shape.request.gpu.policy == DevicePolicy::PreferIds && shape.exclusive())
    return wishes_met(shape.request.gpu, node.free_gpus(view) & eligible_gpus(*node.layout, shape));
  if (shape.gpus() < 2 || !shape.exclusive()) return 1.0;
  const GpuMask free = node.free_gpus(view);
  for (int island = 0; island < node.layout->islands; ++island)
    if (gpu_count(free & node.layout->of_island(island)) >= shape.gpus()) return 1.0;
  return 0.5;
}

}  // namespace

bool Scorer::joins_others(const NodeState& node, const Shape& shape, View view) {
  bool fits = false;
  for_each_gpu(node.partly & node.usable(), [&](int gpu) {
    const GpuState& books = node.gpus[static_cast<std::size_t>(gpu)];
    const GpuPart part = gpu_part(shape.request.gpu, books.memory_mib.capacity);
    fits |= books.milli.free(view) >= part.milli && books.memory_mib.free(view) >= part.memory_mib;
  });
  return fits;
}

Strategy Scorer::strategy_of(const Shape& shape) const {
  return shape.request.strategy == Strategy::Default ? config_.strategy : shape.request.strategy;
}

NodePolicy* Scorer::policy_for(const Shape& shape) const {
  const GpuRequest& gpu = shape.request.gpu;
  const bool judged = gpu.sharing != Sharing::Mig && gpu.pinned_ids.empty();
  return judged && strategy_of(shape) == Strategy::Balanced ? policy_ : nullptr;
}

double Scorer::availability(const NodeState& node, const Shape& shape, View view) const {
  if (NodePolicy* policy = policy_for(shape)) return policy->value(node, shape, view);
  switch (strategy_of(shape)) {
    case Strategy::Distributed:
      return emptiness(node, shape);
    case Strategy::Consolidated:
    case Strategy::Default:
    case Strategy::Balanced:
      break;
  }
  return 1.0 - emptiness(node, shape);
}

ScoreCard Scorer::parts(const NodeState& node, const Shape& shape, View view) const {
  const ScoringWeights& w = config_.weights;
  ScoreCard card;
  card.resource_availability = w.resource_availability * availability(node, shape, view);
  card.topology_alignment = w.topology_alignment * alignment(node, shape, view);
  card.historical_performance = w.historical_performance * node.performance;
  const bool no_gpu = shape.gpus() == 0 && shape.request.gpu.mig.empty();
  const bool shares = shape.request.gpu.sharing == Sharing::Shared &&
                      policy_for(shape) == nullptr && strategy_of(shape) != Strategy::Distributed;
  card.affinity = affinity_score(node, shape) / 10.0;
  if (no_gpu && node.layout->count == 0) card.affinity += 1.0;
  if (shares && joins_others(node, shape, view)) card.affinity += 2.0;
  card.total = card.resource_availability + card.topology_alignment + card.historical_performance +
               card.affinity;
  return card;
}

double Scorer::domain_part(const Shape& shape, double taken) const {
  // Noisy neighbours cost a latency-sensitive task more than anything that packing could win.
  if (shape.request.latency_sensitive) return 1.0 - taken;
  const bool away = strategy_of(shape) == Strategy::Distributed;
  return config_.weights.domain_utilization * (away ? 1.0 - taken : taken);
}

}  // namespace gs
