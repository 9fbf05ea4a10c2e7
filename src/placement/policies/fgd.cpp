// fgd: fragmentation gradient descent, as published (see fragmentation.hpp): the node whose
// expected fragmentation grows least. The score is a whole number of a hundred; that coarseness is
// part of the method (ties go to the first node).
//
// The typical tasks are the configured ones, or else what has been learned.
#include <cmath>

#include "placement/devices.hpp"
#include "placement/policies/fragmentation.hpp"
#include "placement/policies/policy.hpp"

namespace gs {
namespace {

class Fgd final : public NodePolicy {
 public:
  explicit Fgd(const PolicyContext& context)
      : cluster_(context.cluster),
        config_(context.config),
        demand_(context.demand),
        fragmentation_(context.cluster.shapes().models()) {
    fragmentation_.set_typical(config_.typical_tasks.empty() ? learned() : config_.typical_tasks);
  }

  double value(const NodeState& node, const Shape& shape, View view) override {
    const FreeState before = fragmentation_.state_of(node, view);
    FreeState after = before;
    after.cpu_milli -= shape.request.resources.cpu_milli;
    if (shape.gpus() > 0 && !shape.exclusive()) {
      const auto pick = pick_shared(node, shape, view, this);
      if (!pick) return 0;
      if (shape.gpus() == 1) return static_cast<double>(pick->points) / 100.0;
      for_each_gpu(pick->gpus, [&](int gpu) { use_gpu(node, shape, view, gpu, after); });
    } else {
      after.whole = static_cast<std::uint16_t>(std::max(0, after.whole - shape.gpus()));
    }
    return static_cast<double>(points(before, after)) / 100.0;
  }

  void rate_gpus(const NodeState& node, const Shape& shape, View view, GpuMask gpus,
                 GpuPoints& rated) override {
    const FreeState before = fragmentation_.state_of(node, view);
    for_each_gpu(gpus, [&](int gpu) {
      FreeState after = before;
      after.cpu_milli -= shape.request.resources.cpu_milli;
      use_gpu(node, shape, view, gpu, after);
      rated[static_cast<std::size_t>(gpu)] = points(before, after);
    });
  }

  void refresh() override {
    if (!config_.typical_tasks.empty() || !demand_.learn_due()) return;
    demand_.learn(cluster_.node_count() / 4);
    fragmentation_.set_typical(learned());
    ++version_;
  }

 private:
  std::vector<TypicalTask> learned() const {
    const DemandState& demand = demand_.state();
    auto all = static_cast<double>(demand.tasks_without_gpu);
    for (const DemandShare& share : demand.shares) all += static_cast<double>(share.tasks);
    std::vector<TypicalTask> typical;
    if (all == 0) return typical;
    typical.push_back({0, 0, 0, {}, static_cast<double>(demand.tasks_without_gpu) / all});
    for (const auto& [kind, tasks, weight, price] : demand.shares)
      if (kind.milli > 0)
        typical.push_back(
            {kind.cpu_milli, kind.gpus, kind.milli, kind.models, static_cast<double>(tasks) / all});
    return typical;
  }

  int points(const FreeState& before, const FreeState& after) {
    const double less = fragmentation_.of(before) - fragmentation_.of(after);
    return static_cast<int>(1.0 / (1.0 + std::exp(-less / kWholeGpu)) * 100.0);
  }

  const Cluster& cluster_;
  const Config& config_;
  Demand& demand_;
  Fragmentation fragmentation_;
};

}  // namespace

std::unique_ptr<NodePolicy> make_fgd_policy(const PolicyContext& context) {
  return std::make_unique<Fgd>(context);
}

}  // namespace gs
