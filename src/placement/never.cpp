// Not now or never: would it fit if nothing else ran?
//
// The answer is sound in one direction only, the one that matters: "never" is said only where the
// counts of an empty cluster prove it.
#include <algorithm>

#include "placement/filters.hpp"
#include "placement/fit.hpp"
#include "placement/placer.hpp"

namespace gs {
namespace {

// The node as if nothing ran there and everything were in order.
NodeState emptied(const NodeState& node) {
  NodeState empty = node;
  const auto clear = [](Ledger& ledger) { ledger.used = ledger.releasing = ledger.nominated = 0; };
  clear(empty.cpu_milli);
  clear(empty.memory_bytes);
  for (auto& ledger : empty.named) clear(ledger);
  for (auto& gpu : empty.gpus) {
    clear(gpu.milli);
    clear(gpu.memory_mib);
    gpu.pin_tasks = gpu.pin_releasing = 0;
  }
  for (auto& gpu : empty.mig)
    for (auto& instance : gpu.instances)
      instance.used = instance.releasing = instance.nominated = false;
  empty.hot = 0;
  empty.healthy = first_gpus(node.layout->count);
  empty.spec.ready = true;
  empty.spec.cordoned = false;
  for (int i = 0; i < node.layout->count; ++i) empty.refresh_gpu(i);
  return empty;
}

}  // namespace

std::int64_t Placer::Impl::empty_slots(NodeId id, ShapeId shape_id) {
  if (cluster.node(id).gone) return 0;
  const Shape& shape = cluster.shapes().at(shape_id);
  const NodeState empty = emptied(cluster.node(id));
  return refusal(empty, shape) != Constraint::None ? 0 : slots(cluster, empty, shape, View::Now);
}

// The tasks of a group need enough room in one domain of the level that it (or a set above it)
// requires, or in the cluster.
bool Placer::Impl::group_fits_empty(const JobShape& shape, const ShapedGroup& group, int count) {
  int level = -1;
  const auto tighten = [&](const std::string& name) {
    if (name.empty()) return true;
    const auto index = cluster.domains().level_index(name);
    level = std::max(level, index.value_or(-1));
    return index.has_value();
  };
  if (!tighten(group.topology.required_level)) return false;
  for (int set = group.set; set >= 0; set = shape.sets[static_cast<std::size_t>(set)].parent)
    if (!tighten(shape.sets[static_cast<std::size_t>(set)].topology.required_level)) return false;
  if (!group.topology.preferred_level.empty() &&
      !cluster.domains().level_index(group.topology.preferred_level))
    return false;
  if (!group.slices.empty() && !gs::tree_ask(cluster.domains(), group.topology, group.slices))
    return false;
  std::vector<std::int64_t> sums(cluster.domains().size(), 0);
  for (std::size_t i = 0; i < cluster.node_count(); ++i) {
    const NodeState& node = cluster.node(NodeId{i});
    if (node.gone) continue;
    const std::int64_t fit = empty_slots(NodeId{i}, group.shape);
    if (level >= cluster.domains().depth() && fit >= count) return true;
    const DomainId domain =
        level < 0 ? DomainTree::root() : cluster.domains().ancestor(node.domain, level);
    if (!domain.valid()) continue;
    sums[domain.index()] += fit;
    if (level < cluster.domains().depth() && sums[domain.index()] >= count) return true;
  }
  return false;
}

bool Placer::fits_empty_cluster(const PlaceAsk& ask) {
  const std::uint64_t version = impl_->cluster.spec_version();
  if (impl_->verdicts.version != version) impl_->verdicts = {version, {}};
  const JobShapeId id = impl_->cluster.job(ask.job).shape;
  const auto [it, added] = impl_->verdicts.fits.try_emplace(id, true);
  if (added) {
    const JobShape& shape = impl_->cluster.shapes().at(id);
    it->second = std::all_of(ask.tasks.begin(), ask.tasks.end(), [&](const GroupTasks& tasks) {
      return impl_->group_fits_empty(shape, shape.groups[static_cast<std::size_t>(tasks.group)],
                                     static_cast<int>(tasks.ranks.size()));
    });
  }
  return it->second;
}

}  // namespace gs
