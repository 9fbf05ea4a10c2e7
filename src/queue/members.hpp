// Members: which tasks of a job start next, and which leave first.
//
// A job starts with the minimum of each of its groups (of so many of them as its sets demand), all
// at once; from then on it grows by one task at a time. It shrinks the other way round: surplus
// tasks one by one, then what is left as a whole. Groups below their minimum come first, then the
// one that is least ahead of it; inside a group the lowest rank starts first and leaves last.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/cluster.hpp"
#include "queue/amounts.hpp"

namespace gs {

struct Member {
  int group = 0;
  int rank = 0;
  bool operator==(const Member&) const = default;
};

// A set of tasks that is emptied in O(1).
class TaskMarks {
 public:
  void clear() { ++epoch_; }
  void set(TaskId id) {
    if (stamp_.size() <= id.index()) stamp_.resize(id.index() + 1, 0);
    stamp_[id.index()] = epoch_;
  }
  void unset(TaskId id) {
    if (has(id)) stamp_[id.index()] = 0;
  }
  bool has(TaskId id) const { return id.index() < stamp_.size() && stamp_[id.index()] == epoch_; }

 private:
  std::vector<std::uint32_t> stamp_;
  std::uint32_t epoch_ = 1;
};

ShapeId shape_of(const Cluster& cluster, JobId job, int group);

// All members without a place, by group and rank. A rank whose task is still leaving is not
// waiting, unless `evicted` (may be null) says that it was evicted in the trial at hand.
std::vector<Member> waiting_members(const Cluster& cluster, JobId job, const TaskMarks* evicted);

// The members that have to be placed together next; empty if there are none.
std::vector<Member> next_members(const Cluster& cluster, JobId job, const TaskMarks* evicted);
// Those of a job of which nothing runs yet.
std::vector<Member> first_members(const JobShape& shape);

// Whether enough members are there (running or waiting) for every minimum.
bool is_ready(const Cluster& cluster, JobId job, const TaskMarks* evicted = nullptr);

// Nothing runs below its minimum; and: something runs above it.
enum class Fill : std::uint8_t { BelowMin, AtMin, AboveMin };
// Tasks in `gone` (may be null) don't count.
Fill fill_of(const Cluster& cluster, JobId job, const TaskMarks* gone);

// The tasks that leave next, as one unit: last to leave first. Tasks in `taken` (may be null) count
// as gone already.
std::vector<TaskId> next_to_leave(const Cluster& cluster, JobId job, const TaskMarks* taken);

}  // namespace gs
