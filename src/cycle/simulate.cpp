#include "cycle/simulate.hpp"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "base/check.hpp"
#include "cycle/attempt.hpp"
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

namespace {

bool in_balance(const Ledger& ledger) { return ledger.free(View::Future) >= 0; }

// A pinned device is for the tasks of one job.
bool only_one_job_on(const Cluster& cluster, const NodeState& node, int gpu) {
  JobId owner;
  for (const TaskId id : node.tasks) {
    const Task& task = cluster.task(id);
    if (task.state == TaskState::Releasing || (task.place.gpus & gpu_bit(gpu)) == 0) continue;
    if (owner.valid() && task.job != owner) return false;
    owner = task.job;
  }
  return true;
}

// Whether everybody who is to be on this task's node and devices has room there.
bool is_sound(const Cluster& cluster, const Task& task) {
  const NodeState& node = cluster.node(task.place.node);
  bool sound = in_balance(node.cpu_milli) && in_balance(node.memory_bytes);
  for (const Ledger& named : node.named) sound &= in_balance(named);
  for_each_gpu(task.place.gpus, [&](int gpu) {
    const GpuState& books = node.gpus[static_cast<std::size_t>(gpu)];
    sound &= in_balance(books.milli) && in_balance(books.memory_mib);
    if (books.pinned(View::Future)) sound &= only_one_job_on(cluster, node, gpu);
  });
  for (const MigPick& pick : task.place.mig)
    for (const auto& gpu : node.mig)
      for (const auto& instance : gpu.instances)
        if (gpu.gpu == pick.gpu && instance.id == pick.id) sound &= !instance.nominated;
  return sound;
}

// Whether where one member lies says something about where the others may lie.
bool lies_together(const JobShape& shape) {
  const auto wishes = [](const TopologyWish& wish) {
    return !wish.required_level.empty() || !wish.preferred_level.empty();
  };
  return std::any_of(
             shape.groups.begin(), shape.groups.end(),
             [&](const ShapedGroup& g) { return wishes(g.topology) || !g.slices.empty(); }) ||
         std::any_of(shape.sets.begin(), shape.sets.end(),
                     [&](const GroupSet& s) { return wishes(s.topology); });
}

}  // namespace

namespace {

// Nobody else is pinned to a device that the task is pinned to.
bool own_pins(const Cluster& cluster, const Task& task) {
  if (cluster.shape_of(task).request.gpu.pinned_ids.empty()) return true;
  bool own = true;
  for_each_gpu(task.place.gpus, [&](int gpu) {
    const JobId owner = cluster.node(task.place.node).gpus[static_cast<std::size_t>(gpu)].pin_owner;
    own &= !owner.valid() || owner == task.job;
  });
  return own;
}

// The member's task in this state; invalid if there is none.
TaskId place_of(const Cluster& cluster, const VictimTask& member, TaskState state) {
  for (const TaskId id : cluster.job(member.job).tasks) {
    const Task& task = cluster.task(id);
    if (task.group == member.group && task.rank == member.rank && task.state == state) return id;
  }
  return {};
}

// A promise as it was when the trial first gave it up.
Task dropped(const Trial& trial, TaskId id) {
  for (const Trial::Change& change : trial.changes())
    if (change.kind == Trial::Kind::Dropped && change.task == id) return change.before;
  CHECK_MSG(false, "a promise that the plan gave up is not in its trial");
  return {};
}

bool within_quota(const Cluster& cluster, const Task& task) {
  const JobRecord& record = cluster.job(task.job);
  std::vector<std::uint32_t> models;
  if (task.place.gpus != 0)
    models.push_back(
        cluster.node(task.place.node)
            .layout->model[static_cast<std::size_t>(std::countr_zero(task.place.gpus))]);
  return !exceeded(cluster, record.tenant, record.preemptible, cluster.usage(task), models);
}

}  // namespace

// These members back to their own places (or promises of places), giving up others that they may
// have been promised. False, and nothing is changed, if somebody needs what they have there.
bool Simulation::stay(Trial& trial, const std::vector<const VictimTask*>& tasks) {
  const Cluster& cluster = context_.cluster;
  const std::size_t mark = trial.mark();
  for (const VictimTask* task : tasks)
    if (const TaskId promise = place_of(cluster, *task, TaskState::Nominated); promise.valid())
      trial.drop(promise);
  const auto go_back = [&](const VictimTask* task) {
    const JobRecord& record = cluster.job(task->job);
    if (record.active_tasks == 0 && over_limit(cluster, record.tenant, {}, 1)) return false;
    if (!task->nominated) {
      if (!own_pins(cluster, cluster.task(task->id))) return false;
      if (cluster.task(task->id).state == TaskState::Releasing) trial.spare(task->id);
      return within_quota(cluster, cluster.task(task->id));
    }
    const Task promise = dropped(trial, task->id);
    if (!promise.place.mig.empty() || !own_pins(cluster, promise)) return false;
    const TaskId again = trial.place(task->job, task->group, task->rank, promise.place,
                                     TaskState::Nominated, promise.since);
    return within_quota(cluster, cluster.task(again));
  };
  const auto is_sound_there = [&](const VictimTask* task) {
    const auto state = task->nominated ? TaskState::Nominated : TaskState::Running;
    return is_sound(cluster, cluster.task(place_of(cluster, *task, state)));
  };
  if (std::all_of(tasks.begin(), tasks.end(), go_back) &&
      std::all_of(tasks.begin(), tasks.end(), is_sound_there)) {
    for (const VictimTask* t : tasks) left_.erase(member_key(t->job, t->group, t->rank));
    return true;
  }
  trial.rollback(mark);
  return false;
}

// Whoever left although nobody took its old place stays there: those that are served first have the
// first say. A job whose members lie together stays as a whole or not at all.
void Simulation::let_stay(Trial& trial, const Ask& ask) {
  std::vector<JobId> jobs;
  std::unordered_map<JobId, std::vector<const VictimTask*>> tasks;  // last to leave first
  for (auto task = ask.victims.rbegin(); task != ask.victims.rend(); ++task) {
    if (tasks[task->job].empty()) jobs.push_back(task->job);
    tasks[task->job].push_back(&*task);
  }
  for (const JobId job : jobs) {
    if (stay(trial, tasks[job]) || lies_together(context_.cluster.shape_of(job))) continue;
    for (const VictimTask* task : tasks[job]) {
      const bool lost = left_.count(member_key(job, task->group, task->rank)) > 0;
      if (lost && fill_of(context_.cluster, job, nullptr) == Fill::BelowMin) continue;
      stay(trial, {task});
    }
  }
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
