#include "placement/filters.hpp"

#include <algorithm>

#include "model/mig.hpp"

namespace gs {
namespace {

bool has_labels(const NodeState& node, const Labels& selector) {
  return std::all_of(selector.begin(), selector.end(), [&](const auto& wanted) {
    const std::string* value = find_label(node.spec.labels, wanted.first);
    return value != nullptr && *value == wanted.second;
  });
}

bool any_matches(const std::vector<LabelTerms>& alternatives, const Labels& labels) {
  return std::any_of(alternatives.begin(), alternatives.end(),
                     [&](const LabelTerms& terms) { return matches(terms, labels); });
}

bool all_tolerated(const NodeState& node, const std::vector<Toleration>& tolerations) {
  return std::all_of(node.spec.taints.begin(), node.spec.taints.end(), [&](const Taint& taint) {
    return taint.effect == TaintEffect::PreferNoSchedule || tolerates(tolerations, taint);
  });
}

// Whether each profile asked for exists on a GPU of the node, or could be cut there.
bool can_have_instances(const NodeState& node, const Shape& shape) {
  for (std::size_t i = 0; i < shape.request.gpu.mig.size(); ++i) {
    const std::string& profile = shape.request.gpu.mig[i].profile;
    const bool possible =
        std::any_of(node.mig.begin(), node.mig.end(), [&](const MigGpuState& gpu) {
          const Gpu& spec = node.spec.gpus[static_cast<std::size_t>(gpu.gpu)];
          const bool cut =
              gpu.dynamic && find_mig_profile(spec.model, spec.memory_mib, profile) != nullptr;
          return cut || std::any_of(gpu.instances.begin(), gpu.instances.end(),
                                    [&](const MigSlotState& instance) {
                                      return instance.profile == shape.mig_profiles[i];
                                    });
        });
    if (!possible) return false;
  }
  return true;
}

Constraint gpu_refusal(const NodeState& node, const Shape& shape) {
  const GpuRequest& gpu = shape.request.gpu;
  if (gpu.count == 0 && gpu.mig.empty()) return Constraint::None;
  const Layout& layout = *node.layout;
  if (layout.count == 0) return Constraint::Devices;
  if (!shape.models.empty() && std::none_of(shape.models.begin(), shape.models.end(),
                                            [&](auto id) { return layout.of_model(id) != 0; }))
    return Constraint::GpuModel;
  if (gpu.sharing == Sharing::Mig)
    return can_have_instances(node, shape) ? Constraint::None : Constraint::Mig;
  const GpuMask eligible = eligible_gpus(layout, shape) & node.whole;
  if (gpu_count(eligible) < gpu.count)
    return eligible == 0 && (gpu.min_memory_mib > 0 || gpu.memory_mib > 0) ? Constraint::GpuMemory
                                                                           : Constraint::Devices;
  for (const int id : gpu.pinned_ids)
    if (id >= layout.count) return Constraint::Devices;
  return Constraint::None;
}

}  // namespace

GpuMask eligible_gpus(const Layout& layout, const Shape& shape) {
  const GpuRequest& gpu = shape.request.gpu;
  GpuMask mask = first_gpus(layout.count);
  if (!shape.models.empty()) {
    GpuMask of_models = 0;
    for (const auto model : shape.models) of_models |= layout.of_model(model);
    mask &= of_models;
  }
  const std::int64_t memory = std::max(gpu.min_memory_mib, gpu.memory_mib);
  if (memory > 0)
    for_each_gpu(mask, [&](int i) {
      if (layout.memory_mib[static_cast<std::size_t>(i)] < memory) mask &= ~gpu_bit(i);
    });
  return mask;
}

Constraint refusal(const NodeState& node, const Shape& shape) {
  const TaskRequest& r = shape.request;
  if (!node.schedulable()) return Constraint::NodeNotReady;
  if (!r.only_nodes.empty() &&
      std::find(r.only_nodes.begin(), r.only_nodes.end(), node.spec.name) == r.only_nodes.end())
    return Constraint::NodeName;
  if (!node.spec.taints.empty() && !all_tolerated(node, r.tolerations)) return Constraint::Taint;
  if (!r.selector.empty() && !has_labels(node, r.selector)) return Constraint::Selector;
  if (!r.affinity.empty() && !any_matches(r.affinity, node.spec.labels))
    return Constraint::Affinity;
  const Fabric& fabric = node.spec.fabric;
  if (r.rdma == Wish::Required && fabric.rdma_ports == 0) return Constraint::Fabric;
  if (r.cufile == Wish::Required && !fabric.cufile) return Constraint::Fabric;
  if (fabric.rdma_ports * fabric.rdma_gbps < r.min_network_gbps) return Constraint::Network;
  return gpu_refusal(node, shape);
}

int affinity_score(const NodeState& node, const Shape& shape) {
  const TaskRequest& r = shape.request;
  int score = 0;
  for (const auto& preferred : r.preferred_affinity)
    if (matches(preferred.terms, node.spec.labels)) score += preferred.weight;
  for (const auto& taint : node.spec.taints)
    if (taint.effect == TaintEffect::PreferNoSchedule && !tolerates(r.tolerations, taint)) --score;
  if (r.rdma == Wish::Preferred && node.spec.fabric.rdma_ports > 0) ++score;
  if (r.cufile == Wish::Preferred && node.spec.fabric.cufile) ++score;
  return score;
}

}  // namespace gs
