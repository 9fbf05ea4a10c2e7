// The Placer's inside. place.cpp: sets and single tasks; gang.cpp: groups over the tree;
// settle.cpp: the exact devices; explain.cpp and never.cpp: why not.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "placement/devices.hpp"
#include "placement/never.hpp"
#include "placement/node_index.hpp"
#include "placement/place.hpp"
#include "placement/scorers.hpp"
#include "placement/tree.hpp"

namespace gs {

// The part of the network in which something must lie: a domain, or one node.
struct Scope {
  DomainId domain = DomainTree::root();
  NodeId node;  // valid: only this one
};

struct Placer::Impl {
  Impl(Cluster& c, const Config& cfg) : cluster(c), config(cfg), scorer(cfg), tree(c, cfg) {
    devices.follow(&scorer);
    take_policy();
  }
  void take_policy();

  NodeIndex& index(ShapeId shape, View view);
  const ShapedGroup& group_of(JobId job, int group) const {
    return cluster.shape_of(job).groups[static_cast<std::size_t>(group)];
  }

  // --- place.cpp ---
  bool place_set(Trial& trial, const PlaceAsk& ask, int set, const std::vector<int>& entries,
                 Scope scope);
  bool place_members(Trial& trial, const PlaceAsk& ask, int set, const std::vector<int>& entries,
                     Scope scope);
  bool place_together(Trial& trial, const PlaceAsk& ask, int set, const std::vector<int>& entries,
                      Scope scope);
  bool place_with_leader(Trial& trial, const PlaceAsk& ask, int set,
                         const std::vector<int>& entries, Scope scope, bool& applies);
  bool place_task(Trial& trial, const PlaceAsk& ask, int group, int rank, Scope scope);
  bool waits_for_others(const PlaceAsk& ask, int group, Scope scope);
  bool place_in_view(Trial& trial, const PlaceAsk& ask, int group, int rank, Scope scope,
                     View view);

  // --- gang.cpp ---
  bool place_group(Trial& trial, const PlaceAsk& ask, const GroupTasks& tasks, Scope scope);
  bool place_near(Trial& trial, const PlaceAsk& ask, const GroupTasks& tasks, Scope scope);
  bool place_layer(Trial& trial, const PlaceAsk& ask, const GroupTasks& tasks, std::size_t layer,
                   Scope scope);
  bool place_rests(Trial& trial, const PlaceAsk& ask, const GroupTasks& tasks, Scope scope);
  bool pack_home(JobId job, const GroupTasks& pack, int size, int level, Scope& home) const;
  bool place_fresh(Trial& trial, const PlaceAsk& ask, TreeAsk tree_ask, const GroupTasks& tasks,
                   Scope scope);
  bool find(TreeAsk& tree_ask, const PlaceAsk& ask, Scope scope);
  bool assign(Trial& trial, const PlaceAsk& ask, int group, std::vector<int> ranks,
              const std::vector<Portion>& portions);
  TopologyWish said_wish(JobId job, const ShapedGroup& group) const;
  TopologyWish wish_of(JobId job, const ShapedGroup& group) const;
  bool chooses_freely(JobId job, const ShapedGroup& group) const;
  bool takes_whole_node(ShapeId shape);
  // Where the members that have a place already bind the others to; false: they lie apart.
  bool survivors_home(JobId job, int set_or_group, bool is_set, int level, Scope& home) const;

  // --- settle.cpp ---
  bool settle(Trial& trial, const PlaceAsk& ask, int group, int rank, NodeId node, View view);
  // Now if the firmness asked for allows and it fits, else nominated if that is allowed.
  bool settle_soonest(Trial& trial, const PlaceAsk& ask, int group, int rank, NodeId node);
  bool has_tighter_place(const Task& task);
  bool spare(Trial& trial, const PlaceAsk& ask, int group, int rank, NodeId node);
  bool spare_by_swap(Trial& trial, const PlaceAsk& ask, TaskId evicted);
  TaskId evicted_twin(const Trial& trial, JobId job, int group, int rank, NodeId node) const;

  // --- explain.cpp ---
  struct GangRoom {
    std::int64_t count = 0, room = 0;
  };
  std::string together_words(JobId job, const ShapedGroup& group) const;
  std::int64_t room_for(ShapeId shape, NodeId node, int at_most, bool empty);
  void explain_group(const PlaceAsk& ask, const GroupTasks& tasks, Why& why);
  void explain_moves(const ShapedGroup& group, std::int64_t count, Why& why);
  void explain_gang(const std::string& need, const std::string& where, GangRoom gang, Why& why);

  // --- never.cpp ---
  struct Verdicts {
    std::uint64_t version = 0;
    std::unordered_map<JobShapeId, bool> fits;
  };
  std::int64_t empty_slots(NodeId node, ShapeId shape);
  // The level that the group (or a set above it) requires, -1: none; nothing: there is no such
  // level.
  std::optional<int> required_level(const JobShape& shape, const ShapedGroup& group) const;
  std::int64_t leaf_room(std::vector<std::int64_t> nodes, const Shape& shape) const;
  bool group_fits_empty(const JobShape& shape, const ShapedGroup& group, int count);

  Cluster& cluster;
  const Config& config;
  Demand demand;
  std::unique_ptr<NodePolicy> policy;
  Scorer scorer;
  Tree tree;
  DeviceChooser devices;
  NodeOrder order;
  std::unordered_map<std::uint64_t, std::unique_ptr<NodeIndex>> indexes;
  Verdicts verdicts;
  std::optional<double> cost;  // of the last group that had a free choice
  int most_gpus = 0;           // of one node
  std::uint64_t most_gpus_version = 0;
};

// Whether an ask of this firmness may take what this view shows.
inline bool may_use(Firmness firmness, View view) {
  return firmness != (view == View::Now ? Firmness::Nominate : Firmness::StartNow);
}

// Whether a wish says anything.
inline bool is_empty(const TopologyWish& wish) {
  return wish.required_level.empty() && wish.preferred_level.empty();
}

}  // namespace gs
