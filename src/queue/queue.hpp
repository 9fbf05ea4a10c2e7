// Queue: the jobs that wait, and those that run but could still grow.
//
// A job's place in the order is a constant: priority - aging rate x time of submission. Waiting
// never changes the relative order of two jobs, so nothing is ever sorted anew. Jobs that are alike
// (same tenant, shape, priority and rights) stand in one lane, first come first served; what is
// found out about the head of a lane holds for the whole lane.
//
// Invariants: a job is in at most one place; `size()` counts them all; `busy()` are the lanes in
// which somebody waits, so what a walk costs does not grow with lanes that were used once.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "base/ids.hpp"
#include "cluster/cluster.hpp"
#include "queue/amounts.hpp"
#include "queue/lane_index.hpp"
#include "queue/line.hpp"

namespace gs {

// Higher comes first. Exact for any submission time: priority points scaled to integers.
std::int64_t order_key(int priority, Instant submitted, double aging_per_hour);

class Queue {
 public:
  struct alignas(64) Lane {  // all that a push needs, in one cache line
    TenantId tenant;
    JobShapeId shape;
    int priority = 0;
    bool preemptible = true;
    bool can_preempt_others = true;
    std::uint32_t busy_at = 0;  // its place in busy(), if somebody waits
    Line line;
  };

  explicit Queue(const Cluster& cluster) : cluster_(cluster) {}

  // A job without tasks goes to its lane; one that runs and has members missing may grow.
  void push(JobId job);
  void erase(JobId job);  // no-op if it is not here
  bool contains(JobId job) const;
  LaneId lane_of(JobId job) const;  // invalid if it is not in a lane

  std::size_t size() const { return size_; }
  const std::vector<LaneId>& busy() const { return busy_; }  // in no order that means anything
  const Lane& lane(LaneId id) const { return lanes_[id.index()]; }
  const std::set<std::pair<std::uint64_t, JobId>>& growing() const { return growing_; }

  // What the jobs of each tenant wait for, counted with the smallest GPU that there is.
  std::vector<Amounts> demand() const;

 private:
  // Where a job is: nowhere, in a lane, or among those that grow. Small, since it is what a
  // million jobs are looked up in.
  static constexpr LaneId kNowhere{};
  static constexpr LaneId kGrowing{LaneId::kNone - 1};
  LaneId place_of(JobId job) const {
    return job.index() < places_.size() ? places_[job.index()] : kNowhere;
  }
  LaneId lane_for(const JobRecord& record);
  void now_busy(LaneId id);
  void now_empty(LaneId id);

  const Cluster& cluster_;
  std::vector<Lane> lanes_;
  std::vector<LaneId> busy_;
  LaneIndex lane_index_;
  std::vector<LaneId> places_;                         // by job
  std::set<std::pair<std::uint64_t, JobId>> growing_;  // by seq
  std::size_t size_ = 0;
};

}  // namespace gs
