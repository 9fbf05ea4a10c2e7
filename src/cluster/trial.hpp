// Trial: a tentative change to the Cluster. Whatever was not kept is undone when it ends, so a
// decision can try on the real books and simply walk away.
#pragma once

#include <cstddef>
#include <vector>

#include "cluster/cluster.hpp"

namespace gs {

class Trial {
 public:
  enum class Kind : std::uint8_t { Placed, Released, Spared, Held, Started, Dropped };
  struct Change {
    Kind kind;
    TaskId task;
    Task before;                   // Dropped: the task as it was
    std::vector<MigGpuState> mig;  // Placed, Dropped with MIG: the node's MIG state as it was
  };

  explicit Trial(Cluster& cluster) : cluster_(cluster) {}
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial() { rollback(0); }

  Cluster& cluster() { return cluster_; }
  const Cluster& cluster() const { return cluster_; }
  TaskId place(JobId job, int group, int rank, const Allocation& place, TaskState state,
               Instant now);
  void evict(TaskId task);  // Running -> Releasing
  void spare(TaskId task);  // evicted in this Trial, runs on after all
  void hold(TaskId task);  // started in this Trial, but the rest of its gang has to wait: Nominated
  void start(TaskId task);  // a Nominated task whose room is free now: Running
  void drop(TaskId task);   // a Nominated task gives its place up

  std::size_t mark() const { return changes_.size(); }
  void rollback(std::size_t mark);
  // The changes stay; returns them in order, and the Trial is empty again.
  std::vector<Change> keep();
  // Takes over changes that another Trial has kept, to undo them with its own.
  void adopt(std::vector<Change> changes);
  const std::vector<Change>& changes() const { return changes_; }

 private:
  Cluster& cluster_;
  std::vector<Change> changes_;
};

}  // namespace gs
