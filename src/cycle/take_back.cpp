#include "cycle/take_back.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "cycle/exchange.hpp"
#include "cycle/stay.hpp"
#include "queue/members.hpp"

namespace gs {
namespace {

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

}  // namespace

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

namespace {

// A place that was given, and has not been taken away again since.
bool still_has(const Cluster& cluster, const Decision& d) {
  if (d.kind != Decision::Kind::Start && d.kind != Decision::Kind::Nominate) return false;
  const Task& task = cluster.task(d.task);
  return task.job == d.job && task.group == d.group && task.rank == d.rank &&
         task.state != TaskState::Releasing;
}

// Jobs whose members lie together of which some left or moved, and others then got a place beside
// those that are left: nobody of them can go back alone.
std::set<JobId> grown_since_it_left(const CycleContext& context) {
  std::set<JobId> left, grown;
  for (const Decision& d : context.decisions) {
    if (d.kind == Decision::Kind::Evict) left.insert(d.job);
    if (still_has(context.cluster, d) && !d.moved && left.contains(d.job) &&
        lies_together(context.cluster.shape_of(d.job)))
      grown.insert(d.job);
  }
  return grown;
}

bool is_same_place(const Allocation& a, const Allocation& b) {
  return a.node == b.node && a.gpus == b.gpus &&
         std::equal(a.mig.begin(), a.mig.end(), b.mig.begin(), b.mig.end(),
                    [](const MigPick& x, const MigPick& y) {
                      return x.gpu == y.gpu && x.start == y.start && x.profile == y.profile;
                    });
}

// Who left in this cycle for somebody else. With those who had to stop, the members of their jobs
// that gave up a promise of an earlier cycle: without it the others could not run on.
std::vector<VictimTask> who_left(const CycleContext& context) {
  const std::set<JobId> grown = grown_since_it_left(context);
  std::set<JobId> stopped, gave_up;
  for (const Decision& d : context.decisions) {
    if (d.promise) gave_up.insert(d.job);
    if (d.kind == Decision::Kind::Evict && d.for_job != d.job && !grown.contains(d.job))
      stopped.insert(d.job);
  }
  std::vector<VictimTask> victims;
  std::set<MemberKey> seen;
  for (const Decision& d : context.decisions) {
    const bool first = gave_up.contains(d.job) && seen.insert(key_of(d)).second;
    if (d.for_job == d.job || !stopped.contains(d.job)) continue;
    VictimTask task{d.task, d.job, d.group, d.rank, {}, {}, d.promise};
    const bool lost = d.promise && first && is_lost(context.cluster, task);
    if (d.kind == Decision::Kind::Evict || lost) victims.push_back(std::move(task));
  }
  return victims;
}

// Has to stop, or gave a promise up, for somebody else, and has no other place.
bool left(const Cluster& cluster, const Decision& d) {
  if (d.for_job == d.job) return false;
  if (d.kind == Decision::Kind::Evict) return !d.moved;
  return d.kind == Decision::Kind::Drop &&
         !place_of(cluster, d.job, d.group, d.rank, TaskState::Nominated).valid() &&
         !place_of(cluster, d.job, d.group, d.rank, TaskState::Running).valid();
}

struct Stayed {
  std::set<MemberKey> members;  // run on, or have the promise back that they gave up
  std::set<MemberKey> renewed;  // have another promise on the same node instead
};

Stayed who_stayed(const Cluster& cluster, const std::vector<VictimTask>& victims) {
  Stayed stayed;
  for (const VictimTask& task : victims) {
    const MemberKey member{task.job, task.group, task.rank};
    if (!task.promise) {
      if (cluster.task(task.id).state == TaskState::Running) stayed.members.insert(member);
      continue;
    }
    const TaskId promise = place_of(cluster, task, TaskState::Nominated);
    if (!promise.valid()) continue;
    const bool same = is_same_place(cluster.task(promise).place, task.promise->place);
    (same ? stayed.members : stayed.renewed).insert(member);
  }
  return stayed;
}

}  // namespace

void take_back_evictions(CycleContext& context) {
  const std::vector<VictimTask> victims = who_left(context);
  if (victims.empty()) return;
  std::vector<JobId> gets;
  for (const Decision& d : context.decisions)
    if ((d.kind == Decision::Kind::Start || d.kind == Decision::Kind::Nominate) && !d.moved &&
        (gets.empty() || gets.back() != d.job))
      gets.push_back(d.job);
  Trial trial(context.cluster);
  (void)let_stay(trial, victims, gets, false);
  trial.keep();
  Stayed stayed = who_stayed(context.cluster, victims);
  std::set<JobId> changed;
  for (const VictimTask& task : victims) changed.insert(task.job);
  for (Decision& d : context.decisions) {
    const bool nominated = d.kind == Decision::Kind::Nominate;
    if (nominated ? still_has(context.cluster, d) : d.promise == nullptr) continue;
    const TaskId promise = place_of(context.cluster, d.job, d.group, d.rank, TaskState::Nominated);
    if (!promise.valid()) continue;
    if (d.promise && stayed.renewed.erase(key_of(d)) > 0)
      d = {Decision::Kind::Nominate, promise, d.job, d.group, d.rank, d.job, d.phase};
    if (d.kind == Decision::Kind::Nominate) d.task = promise;  // it may have another number now
  }
  const auto seq = [&](JobId job) { return context.cluster.job(job).seq; };
  std::vector<bool> gone(context.decisions.size(), false);
  for (std::size_t i = 0; i < context.decisions.size(); ++i) {
    const Decision& d = context.decisions[i];
    gone[i] = d.kind != Decision::Kind::Start && stayed.members.contains(key_of(d));
    if (gone[i]) context.eviction_order.erase(seq(d.job), seq(d.for_job));
  }
  erase_marked(context.decisions, gone);
  for (const Decision& d : context.decisions)  // others of the same job may have left
    if (left(context.cluster, d)) context.eviction_order.note(seq(d.job), seq(d.for_job));
  for (const JobId job : changed) context.settle(job);
}

void forget_promises(CycleContext& context) {
  std::vector<Decision>& decisions = context.decisions;
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
    // The order knows it only through those whose promises went on, and they may end first.
    if (!d.moved && d.for_job != d.job)
      context.eviction_order.note(context.cluster.job(d.job).seq,
                                  context.cluster.job(d.for_job).seq);
  }
}

}  // namespace gs
