// A dry run: the phases that could start one job, on the real books, undone afterwards.
//
// The job stands alone in a queue of its own, behind the reservations of the last cycle, so the
// answer is what the next cycle would do for it if nothing else happened.
#include "cycle/cycle.hpp"
#include "cycle/reservations.hpp"
#include "queue/job_order.hpp"
#include "queue/members.hpp"

namespace gs {
namespace {

constexpr int kForecastsBefore = 16;  // each is a search of its own

}  // namespace

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

// Those that wait for a quota hold no room, so a cycle makes no reservations for them. Here those
// before the job get one each, as they will use the quota first.
std::optional<Instant> Cycle::forecast(JobId job, Instant now) {
  FairShares shares;
  shares.compute(cluster_, {queue_.demand(), config_.usage_half_life, now});
  std::vector<JobId> nominated;
  std::set<std::pair<std::uint64_t, JobId>> broken;
  std::vector<Reservation> reservations;
  std::set<JobId> searched;
  Plans plans = plans_;
  CycleContext context{cluster_, config_,      placer_,  queue_,          shares, nominated,
                       broken,   reservations, searched, eviction_order_, plans,  now};
  Reservations before(context);
  for (const Reservation& made : reservations_)
    before.reserve(made.job, next_members(cluster_, made.job, nullptr));
  JobOrder order(cluster_, shares, queue_, config_, {});
  int count = 0;
  for (JobId next = order.next(); next.valid(); next = order.next()) {
    const auto reason = reasons_.find(order.lane());
    if (reason == reasons_.end() || reason->second.constraint != Constraint::Quota) continue;
    const bool found = before.reserve(next, next_members(cluster_, next, nullptr));
    if (next == job) return found ? std::optional(reservations.back().start) : std::nullopt;
    if (++count == kForecastsBefore) break;
    order.passed(next);
  }
  return std::nullopt;
}

}  // namespace gs
