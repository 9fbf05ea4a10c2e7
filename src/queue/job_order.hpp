// JobOrder: one walk over the queue. Each job is handed out once, unless it is put back to grow.
// A lane whose head failed is left out for the rest of the walk: what held for the head holds for
// its twins.
#pragma once

#include "model/config.hpp"
#include "queue/order_tree.hpp"
#include "queue/queue.hpp"

namespace gs {

class JobOrder {
 public:
  struct Filter {
    bool only_preemptible = false;
  };
  JobOrder(const Cluster& cluster, const FairShares& shares, const Queue& queue,
           const Config& config, Filter filter);
  JobOrder(const JobOrder&) = delete;
  JobOrder& operator=(const JobOrder&) = delete;

  // The next job by what the books say now; invalid at the end.
  JobId next();
  // Of the job that next() gave last; invalid if it grows.
  LaneId lane() const { return lane_; }
  // That job has left the queue; its lane goes on with the one behind it. Without this call the
  // lane is left out.
  void handled();
  // That job stays in the queue without a start; its lane goes on with the one behind it.
  void passed(JobId job);
  // A job that has started (or grown) and can still grow.
  void put_back(JobId job);
  // Tenants hold something else now: somebody was evicted.
  void refresh() { tree_.refresh(); }

 private:
  // Null: nobody is left in the lane.
  void add(LaneId lane, const Line::Entry* entry, const Amounts& amounts);
  const Amounts& first_amounts(JobShapeId shape);

  const Cluster& cluster_;
  const Queue& queue_;
  double aging_;
  TenantOrder tenants_;
  OrderTree tree_;
  std::unordered_map<std::uint32_t, Amounts> amounts_;  // by JobShape
  OrderTree::Head last_;                                // what next() gave
  LaneId lane_;
};

}  // namespace gs
