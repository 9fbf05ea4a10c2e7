// Tree: where in the network do the tasks of a group go?
//
// For each kind of task it keeps how many fit on every node and in every domain (tree_counts.hpp),
// brought up to date from the cluster's change log, so that an answer costs what changed and what
// is chosen, not what there is. The rule itself is in tree_search.hpp.
//
// It answers with counts per node and changes nothing: the caller places the tasks in a Trial.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "base/result.hpp"
#include "cluster/cluster.hpp"
#include "model/config.hpp"
#include "placement/devices.hpp"
#include "placement/least_harm.hpp"
#include "placement/tree_search.hpp"

namespace gs {

struct TreeAsk {
  ShapeId shape;
  int count = 0;  // a multiple of the outermost slice
  View view = View::Now;
  Reach reach = Reach::Anywhere;
  int level = 0;                   // DomainTree::level_index: 0 = outermost, depth() = node
  int limit = -1;                  // Preferred: one domain of this level is required; -1: no
  std::vector<SliceLayer> slices;  // outermost first, row = level; empty: none
  ShapeId leader;                  // one task of this shape sits with them; invalid: none
  DomainId within;                 // only here; invalid or the root: everywhere
  NodeId within_node;              // only this one; invalid: no
  const std::vector<bool>* among = nullptr;  // by node id: only these; null: all
  bool free_choice = false;  // nothing is wished: as Config::gang_layout says, where it can
  JobId job;  // its tasks count against the limits per leaf (Config); invalid: none do
};

// The part of an ask that a group's wishes decide: reach, level, limit, slices. An Error says what
// about them no cluster with these levels can ever satisfy.
Result<TreeAsk> tree_ask(const DomainTree& domains, const TopologyWish& wish,
                         const std::vector<Slice>& slices);

struct Portion {
  NodeId node;
  int tasks = 0;
  bool leader = false;
};

struct TreeShortage {
  DomainId where;          // the domain that comes closest; invalid: no single one was required
  NodeId node;             // or the node
  std::int64_t holds = 0;  // tasks, in whole slices
  std::int64_t needs = 0;
  bool leader_fits = true;  // false: the leader fits nowhere
};

class Tree {
 public:
  Tree(const Cluster& cluster, const Config& config);
  ~Tree();

  // Fills portions() and returns true, or fills shortage().
  bool find(const TreeAsk& ask);
  const std::vector<Portion>& portions() const { return portions_; }  // in tree order
  // With free_choice: the cost by which the place was chosen (least_harm.hpp), else nothing.
  std::optional<double> cost() const { return cost_; }
  // The same for a place that is given.
  double cost_of(const TreeAsk& ask, const std::vector<Portion>& portions);
  const TreeShortage& shortage() const { return shortage_; }

  // Domains of `level` inside `within` (or nodes, at the level of nodes) that hold each of these
  // groups taken alone, the tightest first. For groups of different shapes that must lie together:
  // outside of these they can't.
  struct Candidate {
    DomainId domain;
    NodeId node;
  };
  std::vector<Candidate> candidates(const std::vector<TreeAsk>& groups, int level, DomainId within);

 private:
  using Key = std::tuple<std::uint32_t, View, std::uint32_t, std::vector<std::pair<int, int>>>;
  struct Index;

  void refresh_layout();
  bool has_nodes(DomainId domain) const;
  std::optional<Spot> spot_of(const TreeAsk& ask) const;
  std::vector<SliceLayer> layers(const TreeAsk& ask) const;
  Index& index(const TreeAsk& ask);
  void sync(Index& index);
  void recount(Index& index, std::uint32_t leaf);
  void seat_leader(LeafCount& count, const NodeState& node, NodeId id, const Index& index);
  const TreeCounts& counts(const TreeAsk& ask);
  void cap_domains(const TreeAsk& ask, std::vector<LeafCount>& leaves) const;
  const HarmScale& scale(Index& index);
  bool search_freely(const TreeAsk& ask);
  bool search(const TreeAsk& ask);

  const Cluster& cluster_;
  const Config& config_;
  std::uint64_t layout_version_ = 0;
  TreeLayout layout_;
  std::map<Key, std::unique_ptr<Index>> indexes_;
  std::optional<TreeCounts> narrowed_;  // counts of the last ask with `among` or limits per leaf
  TreeSearch search_;
  LeastHarm least_harm_;
  std::optional<double> cost_;
  DeviceChooser devices_;
  NodeState scratch_;  // a node with the leader on it
  std::vector<Portion> portions_;
  TreeShortage shortage_;
};

}  // namespace gs
