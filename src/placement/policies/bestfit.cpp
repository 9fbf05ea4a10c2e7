// bestfit: the node on which least CPU and least GPU is left over, both measured against the
// largest node there is and weighed alike; the tightest GPU. Whole points of a hundred.
#include <algorithm>

#include "placement/free_state.hpp"
#include "placement/policies/policy.hpp"

namespace gs {
namespace {

class BestFit final : public NodePolicy {
 public:
  explicit BestFit(const PolicyContext& context) : cluster_(context.cluster) {}

  double value(const NodeState& node, const Shape& shape, View view) override {
    measure();
    const std::int64_t memory_mib = node.layout->count > 0 ? node.layout->memory_mib[0] : 0;
    const std::int64_t cpu = node.cpu_milli.free(view) - shape.request.resources.cpu_milli;
    const std::int64_t gpu =
        free_state(node, view, 0).gpu_milli() - usage_of(shape, memory_mib).gpu_milli;
    double left = static_cast<double>(cpu) / largest_cpu_ * 0.5;
    left += static_cast<double>(gpu) / largest_gpu_ * 0.5;
    const auto points = static_cast<int>((1.0 - left) * 100);
    return std::clamp(points, 0, 100) / 100.0;
  }

  void rate_gpus(const NodeState& node, const Shape&, View view, GpuMask gpus,
                 GpuPoints& points) override {
    for_each_gpu(gpus, [&](int gpu) {
      points[static_cast<std::size_t>(gpu)] = -free_part(node, gpu, view);
    });
  }

 private:
  void measure() {
    if (measured_ == cluster_.spec_version()) return;
    measured_ = cluster_.spec_version();
    largest_cpu_ = largest_gpu_ = 1;
    for (std::size_t i = 0; i < cluster_.node_count(); ++i) {
      const NodeState& node = cluster_.node(NodeId{i});
      if (node.gone) continue;
      largest_cpu_ = std::max(largest_cpu_, static_cast<double>(node.cpu_milli.capacity));
      largest_gpu_ = std::max(largest_gpu_, static_cast<double>(node.layout->count) * kWholeGpu);
    }
  }

  const Cluster& cluster_;
  std::uint64_t measured_ = 0;
  double largest_cpu_ = 1, largest_gpu_ = 1;
};

}  // namespace

std::unique_ptr<NodePolicy> make_bestfit_policy(const PolicyContext& context) {
  return std::make_unique<BestFit>(context);
}

}  // namespace gs
