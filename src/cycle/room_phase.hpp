// What consolidate, reclaim and preempt have in common: the walk over the queue, the pool of
// victims, and keeping both up to date.
#pragma once

#include <optional>
#include <vector>

#include "cycle/make_room.hpp"
#include "cycle/victims.hpp"
#include "queue/job_order.hpp"

namespace gs {

class RoomPhase {
 public:
  RoomPhase(CycleContext& context, JobOrder::Filter filter);

  // The next job for which room could be made; invalid at the end. Each lane is tried until one
  // of its jobs fails.
  JobId next();
  // Searches, and keeps the plan it finds.
  void make_room(const RoomAsk& ask, const UnitStream::Ask& victims);

  // Plans simulated so far, for all jobs together.
  int simulations() const { return simulations_; }

  bool may_evict_others(JobId job) const;
  Amounts amounts_of(JobId job, const std::vector<Member>& members, std::size_t count) const;
  Usage least_usage_of(JobId job, const std::vector<Member>& members) const;
  // Whether the GPUs that are free anywhere add up to what the members need.
  bool enough_free_gpus(JobId job, const std::vector<Member>& members) const;

 private:
  CycleContext& context_;
  JobOrder order_;
  VictimPool pool_;
  int simulations_ = 0;
};

}  // namespace gs
