#include "cycle/simulate.hpp"

#include <algorithm>

#include "cycle/attempt.hpp"
#include "cycle/stay.hpp"
#include "queue/order_tree.hpp"

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
  hopeless_.clear();
  lost_.clear();
  moved_ = 0;
  victims_ = ask.victims;
  evict(trial, ask);
  if (!serve(trial, ask)) return false;
  let_stay(trial, ask);
  take_stock(ask);
  return true;
}

void Simulation::evict(Trial& trial, const Ask& ask) {
  for (const VictimTask& task : ask.victims) {
    left_.insert(member_key(task.job, task.group, task.rank));
    if (task.nominated) {
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
      if (has_more_to_place(job)) queue(job);
    } else if (ask.nobody_lost) {
      return false;
    }
  }
  return true;
}

// A job comes back with what it can't run without, and then task by task.
bool Simulation::has_more_to_place(JobId job) const {
  const std::vector<Member> next = next_members(context_.cluster, job, &evicted_);
  return std::any_of(next.begin(), next.end(), [&](const Member& m) {
    return left_.count(member_key(job, m.group, m.rank)) > 0;
  });
}

bool Simulation::come_back(Trial& trial, const Ask& ask, JobId job) {
  const JobRecord& record = context_.cluster.job(job);
  const bool fresh = record.active_tasks == 0;
  const std::uint64_t kind = std::uint64_t{record.tenant.v} << 32 | record.shape.v;
  // Room only shrinks while others come back: what its twin did not find, it does not find either.
  if (fresh && hopeless_.count(kind) > 0) return false;
  if (!is_ready(context_.cluster, job, &evicted_)) return false;
  const std::vector<Member> members = next_members(context_.cluster, job, &evicted_);
  if (!attempt(context_, trial, job, members, Firmness::Nominate, ask.among).placed) {
    if (fresh) hopeless_.insert(kind);
    return false;
  }
  for (const Member& m : members) left_.erase(member_key(job, m.group, m.rank));
  return true;
}

void Simulation::let_stay(Trial& trial, const Ask& ask) {
  left_.clear();
  for (const VictimTask* task : gs::let_stay(trial, ask.victims, {ask.job}))
    left_.insert(member_key(task->job, task->group, task->rank));
}

void Simulation::take_stock(const Ask& ask) {
  for (const VictimTask& task : ask.victims) {
    if (left_.count(member_key(task.job, task.group, task.rank)) > 0) {
      lost_.push_back(task);
      needed_.set(task.id);
    } else if (task.nominated || context_.cluster.task(task.id).state != TaskState::Running) {
      ++moved_;
      needed_.set(task.id);
    }
  }
}

}  // namespace gs
