// backfill: the first jobs that can't start get a reservation; those behind them start only where
// they delay none of these.
#include "cycle/cycle.hpp"
#include "cycle/reservations.hpp"
#include "queue/job_order.hpp"

namespace gs {
namespace {

// Twins that differ only in how long they run: past so many of a lane that a reservation keeps
// waiting, a shorter one further back is not looked for.
constexpr int kTriesBehindReservations = 64;

}  // namespace

void run_backfill(CycleContext& context) {
  context.reservations.clear();
  context.searched.clear();
  if (context.config.reservations == 0) {
    context.plans.clear();
    return;
  }
  Reservations reserved(context);
  int searches = 0;
  std::map<LaneId, int> tries;
  JobOrder order(context.cluster, context.shares, context.queue, context.config, {});
  for (JobId job = order.next(); job.valid(); job = order.next()) {
    if (!is_ready(context.cluster, job)) continue;
    const std::vector<Member> members = next_members(context.cluster, job, nullptr);
    Trial trial(context.cluster);
    const Reservations::Behind behind = reserved.place_behind(trial, job, members);
    if (behind.attempt.placed) {
      wait_as_one(trial, job, 0);
      context.keep(trial, job);
      order.handled();
      if (context.queue.contains(job)) order.put_back(job);
      continue;
    }
    if (!order.lane().valid()) continue;  // only wants to grow
    context.reasons.try_emplace(order.lane(), behind.attempt.reason);
    if (behind.attempt.reason.constraint == Constraint::Quota) continue;
    if (searches < context.config.reservations) {
      ++searches;
      context.searched.insert(job);
      reserved.reserve(job, members);
      order.passed(job);
    } else if (behind.only_holds && ++tries[order.lane()] < kTriesBehindReservations) {
      order.passed(job);
    }
  }
  context.plans = reserved.plans();
}

}  // namespace gs
