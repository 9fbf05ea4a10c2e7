// The network tree as flat rows: every level is one row of domains, the nodes are the last row.
//
// Invariants: rows are in natural path order, so a lower index is an earlier name; the children of
// a domain are one range of the next row, and so is everything below it on any row. Nodes without a
// path hang under a domain of their own, the last one of each row: "nowhere". It is no place where
// tasks are near each other, but its nodes can be used by those who don't ask for that.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "cluster/cluster.hpp"

namespace gs {

// A domain by its row and its index on that row.
struct Spot {
  int row = 0;
  std::uint32_t index = 0;
  bool operator==(const Spot&) const = default;
};

struct SpotRange {
  std::uint32_t begin = 0, end = 0;
  std::uint32_t size() const { return end - begin; }
};

class TreeLayout {
 public:
  TreeLayout() = default;
  // parents[k][i]: the parent of domain i of row k; must not descend along a row. Of row 0 only the
  // length counts. For searches without a cluster (tests, other trees).
  explicit TreeLayout(std::vector<std::vector<std::uint32_t>> parents, bool has_nowhere = false);
  explicit TreeLayout(const Cluster& cluster);

  int rows() const { return static_cast<int>(parents_.size()); }
  int leaf_row() const { return rows() - 1; }
  std::uint32_t width(int row) const {
    return static_cast<std::uint32_t>(parents_[at(row)].size());
  }
  std::uint32_t parent(int row, std::uint32_t index) const { return parents_[at(row)][index]; }
  SpotRange children(int row, std::uint32_t index) const {
    const auto& first = first_child_[at(row)];
    return {first[index], first[index + 1]};
  }
  std::uint32_t ancestor(int inner, std::uint32_t index, int outer) const {
    for (; inner > outer; --inner) index = parent(inner, index);
    return index;
  }
  // What lies on `row` inside `spot`, which is on that row or further out.
  SpotRange below(Spot spot, int row) const;
  SpotRange whole_row(int row) const { return {0, width(row)}; }
  // The row without "nowhere" and what hangs there.
  SpotRange places(int row) const;
  bool nowhere(int row, std::uint32_t index) const { return index >= places(row).end; }

  // Of a layout that was made from a cluster:
  NodeId node(std::uint32_t leaf) const { return nodes_[leaf]; }
  static constexpr std::uint32_t kNone = 0xffffffffU;
  std::uint32_t leaf(NodeId node) const { return leaf_of_[node.index()]; }         // kNone: gone
  DomainId domain(Spot spot) const { return domains_[at(spot.row)][spot.index]; }  // not a leaf
  Spot spot(DomainId domain) const { return spots_[domain.index()]; }

 private:
  static std::size_t at(int row) { return static_cast<std::size_t>(row); }
  void link();
  void add_domain(const Cluster& cluster, DomainId id);
  void add_node(NodeId id, std::uint32_t parent);
  void add_nowhere(const Cluster& cluster);

  std::vector<std::vector<std::uint32_t>> parents_;
  std::vector<std::vector<std::uint32_t>> first_child_;
  bool has_nowhere_ = false;
  std::vector<NodeId> nodes_;
  std::vector<std::uint32_t> leaf_of_;
  std::vector<std::vector<DomainId>> domains_;
  std::vector<Spot> spots_;
};

}  // namespace gs
