#include "cycle/simulate.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "cycle/attempt.hpp"
#include "cycle/stay.hpp"
#include "queue/order_tree.hpp"
#include "queue/quota.hpp"

namespace gs {
namespace {

std::uint64_t member_key(JobId job, int group, int rank) {
  return std::uint64_t{job.v} << 32 | static_cast<std::uint64_t>(group) << 20 |
         static_cast<std::uint64_t>(rank);
}

}  // namespace

bool Simulation::run(Trial& trial, const Ask& ask) {
  evicted_.clear();
  needed_.clear();
  left_.clear();
  left_of_.clear();
  hopeless_.clear();
  lost_.clear();
  moved_ = 0;
  victims_ = ask.victims;
  evict(trial, ask);
  if (!serve(trial, ask)) return false;
  let_stay(trial, ask);
  if (!moves_within_limits()) return false;
  take_stock(ask);
  return true;
}

// The books are the same at the beginning of each run.
bool Simulation::over_limit(JobId job) {
  const TenantId tenant = context_.cluster.job(job).tenant;
  const auto [it, added] = over_limit_.try_emplace(tenant, false);
  if (added) it->second = exceeds_now(context_.cluster, tenant);
  return it->second;
}

void Simulation::evict(Trial& trial, const Ask& ask) {
  // Before the books change.
  for (const VictimTask& task : ask.victims) (void)over_limit(task.job);
  for (const VictimTask& task : ask.victims) {
    left_.insert(member_key(task.job, task.group, task.rank));
    ++left_of_[task.job];
    if (task.promise) {
      trial.drop(task.id);
      // If it was to move there, the task that it replaces still leaves; it may move elsewhere.
      for (const TaskId id : context_.cluster.job(task.job).tasks) {
        const Task& old = context_.cluster.task(id);
        if (old.group == task.group && old.rank == task.rank) evicted_.set(id);
      }
      continue;
    }
    trial.evict(task.id);
    evicted_.set(task.id);
  }
}

bool Simulation::serve(Trial& trial, const Ask& ask) {
  const Cluster& cluster = context_.cluster;
  const TenantOrder tenants(cluster, context_.shares, context_.config.tier_step);
  OrderTree order(cluster, tenants, OrderTree::Way::Serve);
  const double aging = context_.config.aging_per_hour;
  Amounts asked{};
  for (const Member& member : ask.members)
    asked = asked + amounts(usage_of(cluster.shapes().at(shape_of(cluster, ask.job, member.group)),
                                     cluster.smallest_gpu_memory_mib()));
  order.add({ask.job, job_key(cluster, ask.job, aging), asked, 0});
  std::unordered_set<JobId> queued{ask.job};
  const auto queue = [&](JobId job) {
    order.add({job, job_key(cluster, job, aging), next_amounts(cluster, job, &evicted_), 0});
  };
  for (const VictimTask& task : ask.victims)
    if (queued.insert(task.job).second) queue(task.job);
  const auto place_job = [&] {
    return attempt(context_, trial, ask.job, ask.members, Firmness::Nominate, ask.among).placed;
  };
  if (ask.job_first && !place_job()) return false;
  while (!order.empty()) {
    const JobId job = order.pop().job;
    if (job == ask.job) {
      if (!ask.job_first && !place_job()) return false;
    } else if (come_back(trial, ask, job)) {
      if (left_of_[job] > 0) queue(job);
    } else if (ask.nobody_lost) {
      return false;
    }
  }
  return true;
}

// Members of a group are alike: instead of one that did not run, one comes back that did.
std::vector<Member> Simulation::those_that_left(JobId job, std::vector<Member> members) const {
  const auto has_left = [&](const Member& m) {
    return left_.contains(member_key(job, m.group, m.rank));
  };
  if (std::all_of(members.begin(), members.end(), has_left)) return members;
  std::set<std::pair<int, int>> open;
  for (const VictimTask& task : victims_)
    if (task.job == job && has_left({task.group, task.rank})) open.emplace(task.group, task.rank);
  std::vector<Member> back, strangers;
  for (const Member& m : members)
    (open.erase({m.group, m.rank}) > 0 ? back : strangers).push_back(m);
  for (const Member& m : strangers) {
    const auto instead = open.lower_bound({m.group, 0});
    if (instead == open.end() || instead->first != m.group) continue;
    back.push_back({instead->first, instead->second});
    open.erase(instead);
  }
  return back;
}

// A job comes back with what it can't run without, and then task by task.
bool Simulation::come_back(Trial& trial, const Ask& ask, JobId job) {
  const JobRecord& record = context_.cluster.job(job);
  const bool fresh = record.active_tasks == 0;
  const std::uint64_t kind = std::uint64_t{record.tenant.v} << 32 | record.shape.v;
  // Room only shrinks while others come back: what its twin did not find, it does not find either.
  if (fresh && hopeless_.count(kind) > 0) return false;
  if (over_limit(job) || !is_ready(context_.cluster, job, &evicted_)) return false;
  const std::vector<Member> members =
      those_that_left(job, next_members(context_.cluster, job, &evicted_));
  if (!attempt(context_, trial, job, members, Firmness::Nominate, ask.among).placed) {
    if (fresh) hopeless_.insert(kind);
    return false;
  }
  for (const Member& m : members) left_.erase(member_key(job, m.group, m.rank));
  left_of_[job] -= static_cast<int>(members.size());
  return true;
}

void Simulation::let_stay(Trial& trial, const Ask& ask) {
  left_.clear();
  for (const VictimTask* task : gs::let_stay(trial, ask.victims, {ask.job}))
    left_.insert(member_key(task->job, task->group, task->rank));
}

// Others may have stayed after a job had found its new place, and that may be a larger GPU.
bool Simulation::moves_within_limits() {
  const Cluster& cluster = context_.cluster;
  JobId last;  // victims of a job mostly stand side by side
  return std::all_of(victims_.begin(), victims_.end(), [&](const VictimTask& victim) {
    const JobRecord& record = cluster.job(victim.job);
    if (victim.job == last || record.nominated_tasks == 0 || over_limit(victim.job)) return true;
    last = victim.job;
    Usage moved;
    std::vector<std::uint32_t> models;
    for (const TaskId id : record.tasks) {
      const Task& task = cluster.task(id);
      if (task.state != TaskState::Nominated) continue;
      moved += cluster.usage(task);
      if (const auto model = model_of(cluster, task)) models.push_back(*model);
    }
    return !exceeded(cluster, record.tenant, record.preemptible, moved, models);
  });
}

void Simulation::take_stock(const Ask& ask) {
  for (const VictimTask& task : ask.victims) {
    if (left_.count(member_key(task.job, task.group, task.rank)) > 0) {
      lost_.push_back(task);
      needed_.set(task.id);
    } else if (task.promise || context_.cluster.task(task.id).state != TaskState::Running) {
      ++moved_;
      needed_.set(task.id);
    }
  }
}

}  // namespace gs
