#include "cycle/cycle.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "cycle/stay.hpp"
#include "queue/members.hpp"

namespace gs {

const std::vector<Phase>& phases() {
  static const std::vector<Phase> all = {
      {"recover", run_recover, "re-place what stands on broken ground"},
      {"nominated", run_nominated, "start what was promised room that is free now"},
      {"allocate", run_allocate, "start, in order, whatever fits"},
      {"refine", run_refine, "place gangs that start together together"},
      {"backfill", run_backfill,
       "reserve for those that wait, run others where they don't delay them"},
      {"consolidate", run_consolidate, "move what is movable so that a waiting job fits"},
      {"reclaim", run_reclaim, "tenants over their share give back"},
      {"preempt", run_preempt, "lower priorities of a tenant make room for higher ones"},
  };
  return all;
}

Cycle::Cycle(Cluster& cluster, const Config& config, Placer& placer, Queue& queue)
    : cluster_(cluster), config_(config), placer_(placer), queue_(queue) {}

bool Cycle::enabled(const Phase& phase) const {
  const std::string name = phase.name;
  if (name == "consolidate" && !config_.consolidation) return false;
  if (name == "refine" && config_.gang_layout != GangLayout::LeastHarm) return false;
  if (name == "reclaim" && !config_.reclaim) return false;
  if (name == "preempt" && !config_.preemption) return false;
  return true;
}

namespace {

std::vector<const Phase*> plan_of(const Config& config) {
  std::vector<const Phase*> plan;
  if (config.phases.empty())
    for (const Phase& phase : phases()) plan.push_back(&phase);
  for (const std::string& name : config.phases)
    for (const Phase& phase : phases())
      if (name == phase.name) plan.push_back(&phase);
  return plan;
}

PhaseCount count_of(const char* phase, const std::vector<Decision>& decisions, std::size_t from) {
  PhaseCount count{phase, 0, 0, 0};
  for (std::size_t i = from; i < decisions.size(); ++i) {
    count.started += decisions[i].kind == Decision::Kind::Start ? 1 : 0;
    count.nominated += decisions[i].kind == Decision::Kind::Nominate ? 1 : 0;
    count.evicted += decisions[i].kind == Decision::Kind::Evict ? 1 : 0;
  }
  return count;
}

using MemberKey = std::tuple<JobId, int, int>;

MemberKey key_of(const Decision& d) { return {d.job, d.group, d.rank}; }

void erase_marked(std::vector<Decision>& decisions, const std::vector<bool>& gone) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < decisions.size(); ++i)
    if (!gone[i]) decisions[kept++] = decisions[i];
  decisions.resize(kept);
}

// The rest of the gang waits with the one that has to.
void hold_starts(CycleContext& context, JobId job) {
  for (Decision& d : context.decisions) {
    if (d.job != job || d.kind != Decision::Kind::Start) continue;
    d.kind = Decision::Kind::Nominate;
    context.cluster.set_task_state(d.task, TaskState::Nominated);
  }
}

// What one phase started and a later one evicted has not started: nobody was told yet. Its place
// is free at once.
bool take_back_starts(CycleContext& context) {
  std::map<MemberKey, std::size_t> started;
  std::vector<bool> gone(context.decisions.size(), false);
  std::vector<JobId> jobs;
  for (std::size_t i = 0; i < context.decisions.size(); ++i) {
    const Decision& d = context.decisions[i];
    if (d.kind == Decision::Kind::Start) started[key_of(d)] = i;
    if (d.kind != Decision::Kind::Evict) continue;
    const auto it = started.find(key_of(d));
    if (it == started.end() || context.decisions[it->second].task != d.task) continue;
    gone[i] = true;
    context.decisions[it->second].kind = Decision::Kind::Drop;  // it may have been promised before
    context.decisions[it->second].for_job = d.for_job;
    started.erase(it);
    context.cluster.remove_task(d.task);
    jobs.push_back(d.job);
  }
  for (const JobId job : jobs) {
    if (fill_of(context.cluster, job, nullptr) != Fill::BelowMin &&
        context.cluster.job(job).nominated_tasks == 0)
      continue;
    hold_starts(context, job);
  }
  for (const JobId job : jobs) context.settle(job);
  erase_marked(context.decisions, gone);
  return !jobs.empty();
}

// The task that has the promise of this decision by now; it may have another number.
TaskId nominated_task(const Cluster& cluster, const Decision& d) {
  for (const TaskId id : cluster.job(d.job).tasks) {
    const Task& task = cluster.task(id);
    if (task.group == d.group && task.rank == d.rank && task.state == TaskState::Nominated)
      return id;
  }
  return d.task;
}

// Jobs whose members lie together of which some left or moved, and others then got a place beside
// those that are left: nobody of them can go back alone.
std::set<JobId> grown_since_it_left(const CycleContext& context) {
  std::set<JobId> left, grown;
  for (const Decision& d : context.decisions) {
    if (d.kind == Decision::Kind::Evict) left.insert(d.job);
    const bool placed = d.kind == Decision::Kind::Start || d.kind == Decision::Kind::Nominate;
    if (placed && !d.moved && left.contains(d.job) &&
        lies_together(context.cluster.shape_of(d.job)))
      grown.insert(d.job);
  }
  return grown;
}

// Whom one plan evicted, the next may have made room for: then it stays after all. Nobody was told
// yet.
void take_back_evictions(CycleContext& context) {
  std::vector<VictimTask> victims;
  std::vector<JobId> gets;
  const std::set<JobId> grown = grown_since_it_left(context);
  for (const Decision& d : context.decisions) {
    if (d.kind == Decision::Kind::Evict && d.for_job != d.job && !grown.contains(d.job))
      victims.push_back({d.task, d.job, d.group, d.rank, {}, {}, false});
    else if (d.kind != Decision::Kind::Drop && !d.moved && (gets.empty() || gets.back() != d.job))
      gets.push_back(d.job);
  }
  if (victims.empty()) return;
  Trial trial(context.cluster);
  (void)let_stay(trial, victims, gets, false);
  trial.keep();
  std::set<MemberKey> stayed;
  for (const VictimTask& task : victims)
    if (context.cluster.task(task.id).state == TaskState::Running)
      stayed.emplace(task.job, task.group, task.rank);
  std::set<JobId> changed;
  for (const VictimTask& task : victims) changed.insert(task.job);
  for (Decision& d : context.decisions)
    if (d.kind == Decision::Kind::Nominate && changed.contains(d.job))
      d.task = nominated_task(context.cluster, d);
  const auto seq = [&](JobId job) { return context.cluster.job(job).seq; };
  std::vector<bool> gone(context.decisions.size(), false);
  for (std::size_t i = 0; i < context.decisions.size(); ++i) {
    const Decision& d = context.decisions[i];
    gone[i] = d.kind != Decision::Kind::Start && stayed.contains(key_of(d));
    if (gone[i]) context.eviction_order.erase(seq(d.job), seq(d.for_job));
  }
  erase_marked(context.decisions, gone);
  for (const Decision& d : context.decisions)  // others of the same job may have left
    if (d.kind == Decision::Kind::Evict && d.for_job != d.job && !d.moved)
      context.eviction_order.note(seq(d.job), seq(d.for_job));
  for (const MemberKey& member : stayed) context.settle(std::get<0>(member));
}

// A promise that was taken back, or kept at once, was not made; who left for it, left for whoever
// has the room in the end.
void forget_promises(std::vector<Decision>& decisions) {
  std::map<MemberKey, std::size_t> promised;
  std::map<MemberKey, Decision> dropped;  // the last promise taken back
  std::map<JobId, JobId> taken_over;      // whose promise went to whom
  std::vector<bool> gone(decisions.size(), false);
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const Decision& d = decisions[i];
    if (d.kind == Decision::Kind::Nominate) promised[key_of(d)] = i;
    const auto it = promised.find(key_of(d));
    if (it == promised.end() || it->second == i) continue;
    gone[it->second] = true;
    promised.erase(it);
    if (d.kind != Decision::Kind::Drop) continue;
    gone[i] = true;
    taken_over[d.job] = d.for_job;
    dropped[key_of(d)] = d;
  }
  erase_marked(decisions, gone);
  std::set<JobId> placed;
  std::set<MemberKey> has_place;
  for (const Decision& d : decisions)
    if (d.kind == Decision::Kind::Start || d.kind == Decision::Kind::Nominate) {
      placed.insert(d.job);
      has_place.insert(key_of(d));
    }
  for (Decision& d : decisions) {
    if (d.kind != Decision::Kind::Evict) continue;
    d.moved = has_place.contains(key_of(d));
    if (const auto it = dropped.find(key_of(d)); it != dropped.end() && !d.moved) {
      d.for_job = it->second.for_job;  // it would have moved, but for this one
      d.phase = it->second.phase;
    }
    for (std::size_t n = 0; n < taken_over.size() && placed.count(d.for_job) == 0; ++n)
      if (const auto it = taken_over.find(d.for_job); it != taken_over.end())
        d.for_job = it->second;
  }
}

}  // namespace

std::vector<Decision> Cycle::run(Instant now) {
  decay_usage(cluster_, config_.usage_half_life, now);
  shares_.compute(cluster_, {queue_.demand(), config_.usage_half_life, now});
  CycleContext context{cluster_, config_,       placer_,   queue_,          shares_, nominated_,
                       broken_,  reservations_, searched_, eviction_order_, plans_,  now};
  counts_.clear();
  for (const Phase* phase : plan_of(config_)) {
    if (!enabled(*phase)) continue;
    const std::size_t before = context.decisions.size();
    context.phase = phase->name;
    phase->run(context);
    counts_.push_back(count_of(phase->name, context.decisions, before));
    if (verify_) cluster_.verify();
  }
  take_back_evictions(context);
  if (take_back_starts(context)) {
    context.unsettled = true;
    context.phase = "nominated";
    run_nominated(context);
  }
  forget_promises(context.decisions);
  unsettled_ = context.unsettled;
  reasons_ = std::move(context.reasons);
  return std::move(context.decisions);
}

}  // namespace gs
