#include "cluster/trial.hpp"

#include "base/check.hpp"

namespace gs {

TaskId Trial::place(JobId job, int group, int rank, const Allocation& place, TaskState state,
                    Instant now) {
  Change change{Kind::Placed, {}, {}, {}};
  if (!place.mig.empty()) change.mig = cluster_.node(place.node).mig;
  change.task = cluster_.place(job, group, rank, place, state, now);
  changes_.push_back(std::move(change));
  return changes_.back().task;
}

void Trial::evict(TaskId task) {
  CHECK(cluster_.task(task).state == TaskState::Running);
  cluster_.set_task_state(task, TaskState::Releasing);
  changes_.push_back({Kind::Released, task, {}, {}});
}

void Trial::spare(TaskId task) {
  CHECK(cluster_.task(task).state == TaskState::Releasing);
  cluster_.set_task_state(task, TaskState::Running);
  changes_.push_back({Kind::Spared, task, {}, {}});
}

void Trial::hold(TaskId task) {
  CHECK(cluster_.task(task).state == TaskState::Running);
  cluster_.set_task_state(task, TaskState::Nominated);
  changes_.push_back({Kind::Held, task, {}, {}});
}

void Trial::start(TaskId task) {
  CHECK(cluster_.task(task).state == TaskState::Nominated);
  cluster_.set_task_state(task, TaskState::Running);
  changes_.push_back({Kind::Started, task, {}, {}});
}

void Trial::drop(TaskId task) {
  CHECK(cluster_.task(task).state == TaskState::Nominated);
  Change change{Kind::Dropped, task, cluster_.task(task), {}};
  if (!change.before.place.mig.empty()) change.mig = cluster_.node(change.before.place.node).mig;
  changes_.push_back(std::move(change));
  cluster_.remove_task(task);
}

void Trial::rollback(std::size_t mark) {
  while (changes_.size() > mark) {
    Change& change = changes_.back();
    switch (change.kind) {
      case Kind::Placed: {
        const NodeId node = cluster_.task(change.task).place.node;
        const bool had_mig = !cluster_.task(change.task).place.mig.empty();
        cluster_.remove_task(change.task);
        if (had_mig) cluster_.nodes_[node.index()].mig = std::move(change.mig);
        break;
      }
      case Kind::Released:
      case Kind::Held:
        cluster_.set_task_state(change.task, TaskState::Running);
        break;
      case Kind::Spared:
        cluster_.set_task_state(change.task, TaskState::Releasing);
        break;
      case Kind::Started:
        cluster_.set_task_state(change.task, TaskState::Nominated);
        break;
      case Kind::Dropped:
        if (!change.before.place.mig.empty())
          cluster_.nodes_[change.before.place.node.index()].mig = std::move(change.mig);
        cluster_.restore_task(change.task, std::move(change.before));
        break;
    }
    changes_.pop_back();
  }
}

void Trial::adopt(std::vector<Change> changes) {
  for (Change& change : changes) changes_.push_back(std::move(change));
}

std::vector<Trial::Change> Trial::keep() {
  std::vector<Change> kept;
  kept.swap(changes_);
  return kept;
}

}  // namespace gs
