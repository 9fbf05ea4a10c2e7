#include "cycle/exchange.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace gs {
namespace {

bool in_balance(const Ledger& ledger) { return ledger.free(View::Future) >= 0; }

// A pinned device is for the tasks of one job, or of one group of jobs.
bool only_one_owner_on(const Cluster& cluster, const NodeState& node, int gpu) {
  PinOwner owner;
  for (const TaskId id : node.tasks) {
    const Task& task = cluster.task(id);
    if (task.state == TaskState::Releasing || (task.place.gpus & gpu_bit(gpu)) == 0) continue;
    const PinOwner other(cluster.shape_of(task), task.job);
    if (owner.valid() && other != owner) return false;
    owner = other;
  }
  return true;
}

}  // namespace

bool is_sound(const Cluster& cluster, const Task& task) {
  const NodeState& node = cluster.node(task.place.node);
  bool sound = in_balance(node.cpu_milli) && in_balance(node.memory_bytes);
  for (const Ledger& named : node.named) sound &= in_balance(named);
  for_each_gpu(task.place.gpus, [&](int gpu) {
    const GpuState& books = node.gpus[static_cast<std::size_t>(gpu)];
    sound &= in_balance(books.milli) && in_balance(books.memory_mib);
    if (books.pinned(View::Future)) sound &= only_one_owner_on(cluster, node, gpu);
  });
  for (const MigPick& pick : task.place.mig)
    for (const auto& gpu : node.mig)
      for (const auto& instance : gpu.instances)
        if (gpu.gpu == pick.gpu && instance.id == pick.id)
          sound &= task.state == TaskState::Nominated ? !instance.used || instance.releasing
                                                      : !instance.nominated;
  return sound;
}

TaskId place_of(const Cluster& cluster, const VictimTask& member, TaskState state) {
  for (const TaskId id : cluster.job(member.job).tasks) {
    const Task& task = cluster.task(id);
    if (task.group == member.group && task.rank == member.rank && task.state == state) return id;
  }
  return {};
}

namespace {

bool has_instance(const Task& task, const MigPick& pick) {
  return std::any_of(task.place.mig.begin(), task.place.mig.end(), [&](const MigPick& other) {
    return other.gpu == pick.gpu && other.id == pick.id;
  });
}

}  // namespace

bool shares_devices(const Task& a, const Task& b) {
  return a.place.node == b.place.node &&
         ((a.place.gpus & b.place.gpus) != 0 ||
          std::any_of(b.place.mig.begin(), b.place.mig.end(),
                      [&](const MigPick& pick) { return has_instance(a, pick); }));
}

// A member of the same group is to move to where this one is, and this one elsewhere: they are
// alike, so this one stays and the other goes there.
void exchange_with_sibling(Trial& trial, const VictimTask& task) {
  const Cluster& cluster = trial.cluster();
  const TaskId promise = place_of(cluster, task, TaskState::Nominated);
  if (task.nominated || !promise.valid() || cluster.task(task.id).state != TaskState::Releasing)
    return;
  // Packs of ranks lie together: there a member is not as good as another.
  if (!cluster.shape_of(task.job).groups[static_cast<std::size_t>(task.group)].slices.empty())
    return;
  const Task own = cluster.task(task.id), moved = cluster.task(promise);
  std::vector<TaskId> siblings = cluster.job(task.job).tasks;
  std::sort(siblings.begin(), siblings.end(),
            [&](TaskId a, TaskId b) { return cluster.task(a).rank < cluster.task(b).rank; });
  for (const TaskId id : siblings) {
    const Task sibling = cluster.task(id);
    const bool takes_it = sibling.state == TaskState::Nominated && id != promise &&
                          sibling.group == task.group && sibling.place.node == own.place.node &&
                          (moved.place.node != own.place.node || shares_devices(sibling, own));
    if (!takes_it) continue;
    const std::size_t mark = trial.mark();
    trial.drop(promise);
    trial.drop(id);
    trial.spare(task.id);
    const TaskId there = trial.place(task.job, sibling.group, sibling.rank, moved.place,
                                     TaskState::Nominated, sibling.since);
    if (is_sound(cluster, cluster.task(task.id)) && is_sound(cluster, cluster.task(there))) return;
    trial.rollback(mark);
  }
}

namespace {

// For each MIG instance that `own` has and `moved` has not, one of the same kind on the same GPU
// that only `moved` has; empty if there is none for some.
std::vector<std::pair<MigPick, MigPick>> like_instances(const Task& own, const Task& moved) {
  std::vector<MigPick> left;
  for (const MigPick& pick : moved.place.mig)
    if (!pick.create && !has_instance(own, pick)) left.push_back(pick);
  std::vector<std::pair<MigPick, MigPick>> pairs;
  for (const MigPick& pick : own.place.mig) {
    if (has_instance(moved, pick)) continue;
    const auto like = std::find_if(left.begin(), left.end(), [&](const MigPick& other) {
      return other.gpu == pick.gpu && other.profile == pick.profile;
    });
    if (like == left.end()) return {};
    pairs.emplace_back(pick, *like);
    left.erase(like);
  }
  return pairs;
}

// Tasks that are to get one of these instances, in order.
std::vector<TaskId> promised_there(const Cluster& cluster, const Task& own) {
  std::vector<TaskId> tasks;
  for (const TaskId id : cluster.node(own.place.node).tasks) {
    const Task& task = cluster.task(id);
    if (task.state == TaskState::Nominated && shares_devices(task, own)) tasks.push_back(id);
  }
  const auto key = [&](TaskId id) {
    const Task& task = cluster.task(id);
    return std::tuple(cluster.job(task.job).seq, task.group, task.rank);
  };
  std::sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) { return key(a) < key(b); });
  return tasks;
}

}  // namespace

// Somebody is to get a MIG instance of this task, and this one another that is just like it on the
// same GPU: they exchange them, and this one stays.
void exchange_instances(Trial& trial, const VictimTask& task) {
  const Cluster& cluster = trial.cluster();
  const TaskId promise = place_of(cluster, task, TaskState::Nominated);
  if (task.nominated || !promise.valid() || cluster.task(task.id).state != TaskState::Releasing)
    return;
  const Task own = cluster.task(task.id), moved = cluster.task(promise);
  if (own.place.node != moved.place.node) return;
  const auto pairs = like_instances(own, moved);
  if (pairs.empty()) return;
  const std::size_t mark = trial.mark();
  trial.drop(promise);
  std::vector<Task> others;
  for (const TaskId id : promised_there(cluster, own)) {
    others.push_back(cluster.task(id));
    trial.drop(id);
  }
  trial.spare(task.id);
  bool sound = true;
  for (Task& other : others) {
    for (MigPick& pick : other.place.mig)
      for (const auto& [has, gets] : pairs)
        if (pick.gpu == has.gpu && pick.id == has.id) pick = gets;
    const TaskId there = trial.place(other.job, other.group, other.rank, other.place,
                                     TaskState::Nominated, other.since);
    sound &= is_sound(cluster, cluster.task(there));
  }
  if (!sound || !is_sound(cluster, cluster.task(task.id))) trial.rollback(mark);
}

}  // namespace gs
