#include "placement/tree_layout.hpp"

#include "base/check.hpp"

namespace gs {

TreeLayout::TreeLayout(std::vector<std::vector<std::uint32_t>> parents, bool has_nowhere)
    : parents_(std::move(parents)), has_nowhere_(has_nowhere) {
  link();
}

TreeLayout::TreeLayout(const Cluster& cluster) {
  const DomainTree& tree = cluster.domains();
  parents_.resize(at(tree.depth() + 1));
  domains_.resize(at(tree.depth()));
  spots_.resize(tree.size());
  leaf_of_.assign(cluster.node_count(), kNone);
  for (const DomainId id : tree.at(DomainTree::root()).children) add_domain(cluster, id);
  add_nowhere(cluster);
  link();
}

void TreeLayout::add_domain(const Cluster& cluster, DomainId id) {
  const Domain& domain = cluster.domains().at(id);
  auto& row = parents_[at(domain.level)];
  const auto index = static_cast<std::uint32_t>(row.size());
  spots_[id.index()] = {domain.level, index};
  domains_[at(domain.level)].push_back(id);
  row.push_back(domain.level == 0 ? 0 : spots_[domain.parent.index()].index);
  for (const DomainId child : domain.children) add_domain(cluster, child);
  for (const NodeId node : domain.nodes) add_node(node, index);
}

void TreeLayout::add_node(NodeId id, std::uint32_t parent) {
  leaf_of_[id.index()] = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back(id);
  parents_.back().push_back(parent);
}

void TreeLayout::add_nowhere(const Cluster& cluster) {
  const Domain& root = cluster.domains().at(DomainTree::root());
  if (root.nodes.empty()) return;
  std::uint32_t parent = 0;
  for (int row = 0; row < leaf_row(); ++row) {
    has_nowhere_ = true;
    parents_[at(row)].push_back(parent);
    domains_[at(row)].push_back(DomainTree::root());
    parent = static_cast<std::uint32_t>(parents_[at(row)].size() - 1);
  }
  for (const NodeId node : root.nodes) add_node(node, parent);
}

void TreeLayout::link() {
  first_child_.resize(parents_.size());
  for (std::size_t k = 0; k + 1 < parents_.size(); ++k) {
    auto& first = first_child_[k];
    first.assign(parents_[k].size() + 1, 0);
    const auto& below = parents_[k + 1];
    for (std::size_t i = 0; i < below.size(); ++i) {
      CHECK(i == 0 || below[i - 1] <= below[i]);
      ++first[below[i] + 1];
    }
    for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  }
}

SpotRange TreeLayout::below(Spot spot, int row) const {
  SpotRange range{spot.index, spot.index + 1};
  for (int k = spot.row; k < row; ++k) {
    const auto& first = first_child_[at(k)];
    range = {first[range.begin], first[range.end]};
  }
  return range;
}

SpotRange TreeLayout::places(int row) const {
  if (!has_nowhere_) return whole_row(row);
  return {0, row < leaf_row() ? width(row) - 1 : below({0, width(0) - 1}, row).begin};
}

}  // namespace gs
