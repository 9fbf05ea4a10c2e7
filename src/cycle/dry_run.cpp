// A dry run: the phases that could start one job, on the real books, undone afterwards.
//
// The job stands alone in a queue of its own, behind the reservations of the last cycle, so the
// answer is what the next cycle would do for it if nothing else happened.
#include "cycle/cycle.hpp"
#include "cycle/reservations.hpp"
#include "queue/members.hpp"

namespace gs {

void Cycle::dry_run(JobId job, Instant now, const std::function<void(const DryOutcome&)>& look) {
  queue_.push(job);
  FairShares shares;
  shares.compute(cluster_, {queue_.demand(), config_.usage_half_life, now});
  queue_.erase(job);

  Queue alone(cluster_);
  alone.push(job);
  std::vector<JobId> nominated;
  std::set<std::pair<std::uint64_t, JobId>> broken;
  std::vector<Reservation> reservations;
  std::set<JobId> searched;
  Trial undo(cluster_);
  Plans plans = plans_;
  CycleContext context{cluster_, config_,      placer_,  alone,           shares, nominated,
                       broken,   reservations, searched, eviction_order_, plans,  now};
  context.phase = "dry-run";
  context.undo = &undo;
  const std::vector<Member> members = next_members(cluster_, job, nullptr);
  WaitReason reason;
  std::optional<Reservation> start;
  {
    Reservations before(context);
    for (const Reservation& made : reservations_)
      before.reserve(made.job, next_members(cluster_, made.job, nullptr));
    Trial trial(cluster_);
    const Reservations::Behind behind = before.place_behind(trial, job, members);
    if (behind.attempt.placed) {
      wait_as_one(trial, job, 0);
      context.keep(trial, job);
    } else {
      reason = behind.attempt.reason;
      if (before.reserve(job, members)) start = reservations.back();
    }
  }
  for (const Phase& phase : phases()) {
    const bool makes_room =
        phase.run == run_consolidate || phase.run == run_reclaim || phase.run == run_preempt;
    if (!makes_room || !enabled(phase) || !context.decisions.empty()) continue;
    context.phase = phase.name;
    phase.run(context);
  }
  const bool starts = cluster_.job(job).active_tasks > 0 && cluster_.job(job).nominated_tasks == 0;
  look({context.decisions, starts, reason, start});
}

}  // namespace gs
