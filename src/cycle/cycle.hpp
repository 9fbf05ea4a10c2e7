// Cycle: one scheduling round. A list of phases, each run through one wrapper that names it, can
// switch it off and checks the books after it.
//
// A phase tries in Trials and keeps what works; what was kept becomes a Decision. Between two
// decisions the books are always consistent, so a cycle may stop after any phase.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/ids.hpp"
#include "cluster/trial.hpp"
#include "cycle/eviction_order.hpp"
#include "model/config.hpp"
#include "model/why.hpp"
#include "placement/place.hpp"
#include "queue/fair_share.hpp"
#include "queue/queue.hpp"

namespace gs {

// What happened to one task, in the order in which it was decided. A task that was moved is evicted
// here and nominated there; both carry `moved`.
struct Decision {
  enum class Kind : std::uint8_t {
    Start,     // runs now
    Nominate,  // has a place, and waits until it is free
    Evict,     // has to stop
    Drop,      // was nominated in an earlier cycle and gives its place up
  };
  Kind kind = Kind::Start;
  TaskId task;  // Drop: its number is free already
  JobId job;
  int group = 0;
  int rank = 0;
  JobId for_job;           // Evict, Drop: who gets the room; Start, Nominate: the job itself
  const char* phase = "";  // static string
  bool moved = false;
  std::shared_ptr<const Task> promise = {};  // Drop: what it gave up
};

// Why the jobs of a lane (same tenant, shape and priority) wait, as far as a cycle has to know;
// the rest of the explanation is worked out for those who ask.
struct WaitReason {
  Constraint constraint = Constraint::Capacity;
  std::optional<QuotaState> quota;
};

// A job that can't start now, and when and where it will.
struct Reservation {
  JobId job;
  Instant start;
  std::vector<std::string> nodes;
};

// Where a reserved job will lie. The next cycle keeps to it if it can't do better: otherwise what
// starts behind a reservation could push it back by making another place look nicer.
struct Plan {
  struct Place {
    int group = 0, rank = 0;
    Allocation place;
  };
  Instant start;
  std::vector<Place> places;
};
using Plans = std::map<std::uint64_t, Plan>;  // by JobRecord::seq

struct CycleContext {
  Cluster& cluster;
  const Config& config;
  Placer& placer;
  Queue& queue;
  FairShares& shares;             // of the start of this cycle
  std::vector<JobId>& nominated;  // jobs with a nominated task, by seq; phases keep it up to date
  std::set<std::pair<std::uint64_t, JobId>>& broken;  // jobs that lost members, by seq
  std::vector<Reservation>& reservations;             // of this cycle, in order
  std::set<JobId>& searched;                          // jobs for which a reservation was looked for
  EvictionOrder& eviction_order;                      // who may not evict whom any more
  Plans& plans;                                       // of the reservations of the last cycle
  Instant now;
  std::vector<Decision> decisions = {};
  std::map<LaneId, WaitReason> reasons = {};
  std::unordered_map<JobId, int> evicted = {};  // tasks of each job, this cycle
  std::unordered_set<JobId> evictors = {};  // jobs for which somebody lost its place, this cycle
  bool unsettled = false;                   // there is something to do at once, in another round
  const char* phase = "";
  Trial* undo = nullptr;  // a dry run: what is kept is kept only until this ends

  // Keeps the trial and writes down its decisions. Jobs that have all they can get leave the
  // queue; those that can still grow stay in it.
  void keep(Trial& trial, JobId for_job);
  // Puts the job where it belongs after its tasks have changed: queue and `nominated`.
  void settle(JobId job);
};

using PhaseFunction = void (*)(CycleContext&);

struct Phase {
  const char* name;
  PhaseFunction run;
  const char* help;
};

// All phases there are, in default order.
const std::vector<Phase>& phases();

struct PhaseCount {
  const char* phase;
  int started = 0, nominated = 0, evicted = 0;
};

// What a dry run of one job came to. Looked at while the tentative changes stand.
struct DryOutcome {
  const std::vector<Decision>& decisions;
  bool starts_now = false;
  WaitReason reason;
  std::optional<Reservation> reservation;
};

class Cycle {
 public:
  Cycle(Cluster& cluster, const Config& config, Placer& placer, Queue& queue);

  // One round. The decisions are in the order in which they have to leave.
  std::vector<Decision> run(Instant now);

  // Would this job (waiting, in no queue yet) start, at whose expense, or when? Nothing is changed.
  void dry_run(JobId job, Instant now, const std::function<void(const DryOutcome&)>& look);

  // When a job that waits for its tenant's quota will start, if what runs and waits before it takes
  // as long as it says; nothing: no end that is known helps, or too many are before it.
  std::optional<Instant> forecast(JobId job, Instant now);

  const std::map<LaneId, WaitReason>& reasons() const { return reasons_; }
  const std::vector<PhaseCount>& counts() const { return counts_; }
  const FairShares& shares() const { return shares_; }
  // Jobs with nominated tasks, by seq. The caller adds jobs nominated outside a cycle (a restored
  // snapshot).
  std::vector<JobId>& nominated() { return nominated_; }
  // Jobs that lost members since the last cycle, by seq: the caller adds them, recover mends them.
  std::set<std::pair<std::uint64_t, JobId>>& broken() { return broken_; }
  const std::set<std::pair<std::uint64_t, JobId>>& broken() const { return broken_; }
  const std::vector<Reservation>& reservations() const { return reservations_; }
  const Plans& plans() const { return plans_; }
  // What a job waited for, and its reservation, come back from a snapshot.
  void restore_wait(LaneId lane, WaitReason reason) { reasons_.emplace(lane, std::move(reason)); }
  void restore_search(JobId job) { searched_.insert(job); }
  void restore_reservation(Reservation reservation, std::uint64_t seq, Plan plan) {
    reservations_.push_back(std::move(reservation));
    if (!plan.places.empty()) plans_[seq] = std::move(plan);
  }
  // Whether a reservation was looked for: then having none means that no known end helps.
  bool searched(JobId job) const { return searched_.contains(job); }
  // The last round took something back that it had started, or left something to mend.
  bool unsettled() const { return unsettled_; }
  EvictionOrder& eviction_order() { return eviction_order_; }
  const EvictionOrder& eviction_order() const { return eviction_order_; }
  void verify_after_phases(bool on) { verify_ = on; }

 private:
  bool enabled(const Phase& phase) const;

  Cluster& cluster_;
  const Config& config_;
  Placer& placer_;
  Queue& queue_;
  FairShares shares_;
  std::vector<JobId> nominated_;
  std::set<std::pair<std::uint64_t, JobId>> broken_;
  std::vector<Reservation> reservations_;
  std::set<JobId> searched_;
  EvictionOrder eviction_order_;
  Plans plans_;
  std::map<LaneId, WaitReason> reasons_;
  std::vector<PhaseCount> counts_;
  bool verify_ = false;
  bool unsettled_ = false;
};

// The phases, one file each.
void run_recover(CycleContext& context);
void run_nominated(CycleContext& context);
void run_allocate(CycleContext& context);
void run_refine(CycleContext& context);
void run_backfill(CycleContext& context);
void run_consolidate(CycleContext& context);
void run_reclaim(CycleContext& context);
void run_preempt(CycleContext& context);

}  // namespace gs
