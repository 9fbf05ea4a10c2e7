// NodeIndex: for one shape and one view, which node is best, kept up to date from the change log.
//
// Nodes lie in tree order (every domain is one range), under a tree of maxima. A change of a node
// costs one new score and O(log nodes); a question costs O(log nodes). So a decision costs the same
// on 50,000 nodes as on 500. The score of a node is exact at every question.
//
// Invariant after sync(): value_[i] is the score of the node at position i, or kOut if it is
// refused or has no room; max_ holds the maximum of every aligned range.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "cluster/cluster.hpp"
#include "placement/place.hpp"
#include "placement/scorers.hpp"

namespace gs {

// Positions of nodes in tree order, shared by all indexes; rebuilt when nodes come, go or move.
struct NodeOrder {
  std::uint64_t version = 0;
  std::vector<NodeId> nodes;            // position -> node
  std::vector<std::uint32_t> position;  // node id -> position
  struct Range {
    std::uint32_t begin = 0, end = 0;
  };
  std::vector<Range> range;  // per domain

  void build(const Cluster& cluster);
};

class NodeIndex {
 public:
  NodeIndex(const Cluster& cluster, const Scorer& scorer, const NodeOrder& order, ShapeId shape,
            View view);

  void sync();
  // The best node inside the domain; invalid if none has room. Ties: first in tree order.
  NodeId best(DomainId within = DomainTree::root()) const;
  NodeId best_among(DomainId within, const NodeSet& among) const;
  bool has_room(NodeId node) const { return node_value_[order_.position[node.index()]] != kOut; }
  // How many nodes each filter took away, in the order of the filters.
  std::vector<FilterCount> refusals() const;
  bool refused(NodeId node) const {
    return refused_[order_.position[node.index()]] != Constraint::None;
  }
  // Nodes with room, best first: for the rare caller whose first choice does not work out.
  std::vector<NodeId> ranked(DomainId within, const NodeSet* among) const;

 private:
  std::uint64_t policy_version() const {
    const NodePolicy* policy = scorer_.policy_for(cluster_.shapes().at(shape_));
    return policy != nullptr ? policy->version() : 0;
  }

  static constexpr std::int64_t kOut = std::numeric_limits<std::int64_t>::min();

  void rebuild();
  void rescore(std::uint32_t position);
  void revalue();  // the policy has learned: nodes with room are worth something else now
  std::int64_t value_of(std::uint32_t position) const;
  void fill_max();
  void refresh_domain(DomainId domain);
  void set_max(std::uint32_t position);
  std::uint32_t first_max(std::uint32_t begin, std::uint32_t end) const;

  const Cluster& cluster_;
  const Scorer& scorer_;
  const NodeOrder& order_;
  ShapeId shape_;
  View view_;
  bool uses_domains_ = false;
  std::uint64_t built_for_ = 0;  // NodeOrder version
  std::uint64_t cursor_ = 0;
  std::uint64_t policy_version_ = 0;
  std::uint32_t base_ = 1;                // number of leaves of the maximum tree, a power of two
  std::vector<std::int64_t> max_;         // 1-based heap order; leaves at base_ + position
  std::vector<std::int64_t> node_value_;  // without the domain's part
  std::vector<std::uint32_t> stamp_;      // spec_stamp of the refusal answer
  std::vector<Constraint> refused_;
  std::vector<int> refusals_;        // by Constraint: how many nodes it took away
  std::vector<std::int64_t> bonus_;  // preferred domain
  struct DomainLoad {
    std::int64_t gpus = 0, free = 0;
    std::int64_t part = 0;
  };
  std::vector<DomainLoad> load_;    // per domain
  std::vector<std::int32_t> free_;  // free GPUs of the node as counted in load_
};

}  // namespace gs
