#include "cycle/stay.hpp"

#include <algorithm>
#include <unordered_map>

#include "cycle/exchange.hpp"
#include "placement/mig.hpp"
#include "queue/members.hpp"
#include "queue/quota.hpp"

namespace gs {

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

namespace {

// Nobody but its own group is pinned to a device that the task is pinned to.
bool own_pins(const Cluster& cluster, const Task& task) {
  const Shape& shape = cluster.shape_of(task);
  if (shape.request.gpu.pinned_ids.empty()) return true;
  bool own = true;
  for_each_gpu(task.place.gpus, [&](int gpu) {
    const PinOwner owner =
        cluster.node(task.place.node).gpus[static_cast<std::size_t>(gpu)].pin_owner;
    own &= !owner.valid() || owner == PinOwner(shape, task.job);
  });
  return own;
}

// Instances on the same node as good as those that were promised, which others may have cut away.
bool find_instances(const Cluster& cluster, Task& promise) {
  if (promise.place.mig.empty()) return true;
  const NodeState& node = cluster.node(promise.place.node);
  auto picks = choose_mig(node, cluster.shape_of(promise), View::Future);
  if (picks) promise.place.mig = std::move(*picks);
  return picks.has_value();
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

// These members back to their own places (or promises of places), giving up others that they may
// have been promised. False, and nothing is changed, if somebody needs what they have there, or if
// they are too few (unless the caller sees to that).
bool stay(Trial& trial, const std::vector<const VictimTask*>& tasks, const std::vector<JobId>& gets,
          bool may_be_few = false) {
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
    if (!task->promise) {
      if (!own_pins(cluster, cluster.task(task->id))) return false;
      if (cluster.task(task->id).state == TaskState::Releasing) trial.spare(task->id);
      if (!exchange_instances(trial, task->id)) return false;
      return within_quota(cluster, cluster.task(task->id), shared);
    }
    Task promise = *task->promise;
    if (!own_pins(cluster, promise) || !find_instances(cluster, promise)) return false;
    const TaskId again = trial.place(task->job, task->group, task->rank, promise.place,
                                     TaskState::Nominated, promise.since);
    return within_quota(cluster, cluster.task(again), shared);
  };
  const auto is_sound_there = [&](const VictimTask* task) {
    const auto state = task->promise ? TaskState::Nominated : TaskState::Running;
    return is_sound(cluster, cluster.task(place_of(cluster, *task, state)));
  };
  if (std::all_of(tasks.begin(), tasks.end(), go_back) &&
      std::all_of(tasks.begin(), tasks.end(), is_sound_there) &&
      (!lost || may_be_few || fill_of(cluster, tasks.front()->job, nullptr) != Fill::BelowMin))
    return true;
  trial.rollback(mark);
  return false;
}

// Each that can stay does, if they are enough; else those of which it takes no more.
void stay_one_by_one(Trial& trial, const std::vector<const VictimTask*>& tasks,
                     const std::vector<JobId>& gets) {
  const std::size_t mark = trial.mark();
  for (const VictimTask* task : tasks) stay(trial, {task}, gets, true);
  if (fill_of(trial.cluster(), tasks.front()->job, nullptr) != Fill::BelowMin) return;
  trial.rollback(mark);
  for (const VictimTask* task : tasks) stay(trial, {task}, gets);
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
  for (const VictimTask* task : tasks) stay(trial, {task}, gets, true);
  const JobRecord& record = cluster.job(job);
  if (record.active_tasks < before || fill_of(cluster, job, nullptr) == Fill::BelowMin)
    trial.rollback(mark);
}

}  // namespace

namespace {

bool is_home(const Trial& trial, const VictimTask& task) {
  const Cluster& cluster = trial.cluster();
  if (!task.promise) return cluster.task(task.id).state == TaskState::Running;
  const TaskId promise = place_of(cluster, task, TaskState::Nominated);
  if (!promise.valid()) return false;
  const Allocation& place = cluster.task(promise).place;
  const Allocation& home = task.promise->place;
  return place.node == home.node && place.gpus == home.gpus;
}

// Whether none of them has a place elsewhere: then whoever goes back finds the others as they were.
bool nobody_moved(const Trial& trial, const std::vector<const VictimTask*>& tasks) {
  return std::all_of(tasks.begin(), tasks.end(), [&](const VictimTask* task) {
    return is_lost(trial.cluster(), *task) || is_home(trial, *task);
  });
}

// How many of them have a place elsewhere.
int count_elsewhere(const Trial& trial, const std::vector<const VictimTask*>& tasks) {
  return static_cast<int>(std::count_if(tasks.begin(), tasks.end(), [&](const VictimTask* task) {
    return place_of(trial.cluster(), *task, TaskState::Nominated).valid() && !is_home(trial, *task);
  }));
}

using VictimTasks = std::vector<const VictimTask*>;

void let_job_stay(Trial& trial, const VictimTasks& tasks, const std::vector<JobId>& gets,
                  bool give_up) {
  const bool together = lies_together(trial.cluster().shape_of(tasks.front()->job));
  const bool all_home = std::all_of(tasks.begin(), tasks.end(), [&](const VictimTask* task) {
    return !task->promise && is_home(trial, *task);
  });
  if (all_home || stay(trial, tasks, gets)) return;
  for (const VictimTask* task : tasks) exchange_with_sibling(trial, *task);
  if (together && give_up) stay_together(trial, tasks, gets);
  if (together && !nobody_moved(trial, tasks)) return;
  if (tasks.size() > 1) stay_one_by_one(trial, tasks, gets);
}

// Those who are to have devices of this one, if each of them has to leave a place itself: it and
// they, and whoever is to have theirs. Empty: somebody needs what they have.
VictimTasks ring_of(const Trial& trial, const std::vector<VictimTask>& victims,
                    const VictimTask& first) {
  constexpr std::size_t kLongest = 8;
  const Cluster& cluster = trial.cluster();
  VictimTasks ring{&first};
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const Task& own = cluster.task(ring[i]->id);
    for (const TaskId id : cluster.node(own.place.node).tasks) {
      const Task& taker = cluster.task(id);
      if (taker.state != TaskState::Nominated || !shares_devices(taker, own)) continue;
      const auto victim = std::find_if(victims.begin(), victims.end(), [&](const VictimTask& v) {
        return v.job == taker.job && v.group == taker.group && v.rank == taker.rank;
      });
      if (victim == victims.end() || victim->promise || ring.size() == kLongest) return {};
      if (std::find(ring.begin(), ring.end(), &*victim) == ring.end()) ring.push_back(&*victim);
    }
  }
  return ring.size() > 1 ? ring : VictimTasks{};
}

// Some who only change places with each other all stay. True: they did.
bool undo_ring(Trial& trial, const std::vector<VictimTask>& victims, const VictimTask& task,
               const std::vector<JobId>& gets) {
  const Cluster& cluster = trial.cluster();
  if (task.promise || is_home(trial, task) ||
      !place_of(cluster, task, TaskState::Nominated).valid())
    return false;
  const VictimTasks ring = ring_of(trial, victims, task);
  const bool apart = std::none_of(ring.begin(), ring.end(), [&](const VictimTask* one) {
    return is_lost(cluster, *one) || lies_together(cluster.shape_of(one->job));
  });
  return !ring.empty() && apart && stay(trial, ring, gets, true);
}

}  // namespace

std::vector<const VictimTask*> let_stay(Trial& trial, const std::vector<VictimTask>& victims,
                                        const std::vector<JobId>& gets, bool give_up) {
  const Cluster& cluster = trial.cluster();
  std::vector<JobId> jobs;
  std::unordered_map<JobId, VictimTasks> tasks;  // last to leave first
  for (auto task = victims.rbegin(); task != victims.rend(); ++task) {
    if (tasks[task->job].empty()) jobs.push_back(task->job);
    tasks[task->job].push_back(&*task);
  }
  // Who goes home gives up where it was to go, and somebody else may be at home there.
  for (bool again = true; again;) {
    again = false;
    for (const JobId job : jobs) {
      const int elsewhere = count_elsewhere(trial, tasks[job]);
      let_job_stay(trial, tasks[job], gets, give_up);
      again |= count_elsewhere(trial, tasks[job]) < elsewhere;
    }
    for (const VictimTask& task : victims) again |= undo_ring(trial, victims, task, gets);
  }
  VictimTasks lost;
  for (const VictimTask& task : victims)
    if (is_lost(cluster, task)) lost.push_back(&task);
  return lost;
}

}  // namespace gs
