// allocate: in order, whatever fits on what is free or being freed. With reservations it ends at
// the first job that has to wait for room.
#include "cycle/attempt.hpp"
#include "cycle/cycle.hpp"
#include "queue/job_order.hpp"

namespace gs {

void run_allocate(CycleContext& context) {
  JobOrder order(context.cluster, context.shares, context.queue, context.config, {});
  for (JobId job = order.next(); job.valid(); job = order.next()) {
    if (!is_ready(context.cluster, job)) continue;
    Trial trial(context.cluster);
    const Attempt result = attempt(context, trial, job, next_members(context.cluster, job, nullptr),
                                   Firmness::StartOrNominate, nullptr);
    // A search that is not exhaustive may miss what an earlier one has found.
    const bool placed =
        result.placed || place_as_planned(context, trial, job,
                                          next_members(context.cluster, job, nullptr), View::Now);
    if (!placed) {
      if (!order.lane().valid()) continue;  // it only wanted to grow
      context.reasons[order.lane()] = result.reason;
      // From here on jobs may only start behind reservations: backfill's business.
      if (context.config.reservations > 0 && result.reason.constraint != Constraint::Quota) return;
      continue;
    }
    wait_as_one(trial, job, 0);
    context.keep(trial, job);
    order.handled();
    if (context.queue.contains(job)) order.put_back(job);
  }
}

}  // namespace gs
