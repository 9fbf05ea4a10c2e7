#include "placement/node_index.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "placement/filters.hpp"
#include "placement/fit.hpp"

namespace gs {
namespace {

// Scores become integers: no order may hang on the last bit of a double.
std::int64_t fixed(double score) { return std::llround(score * 1e6); }

constexpr double kPreferredDomainBonus = 3.0;

}  // namespace

void NodeOrder::build(const Cluster& cluster) {
  version = cluster.structure_version();
  nodes.clear();
  position.assign(cluster.node_count(), 0);
  const DomainTree& tree = cluster.domains();
  range.assign(tree.size(), {});
  const auto visit = [&](auto&& self, DomainId id) -> void {
    const Domain& domain = tree.at(id);
    range[id.index()].begin = static_cast<std::uint32_t>(nodes.size());
    for (const DomainId child : domain.children) self(self, child);
    for (const NodeId node : domain.nodes) {
      position[node.index()] = static_cast<std::uint32_t>(nodes.size());
      nodes.push_back(node);
    }
    range[id.index()].end = static_cast<std::uint32_t>(nodes.size());
  };
  visit(visit, DomainTree::root());
}

NodeIndex::NodeIndex(const Cluster& cluster, const Scorer& scorer, const NodeOrder& order,
                     ShapeId shape, View view)
    : cluster_(cluster), scorer_(scorer), order_(order), shape_(shape), view_(view) {}

void NodeIndex::sync() {
  const std::uint64_t end = cluster_.log_end();
  const std::size_t behind = end - cursor_;
  if (built_for_ != order_.version || cursor_ < cluster_.log_begin() ||
      behind > order_.nodes.size()) {
    rebuild();
    return;
  }
  if (policy_version_ != policy_version()) revalue();
  for (; cursor_ < end; ++cursor_) {
    const NodeId node = cluster_.logged(cursor_);
    if (cluster_.node(node).gone) continue;
    const std::uint32_t position = order_.position[node.index()];
    rescore(position);
    if (uses_domains_) {
      refresh_domain(cluster_.node(node).domain);
    }
    set_max(position);
  }
}

void NodeIndex::rebuild() {
  built_for_ = order_.version;
  policy_version_ = policy_version();
  cursor_ = cluster_.log_end();
  const std::size_t n = order_.nodes.size();
  uses_domains_ = cluster_.domains().depth() > 0;
  base_ = std::bit_ceil(static_cast<std::uint32_t>(std::max<std::size_t>(n, 1)));
  max_.assign(2 * base_, kOut);
  node_value_.assign(n, kOut);
  stamp_.assign(n, 0);
  refused_.assign(n, Constraint::None);
  refusals_.assign(static_cast<std::size_t>(Constraint::Invalid) + 1, 0);
  refusals_[static_cast<std::size_t>(Constraint::None)] = static_cast<int>(n);
  bonus_.assign(n, 0);
  free_.assign(n, 0);
  load_.assign(cluster_.domains().size(), {});
  const std::string& preferred = cluster_.shapes().at(shape_).request.preferred_domain;
  if (!preferred.empty())
    for (const DomainId domain : cluster_.domains().named(preferred))
      for (auto i = order_.range[domain.index()].begin; i < order_.range[domain.index()].end; ++i)
        bonus_[i] = fixed(kPreferredDomainBonus);
  for (std::uint32_t i = 0; i < n; ++i) {
    load_[cluster_.node(order_.nodes[i]).domain.index()].gpus +=
        cluster_.node(order_.nodes[i]).layout->count;
    rescore(i);
  }
  if (uses_domains_)
    for (std::size_t d = 1; d < load_.size(); ++d) refresh_domain(DomainId{d});
  fill_max();
}

void NodeIndex::fill_max() {
  for (std::uint32_t i = 0; i < order_.nodes.size(); ++i) {
    const std::int64_t value = node_value_[i];
    max_[base_ + i] =
        value == kOut ? kOut : value + load_[cluster_.node(order_.nodes[i]).domain.index()].part;
  }
  for (std::uint32_t i = base_ - 1; i >= 1; --i) max_[i] = std::max(max_[2 * i], max_[2 * i + 1]);
}

// Nodes that have changed since are in the log, and looked at after this; they may have no room by
// now, but they have a value all the same.
void NodeIndex::revalue() {
  policy_version_ = policy_version();
  for (std::uint32_t i = 0; i < order_.nodes.size(); ++i)
    if (node_value_[i] != kOut && !cluster_.node(order_.nodes[i]).gone)
      node_value_[i] = value_of(i);
  fill_max();
}

std::int64_t NodeIndex::value_of(std::uint32_t position) const {
  const NodeState& node = cluster_.node(order_.nodes[position]);
  return fixed(scorer_.parts(node, cluster_.shapes().at(shape_), view_).total) + bonus_[position];
}

void NodeIndex::rescore(std::uint32_t position) {
  const NodeState& node = cluster_.node(order_.nodes[position]);
  const Shape& shape = cluster_.shapes().at(shape_);
  if (stamp_[position] != node.spec_stamp) {
    stamp_[position] = node.spec_stamp;
    --refusals_[static_cast<std::size_t>(refused_[position])];
    refused_[position] = refusal(node, shape);
    ++refusals_[static_cast<std::size_t>(refused_[position])];
  }
  if (uses_domains_) {
    const int free = gpu_count(node.free_gpus(View::Future));
    load_[node.domain.index()].free += free - free_[position];
    free_[position] = free;
  }
  const bool room =
      refused_[position] == Constraint::None && slots(cluster_, node, shape, view_, 1) > 0;
  node_value_[position] = room ? value_of(position) : kOut;
}

// The domain's own part changed for all its nodes alike; they are one range of the tree.
void NodeIndex::refresh_domain(DomainId domain) {
  DomainLoad& load = load_[domain.index()];
  if (domain == DomainTree::root() || load.gpus == 0) return;
  const double taken = 1.0 - static_cast<double>(load.free) / static_cast<double>(load.gpus);
  const std::int64_t part = fixed(scorer_.domain_part(cluster_.shapes().at(shape_), taken));
  if (part == load.part) return;
  load.part = part;
  const auto [begin, end] = order_.range[domain.index()];
  for (std::uint32_t i = begin; i < end; ++i)
    max_[base_ + i] = node_value_[i] == kOut ? kOut : node_value_[i] + part;
  for (std::uint32_t low = (base_ + begin) / 2, high = (base_ + end - 1) / 2; low >= 1;
       low /= 2, high /= 2)
    for (std::uint32_t i = low; i <= high; ++i) max_[i] = std::max(max_[2 * i], max_[2 * i + 1]);
}

void NodeIndex::set_max(std::uint32_t position) {
  const std::int64_t value = node_value_[position];
  const NodeState& node = cluster_.node(order_.nodes[position]);
  max_[base_ + position] = value == kOut ? kOut : value + load_[node.domain.index()].part;
  for (std::uint32_t i = (base_ + position) / 2; i >= 1; i /= 2) {
    const std::int64_t best = std::max(max_[2 * i], max_[2 * i + 1]);
    if (best == max_[i]) break;
    max_[i] = best;
  }
}

// Leftmost position of the maximum in [begin, end), or end.
std::uint32_t NodeIndex::first_max(std::uint32_t begin, std::uint32_t end) const {
  std::int64_t best = kOut;
  std::uint32_t where = 0;
  std::uint32_t low = base_ + begin;
  std::uint32_t high = base_ + end;
  std::uint32_t right[32];
  int rights = 0;
  const auto offer = [&](std::uint32_t i) {
    if (max_[i] > best) best = max_[i], where = i;
  };
  for (; low < high; low /= 2, high /= 2) {
    if ((low & 1) != 0) offer(low++);
    if ((high & 1) != 0) right[rights++] = --high;
  }
  while (rights > 0) offer(right[--rights]);
  if (best == kOut) return end;
  while (where < base_) where = max_[2 * where] == best ? 2 * where : 2 * where + 1;
  return where - base_;
}

NodeId NodeIndex::best(DomainId within) const {
  const auto [begin, end] = order_.range[within.index()];
  const std::uint32_t position = first_max(begin, end);
  return position == end ? NodeId{} : order_.nodes[position];
}

NodeId NodeIndex::best_among(DomainId within, const NodeSet& among) const {
  const auto [begin, end] = order_.range[within.index()];
  std::int64_t best = kOut;
  NodeId chosen;
  for (std::uint32_t i = begin; i < end; ++i)
    if (max_[base_ + i] > best && among[order_.nodes[i].index()])
      best = max_[base_ + i], chosen = order_.nodes[i];
  return chosen;
}

std::vector<FilterCount> NodeIndex::refusals() const {
  std::vector<FilterCount> counts;
  for (std::size_t i = 1; i < refusals_.size(); ++i)
    if (refusals_[i] > 0) counts.push_back({static_cast<Constraint>(i), refusals_[i]});
  return counts;
}

std::vector<NodeId> NodeIndex::ranked(DomainId within, const NodeSet* among) const {
  const auto [begin, end] = order_.range[within.index()];
  std::vector<std::uint32_t> positions;
  for (std::uint32_t i = begin; i < end; ++i)
    if (max_[base_ + i] != kOut && (among == nullptr || (*among)[order_.nodes[i].index()]))
      positions.push_back(i);
  std::stable_sort(positions.begin(), positions.end(), [&](std::uint32_t a, std::uint32_t b) {
    return max_[base_ + a] > max_[base_ + b];
  });
  std::vector<NodeId> nodes;
  for (const auto i : positions) nodes.push_back(order_.nodes[i]);
  return nodes;
}

}  // namespace gs
