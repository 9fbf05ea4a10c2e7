// Facts about tasks: started, ended, lost, found again. From these follows the state of their job.
#include <algorithm>
#include <tuple>

#include "base/check.hpp"
#include "cluster/trial.hpp"
#include "engine/state.hpp"
#include "placement/mig.hpp"

namespace gs {
namespace {

bool same_instance(const MigPick& a, const MigPick& b) { return a.gpu == b.gpu && a.id == b.id; }

bool overlap(const Allocation& a, const Allocation& b) {
  return (a.gpus & b.gpus) != 0 || std::find_first_of(a.mig.begin(), a.mig.end(), b.mig.begin(),
                                                      b.mig.end(), same_instance) != a.mig.end();
}

// Tasks that are promised some of these devices.
std::vector<TaskId> promised_on(const Cluster& cluster, const Allocation& place) {
  std::vector<TaskId> promised;
  for (const TaskId id : cluster.node(place.node).tasks)
    if (const Task& task = cluster.task(id);
        task.state == TaskState::Nominated && overlap(task.place, place))
      promised.push_back(id);
  std::sort(promised.begin(), promised.end(), [&](TaskId a, TaskId b) {
    const Task &x = cluster.task(a), &y = cluster.task(b);
    return std::tuple(cluster.job(x.job).seq, x.group, x.rank) <
           std::tuple(cluster.job(y.job).seq, y.group, y.rank);
  });
  return promised;
}

}  // namespace

TaskId Engine::Impl::find_task(JobId job, int group, int rank) const {
  TaskId found;
  for (const TaskId id : cluster.job(job).tasks) {
    const Task& task = cluster.task(id);
    if (task.group != group || task.rank != rank || task.state == TaskState::Nominated) continue;
    // A moved task may be Releasing here and Running there: the older one is meant.
    if (!found.valid() || task.state == TaskState::Releasing) found = id;
  }
  return found;
}

Status Engine::Impl::apply(const TaskStarted& command) {
  const JobId job = cluster.find_job(command.task.job);
  if (!job.valid()) return not_found("job " + command.task.job + " does not exist");
  TaskId running;
  for (const TaskId id : cluster.job(job).tasks) {
    const Task& task = cluster.task(id);
    if (task.group == command.task.group && task.rank == command.task.rank &&
        task.state == TaskState::Running)
      running = id;
  }
  // It may have been told to stop while the news was under way: nothing to do.
  if (!running.valid()) return ok_status();
  cluster.set_started(running);
  refresh(job);
  return ok_status();
}

// One that succeeds while it is being stopped has succeeded: it needs no other place any more.
void Engine::Impl::note_success(JobId job, int group, int rank) {
  JobRecord& record = cluster.job(job);
  const std::vector<TaskId> tasks = record.tasks;
  for (const TaskId id : tasks) {
    const Task& task = cluster.task(id);
    if (task.group == group && task.rank == rank && task.state == TaskState::Nominated)
      cluster.remove_task(id);
  }
  if (record.nominated_tasks == 0) std::erase(cycle.nominated(), job);
  const std::pair<std::uint16_t, int> member{static_cast<std::uint16_t>(group), rank};
  if (std::find(record.ended.begin(), record.ended.end(), member) == record.ended.end())
    record.ended.push_back(member);
}

Status Engine::Impl::apply(const TaskEnded& command) {
  const TaskRef& ref = command.task;
  const JobId job = cluster.find_job(ref.job);
  if (!job.valid()) return not_found("job " + ref.job + " does not exist");
  const TaskId id = find_task(job, ref.group, ref.rank);
  if (!id.valid())
    return not_found("job " + ref.job + ": task " + std::to_string(ref.group) + "/" +
                     std::to_string(ref.rank) + " holds nothing");
  const Task task = cluster.task(id);
  const NodeId node = task.place.node;
  const bool releasing = task.state == TaskState::Releasing;
  const double performance = cluster.node(node).performance;
  if (command.outcome == Outcome::NodeLost) cluster.set_performance(node, performance * 0.8);
  if (command.outcome == Outcome::Succeeded && performance < 1.0)
    cluster.set_performance(node, std::min(1.0, performance * 0.95 + 0.05));
  if (command.outcome == Outcome::NodeLost && !releasing) {
    lose_task(id, std::nullopt);
    return ok_status();
  }
  cluster.remove_task(id);
  JobRecord& record = cluster.job(job);
  if (command.outcome == Outcome::Succeeded) note_success(job, ref.group, ref.rank);
  if (command.outcome == Outcome::Failed && record.state != JobState::Stopping && !releasing) {
    Why why;
    why.verdict = Verdict::Broken;
    why.sentence = "task " + std::to_string(ref.group) + "/" + std::to_string(ref.rank) + " failed";
    stop_job(job, JobState::Failed, StopReason::Cancelled, why);
    return ok_status();
  }
  // Told to nobody, yet stopped: the driver lost it. The gang is mended like after a broken node.
  if (command.outcome == Outcome::Stopped && !releasing && record.state != JobState::Stopping)
    cycle.broken().insert({record.seq, job});
  refresh(job);
  return ok_status();
}

bool Engine::Impl::holds_without_promises(JobId job, int group, const Allocation& place) {
  Trial trial(cluster);
  for (const TaskId id : promised_on(cluster, place)) trial.drop(id);
  return placer.can_hold(job, group, place).ok();
}

Status Engine::Impl::apply(const AdoptTask& command) {
  const TaskRef& ref = command.task;
  const JobId job = cluster.find_job(ref.job);
  if (!job.valid()) return not_found("job " + ref.job + " does not exist");
  const JobShape& shape = cluster.shape_of(job);
  if (ref.group < 0 || ref.group >= static_cast<int>(shape.groups.size()) || ref.rank < 0 ||
      ref.rank >= shape.groups[static_cast<std::size_t>(ref.group)].count)
    return not_found("job " + ref.job + " has no task " + std::to_string(ref.group) + "/" +
                     std::to_string(ref.rank));
  const auto missing = cluster.missing_ranks(job, ref.group);
  if (!std::binary_search(missing.begin(), missing.end(), ref.rank))
    return Error{ErrorCode::Conflict, "job " + ref.job + ": this task has a place already"};
  if (command.succeeded) {
    note_success(job, ref.group, ref.rank);
    refresh(job);
    return ok_status();
  }
  const NodeId node = cluster.find_node(command.node);
  if (!node.valid() || cluster.node(node).gone)
    return not_found("node " + command.node + " does not exist");
  Allocation place{node, 0, {}};
  for (const int gpu : command.gpus) {
    if (gpu < 0 || gpu >= cluster.node(node).layout->count)
      return not_found("node " + command.node + " has no GPU " + std::to_string(gpu));
    place.gpus |= gpu_bit(gpu);
  }
  if (Status s = placer.can_hold(job, ref.group, place); !s) {
    // What runs there is a fact: whoever was promised it has to look for another place.
    if (!holds_without_promises(job, ref.group, place)) return s;
    for (const TaskId id : promised_on(cluster, place)) lose_task(id, std::nullopt);
  }
  auto instances = mig_at(cluster.node(node), command.mig, cluster.shapes().resources());
  if (instances) {
    const std::vector<TaskId> promised = promised_on(cluster, {node, 0, *instances});
    for (const TaskId id : promised) lose_task(id, std::nullopt);
    // What was to be cut for them is not there any more.
    if (!promised.empty())
      instances = mig_at(cluster.node(node), command.mig, cluster.shapes().resources());
  }
  if (!instances)
    return Error{ErrorCode::Conflict, "node " + command.node + ": a MIG instance of job " +
                                          ref.job + " is not there or is taken"};
  place.mig = std::move(*instances);
  const TaskId id =
      cluster.place(job, ref.group, ref.rank, place, TaskState::Running, command.since);
  cluster.set_started(id);
  queue.erase(job);
  refresh(job);
  // It has run since then, not since we heard of it: its time limit counts from there.
  JobRecord& record = cluster.job(job);
  if (record.active_tasks == 1) record.started = command.since;
  watch_deadline(job);
  return ok_status();
}

void Engine::Impl::lose_task(TaskId id, std::optional<StopReason> stop) {
  const Task task = cluster.task(id);
  const JobId job = task.job;
  if (task.state == TaskState::Releasing && stop) return;  // on its way out already
  if (task.state == TaskState::Running && stop) {
    cluster.set_task_state(id, TaskState::Releasing);
    effects.emplace_back(StopTasks{cluster.job(job).id, {ref(task)}, *stop, {}});
  } else {
    cluster.remove_task(id);
  }
  const JobRecord& record = cluster.job(job);
  if (task.state != TaskState::Releasing && record.state != JobState::Stopping &&
      record.state != JobState::Evicting)
    cycle.broken().insert({record.seq, job});
  refresh(job);
}

}  // namespace gs
