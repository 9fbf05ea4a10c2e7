#include "cycle/stay.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/check.hpp"
#include "queue/members.hpp"
#include "queue/quota.hpp"

namespace gs {
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

// The innermost tenant that is also above somebody who gets room; invalid if there is none. Only
// what they share can be exceeded because of it: limits may have been lowered under what runs.
TenantId shared_tenant(const Cluster& cluster, JobId job, const std::vector<JobId>& gets) {
  for (TenantId t = cluster.job(job).tenant; t.valid(); t = cluster.tenant(t).parent)
    for (const JobId other : gets)
      for (TenantId o = cluster.job(other).tenant; o.valid(); o = cluster.tenant(o).parent)
        if (t == o) return t;
  return {};
}

bool within_quota(const Cluster& cluster, const Task& task, TenantId shared) {
  if (!shared.valid()) return true;
  std::vector<std::uint32_t> models;
  if (const auto model = model_of(cluster, task)) models.push_back(*model);
  return !exceeded(cluster, shared, cluster.job(task.job).preemptible, cluster.usage(task), models);
}

// Left and has no other place.
bool is_lost(const Cluster& cluster, const VictimTask& task) {
  return !place_of(cluster, task, TaskState::Running).valid() &&
         !place_of(cluster, task, TaskState::Nominated).valid();
}

// These members back to their own places (or promises of places), giving up others that they may
// have been promised. False, and nothing is changed, if somebody needs what they have there.
bool stay(Trial& trial, const std::vector<const VictimTask*>& tasks,
          const std::vector<JobId>& gets) {
  const Cluster& cluster = trial.cluster();
  const std::size_t mark = trial.mark();
  const bool lost = std::any_of(tasks.begin(), tasks.end(),
                                [&](const VictimTask* task) { return is_lost(cluster, *task); });
  for (const VictimTask* task : tasks)
    if (const TaskId promise = place_of(cluster, *task, TaskState::Nominated); promise.valid())
      trial.drop(promise);
  const auto go_back = [&](const VictimTask* task) {
    const TenantId shared = shared_tenant(cluster, task->job, gets);
    const bool new_job = shared.valid() && cluster.job(task->job).active_tasks == 0;
    if (new_job && over_limit(cluster, shared, {}, 1)) return false;
    if (!task->nominated) {
      if (!own_pins(cluster, cluster.task(task->id))) return false;
      if (cluster.task(task->id).state == TaskState::Releasing) trial.spare(task->id);
      return within_quota(cluster, cluster.task(task->id), shared);
    }
    const Task promise = dropped(trial, task->id);
    if (!promise.place.mig.empty() || !own_pins(cluster, promise)) return false;
    const TaskId again = trial.place(task->job, task->group, task->rank, promise.place,
                                     TaskState::Nominated, promise.since);
    return within_quota(cluster, cluster.task(again), shared);
  };
  const auto is_sound_there = [&](const VictimTask* task) {
    const auto state = task->nominated ? TaskState::Nominated : TaskState::Running;
    return is_sound(cluster, cluster.task(place_of(cluster, *task, state)));
  };
  if (std::all_of(tasks.begin(), tasks.end(), go_back) &&
      std::all_of(tasks.begin(), tasks.end(), is_sound_there) &&
      (!lost || fill_of(cluster, tasks.front()->job, nullptr) != Fill::BelowMin))
    return true;
  trial.rollback(mark);
  return false;
}

// A member of the same group is to move to where this one is, and this one elsewhere: they are
// alike, so this one stays and the other goes there.
void let_sibling_move(Trial& trial, const VictimTask& task) {
  const Cluster& cluster = trial.cluster();
  const TaskId promise = place_of(cluster, task, TaskState::Nominated);
  if (task.nominated || !promise.valid() || cluster.task(task.id).state != TaskState::Releasing)
    return;
  const Task own = cluster.task(task.id), moved = cluster.task(promise);
  if (!own.place.mig.empty() || !moved.place.mig.empty()) return;
  for (const TaskId id : std::vector<TaskId>(cluster.job(task.job).tasks)) {
    const Task sibling = cluster.task(id);
    const bool takes_it = sibling.state == TaskState::Nominated && id != promise &&
                          sibling.group == task.group && sibling.place.node == own.place.node &&
                          (sibling.place.gpus & own.place.gpus) != 0;
    if (!takes_it) continue;
    const std::size_t mark = trial.mark();
    trial.drop(promise);
    trial.drop(id);
    trial.spare(task.id);
    const TaskId there = trial.place(task.job, sibling.group, sibling.rank, moved.place,
                                     TaskState::Nominated, sibling.since);
    if (!is_sound(cluster, cluster.task(task.id)) || !is_sound(cluster, cluster.task(there)))
      trial.rollback(mark);
    return;
  }
}

// Those of the job that can stay do; the others give up what they have elsewhere. Only if no fewer
// have a place in the end.
void stay_together(Trial& trial, const std::vector<const VictimTask*>& tasks,
                   const std::vector<JobId>& gets) {
  const Cluster& cluster = trial.cluster();
  const JobId job = tasks.front()->job;
  const int before = cluster.job(job).active_tasks;
  const std::size_t mark = trial.mark();
  for (const VictimTask* task : tasks)
    if (const TaskId promise = place_of(cluster, *task, TaskState::Nominated); promise.valid())
      trial.drop(promise);
  for (const VictimTask* task : tasks) stay(trial, {task}, gets);
  const JobRecord& record = cluster.job(job);
  if (record.active_tasks < before || fill_of(cluster, job, nullptr) == Fill::BelowMin)
    trial.rollback(mark);
}

}  // namespace

std::vector<const VictimTask*> let_stay(Trial& trial, const std::vector<VictimTask>& victims,
                                        const std::vector<JobId>& gets, bool give_up) {
  const Cluster& cluster = trial.cluster();
  std::vector<JobId> jobs;
  std::unordered_map<JobId, std::vector<const VictimTask*>> tasks;  // last to leave first
  for (auto task = victims.rbegin(); task != victims.rend(); ++task) {
    if (tasks[task->job].empty()) jobs.push_back(task->job);
    tasks[task->job].push_back(&*task);
  }
  for (const JobId job : jobs) {
    const std::vector<const VictimTask*>& all = tasks[job];
    if (stay(trial, all, gets)) continue;
    for (const VictimTask* task : all) let_sibling_move(trial, *task);
    if (lies_together(cluster.shape_of(job))) {
      if (give_up) stay_together(trial, all, gets);
      continue;
    }
    for (const VictimTask* task : all) stay(trial, {task}, gets);
  }
  std::vector<const VictimTask*> lost;
  for (const VictimTask& task : victims)
    if (is_lost(cluster, task)) lost.push_back(&task);
  return lost;
}

}  // namespace gs
