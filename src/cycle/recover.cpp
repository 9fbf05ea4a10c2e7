// recover: gangs that lost members are mended with the smallest change that is legal.
//
//   1. what is missing gets new places, everybody else stays;
//   2. if not all, then as many as the job needs at least;
//   3. if the survivors' places make that impossible, the whole job is placed anew, keeping those
//      that can stay;
//   4. else the rest stops and the job goes back to the queue, where its age counts.
#include <algorithm>

#include "cycle/attempt.hpp"
#include "cycle/cycle.hpp"

namespace gs {
namespace {

void place_if_possible(CycleContext& context, JobId job, const std::vector<Member>& members,
                       bool& done) {
  Trial trial(context.cluster);
  if (!attempt(context, trial, job, members, Firmness::StartOrNominate, nullptr).placed) return;
  wait_as_one(trial, job, 0);
  context.keep(trial, job);
  done = true;
}

std::vector<TaskId> placed_tasks(const Cluster& cluster, JobId job) {
  std::vector<TaskId> tasks = cluster.job(job).tasks;
  std::erase_if(tasks, [&](TaskId id) { return cluster.task(id).state == TaskState::Releasing; });
  std::sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) {
    const Task& x = cluster.task(a);
    const Task& y = cluster.task(b);
    return std::tuple(x.group, x.rank) < std::tuple(y.group, y.rank);
  });
  return tasks;
}

// Members that are told to stop are missing too: they are promised a new place now, and have it
// when they have gone from the old one.
TaskMarks leaving_tasks(const Cluster& cluster, JobId job) {
  TaskMarks leaving;
  for (const TaskId id : cluster.job(job).tasks)
    if (cluster.task(id).state == TaskState::Releasing) leaving.set(id);
  return leaving;
}

// Stops or drops everything that the job holds.
void clear(Trial& trial, JobId job, TaskMarks& evicted) {
  for (const TaskId id : placed_tasks(trial.cluster(), job)) {
    if (trial.cluster().task(id).state == TaskState::Nominated) {
      trial.drop(id);
    } else {
      trial.evict(id);
      evicted.set(id);
    }
  }
}

bool place_anew(CycleContext& context, JobId job) {
  Trial trial(context.cluster);
  TaskMarks evicted = leaving_tasks(context.cluster, job);
  clear(trial, job, evicted);
  if (!is_ready(context.cluster, job, &evicted)) return false;  // had a promise, has not arrived
  const std::vector<Member> members = next_members(context.cluster, job, &evicted);
  if (!attempt(context, trial, job, members, Firmness::Nominate, nullptr).placed) return false;
  context.keep(trial, job);
  return true;
}

bool below_min(const Cluster& cluster, JobId job) {
  return fill_of(cluster, job, nullptr) == Fill::BelowMin;
}

void mend(CycleContext& context, JobId job) {
  const Cluster& cluster = context.cluster;
  const bool was_below = below_min(cluster, job);
  bool done = false;
  const TaskMarks leaving = leaving_tasks(cluster, job);
  const bool can_be_whole = is_ready(cluster, job, &leaving);
  if (cluster.job(job).active_tasks > 0 && (can_be_whole || !was_below)) {
    const std::vector<Member> all = waiting_members(cluster, job, &leaving);
    if (all.empty()) return;
    place_if_possible(context, job, all, done);
    if (!done && was_below)
      place_if_possible(context, job, next_members(cluster, job, &leaving), done);
    if (!done && !was_below) {  // runs on with fewer, and grows when there is room
      context.settle(job);
      return;
    }
    if (done || place_anew(context, job)) return;
  }
  Trial trial(context.cluster);
  TaskMarks evicted;
  clear(trial, job, evicted);
  context.keep(trial, job);
}

}  // namespace

void run_recover(CycleContext& context) {
  std::set<std::pair<std::uint64_t, JobId>> jobs;
  jobs.swap(context.broken);
  for (const auto& [seq, job] : jobs) mend(context, job);
}

}  // namespace gs
