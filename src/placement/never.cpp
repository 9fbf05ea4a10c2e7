// Not now or never: would it fit if nothing else ran?
//
// The answer is sound in one direction only, the one that matters: "never" is said only where the
// counts of an empty cluster prove it.
#include <algorithm>

#include "placement/filters.hpp"
#include "placement/fit.hpp"
#include "placement/placer.hpp"

namespace gs {

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

std::int64_t Placer::Impl::empty_slots(NodeId id, ShapeId shape_id) {
  if (cluster.node(id).gone) return 0;
  const Shape& shape = cluster.shapes().at(shape_id);
  const NodeState empty = emptied(cluster.node(id));
  return refusal(empty, shape) != Constraint::None ? 0 : slots(cluster, empty, shape, View::Now);
}

std::optional<int> Placer::Impl::required_level(const JobShape& shape,
                                                const ShapedGroup& group) const {
  int level = -1;
  const auto tighten = [&](const std::string& name) {
    if (name.empty()) return true;
    const auto index = cluster.domains().level_index(name);
    level = std::max(level, index.value_or(-1));
    return index.has_value();
  };
  if (!tighten(group.topology.required_level)) return std::nullopt;
  for (int set = group.set; set >= 0; set = shape.sets[static_cast<std::size_t>(set)].parent)
    if (!tighten(shape.sets[static_cast<std::size_t>(set)].topology.required_level))
      return std::nullopt;
  return level;
}

// What a leaf holds of one job, the configured limits considered.
std::int64_t Placer::Impl::leaf_room(std::vector<std::int64_t> nodes, const Shape& shape) const {
  std::sort(nodes.rbegin(), nodes.rend());
  const auto most = static_cast<std::size_t>(config.max_nodes_per_leaf);
  if (most > 0 && nodes.size() > most) nodes.resize(most);
  std::int64_t sum = 0;
  for (const std::int64_t fit : nodes) sum += fit;
  if (config.max_gpus_per_leaf > 0 && shape.gpus() > 0)
    sum = std::min<std::int64_t>(sum, config.max_gpus_per_leaf / shape.gpus());
  return sum;
}

namespace {

// Room for tasks per domain, brought up to date leaf by leaf. Slices count as wholes: what is left
// of a domain after its last whole pack is worth nothing.
class EmptyRoom {
 public:
  EmptyRoom(const DomainTree& domains, const std::vector<Slice>& slices)
      : domains_(domains),
        pack_(static_cast<std::size_t>(domains.depth()) + 1, 1),
        room_(domains.size(), 0) {
    for (const Slice& slice : slices) {
      const int at = domains.level_index(slice.level).value_or(domains.depth());
      pack_[static_cast<std::size_t>(at)] = slice.size;
      needs_domains_ |= at < domains.depth();
    }
  }

  // Whether a node outside of the levels may hold a pack.
  bool needs_domains() const { return needs_domains_; }
  std::int64_t whole(std::int64_t fit, int level) const {
    return level < 0 ? fit : fit - fit % pack_[static_cast<std::size_t>(level)];
  }
  // True as soon as one domain of `level` holds `count`.
  bool add(DomainId domain, std::int64_t tasks, int level, int count) {
    while (domain.valid() && tasks > 0) {
      const int at = domains_.at(domain).level;
      std::int64_t& room = room_[domain.index()];
      const std::int64_t before = whole(room, at);
      room += tasks;
      if (at == level && whole(room, at) >= count) return true;
      tasks = whole(room, at) - before;
      domain = domains_.at(domain).parent;
    }
    return false;
  }

 private:
  const DomainTree& domains_;
  std::vector<std::int64_t> pack_;  // by level; the last is that of the nodes
  std::vector<std::int64_t> room_;
  bool needs_domains_ = false;
};

}  // namespace

// The tasks of a group need enough room in one domain of the level that it (or a set above it)
// requires, or in the cluster.
bool Placer::Impl::group_fits_empty(const JobShape& shape, const ShapedGroup& group, int count) {
  const DomainTree& domains = cluster.domains();
  const std::optional<int> level = required_level(shape, group);
  if (!level) return false;
  if (!group.topology.preferred_level.empty() &&
      !domains.level_index(group.topology.preferred_level))
    return false;
  if (!group.slices.empty() && !gs::tree_ask(domains, group.topology, group.slices)) return false;
  EmptyRoom room(domains, group.slices);
  for (std::size_t i = 0; i < domains.size(); ++i) {
    const Domain& domain = domains.at(DomainId{i});
    const bool leaf = domain.level >= 0;
    if (!leaf && room.needs_domains()) continue;
    std::vector<std::int64_t> fits;
    for (const NodeId node : domain.nodes) {
      const std::int64_t fit = room.whole(empty_slots(node, group.shape), domains.depth());
      if (*level == domains.depth() && fit >= count) return true;
      if (!leaf && room.add(DomainId{i}, fit, *level, count)) return true;
      fits.push_back(fit);
    }
    const std::int64_t sum = leaf ? leaf_room(fits, cluster.shapes().at(group.shape)) : 0;
    if (room.add(DomainId{i}, sum, *level, count)) return true;
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
