// A Job has Groups of identical Tasks. Groups hang in a tree of sets; set 0 is the job itself.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "model/request.hpp"

namespace gs {

// Where the tasks of a group or a set must lie together. A level is a name from the cluster's
// topology, "node" being the innermost. Empty: no wish at that strength.
struct TopologyWish {
  std::string required_level;   // one domain of this level, or wait
  std::string preferred_level;  // try one domain of this level, then each level further out
  bool operator==(const TopologyWish&) const = default;
};

// Tasks come in packs of `size`, each pack inside one domain of `level`.
struct Slice {
  std::string level;
  int size = 1;
  bool operator==(const Slice&) const = default;
};

// The members of such a group all join later, as room allows.
inline constexpr int kNoMinimum = -1;

struct Group {
  std::string name;
  TaskRequest request;
  int count = 1;
  int min = 0;  // starts with at least so many; 0: all (a plain gang); kNoMinimum: none is needed
  int set = 0;  // index into Job::sets
  TopologyWish topology;
  std::vector<Slice> slices;  // outermost first; each size divides the one before it
  bool operator==(const Group&) const = default;

  int min_count() const { return min == kNoMinimum ? 0 : min > 0 ? min : count; }
};

struct GroupSet {
  std::string name;
  int parent = -1;        // -1 only for set 0
  TopologyWish topology;  // of all tasks below, e.g. leader and workers together
  int min_children = 0;   // so many of the groups and sets below must start; 0: all
  bool operator==(const GroupSet&) const = default;
};

struct Job {
  std::string id;  // unique for ever
  std::string name;
  std::string tenant;
  int priority = 500;
  Instant submitted;  // 0: when the engine hears of it
  std::vector<GroupSet> sets = {GroupSet{}};
  std::vector<Group> groups;

  std::optional<Duration> expected_runtime;
  std::optional<Duration> max_runtime;
  Duration min_runtime;     // not evicted before it has run so long
  bool preemptible = true;  // allow_preemption
  bool can_preempt_others = true;
  int max_preemptions = 0;                // 0: no bound; after so many it is not evicted any more
  bool checkpointable = false;            // loses no work when evicted
  bool movable = false;                   // may be moved by consolidation
  std::optional<Duration> start_timeout;  // fails with a reason if it has not started by then
  int disruption_budget =
      0;  // at most so many of its tasks evicted a cycle without the whole; 0: no bound
  // Members that have arrived; -1: all. An incomplete gang waits and holds nothing.
  int arrived = -1;
  bool held = false;
  Labels labels;
};

Status validate(const Job& job);
int task_count(const Job& job);

}  // namespace gs
