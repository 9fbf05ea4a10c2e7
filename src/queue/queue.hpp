// Queue: the jobs that wait, and those that run but could still grow.
//
// A job's place in the order is a constant: priority - aging rate x time of submission. Waiting
// never changes the relative order of two jobs, so nothing is ever sorted anew. Jobs that are alike
// (same tenant, shape, priority and rights) stand in one lane, first come first served; what is
// found out about the head of a lane holds for the whole lane.
//
// Invariants: entries of a lane are sorted by (submitted, seq); a job is in at most one place;
// `size()` counts the live entries. A cancelled job's entry stays as a tombstone until the head of
// its lane reaches it, so cancelling costs O(1).
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/ids.hpp"
#include "cluster/cluster.hpp"
#include "queue/amounts.hpp"

namespace gs {

using LaneId = Id<struct LaneTag>;

// Higher comes first. Exact for any submission time: priority points scaled to integers.
std::int64_t order_key(int priority, Instant submitted, double aging_per_hour);

class Queue {
 public:
  struct Entry {
    JobId job;
    std::uint32_t ticket = 0;  // matches tickets_[job] as long as it is live
    Instant submitted;
    std::uint64_t seq = 0;
  };
  struct Lane {
    TenantId tenant;
    JobShapeId shape;
    int priority = 0;
    bool preemptible = true;
    bool can_preempt_others = true;
    std::vector<Entry> entries;
    std::size_t head = 0;  // entries before it are gone
    std::size_t live = 0;
  };

  explicit Queue(const Cluster& cluster) : cluster_(cluster) {}

  // A job without tasks goes to its lane; one that runs and has members missing may grow.
  void push(JobId job);
  void erase(JobId job);  // no-op if it is not here
  bool contains(JobId job) const;
  // The first of the lane, or none; tombstones on the way are cleared away.
  JobId head(LaneId lane);
  JobId after(LaneId lane, JobId job) const;  // the next one behind it, or none
  LaneId lane_of(JobId job) const;            // invalid if it is not in a lane

  std::size_t size() const { return size_; }
  std::size_t lane_count() const { return lanes_.size(); }
  const Lane& lane(LaneId id) const { return lanes_[id.index()]; }
  const std::vector<LaneId>& lanes_of(TenantId tenant) const;
  const std::set<std::pair<std::uint64_t, JobId>>& growing() const { return growing_; }
  // The first `count` live jobs of a lane, in order (for lists and tests).
  std::vector<JobId> first(LaneId lane, std::size_t count) const;

  // What the jobs of each tenant wait for, counted with the smallest GPU that there is.
  std::vector<Amounts> demand() const;

 private:
  struct Key {
    TenantId tenant;
    JobShapeId shape;
    int priority;
    std::uint8_t rights;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  struct Place {
    LaneId lane;  // invalid: not in a lane
    std::uint32_t ticket = 0;
    bool grows = false;
  };
  LaneId lane_for(const JobRecord& record);
  bool is_live(const Entry& entry) const {
    return places_[entry.job.index()].ticket == entry.ticket;
  }

  const Cluster& cluster_;
  std::vector<Lane> lanes_;
  std::unordered_map<Key, LaneId, KeyHash> lane_by_key_;
  std::vector<std::vector<LaneId>> by_tenant_;
  std::vector<Place> places_;                          // by job
  std::set<std::pair<std::uint64_t, JobId>> growing_;  // by seq
  std::uint32_t next_ticket_ = 1;
  std::size_t size_ = 0;
};

}  // namespace gs
