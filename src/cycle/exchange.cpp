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

TaskId place_of(const Cluster& cluster, JobId job, int group, int rank, TaskState state) {
  for (const TaskId id : cluster.job(job).tasks) {
    const Task& task = cluster.task(id);
    if (task.group == group && task.rank == rank && task.state == state) return id;
  }
  return {};
}

TaskId place_of(const Cluster& cluster, const VictimTask& member, TaskState state) {
  return place_of(cluster, member.job, member.group, member.rank, state);
}

bool is_lost(const Cluster& cluster, const VictimTask& task) {
  return !place_of(cluster, task, TaskState::Running).valid() &&
         !place_of(cluster, task, TaskState::Nominated).valid();
}

namespace {

bool has_instance(const Task& task, int gpu, int id) {
  return std::any_of(task.place.mig.begin(), task.place.mig.end(),
                     [&](const MigPick& pick) { return pick.gpu == gpu && pick.id == id; });
}

}  // namespace

bool shares_devices(const Task& a, const Task& b) {
  return a.place.node == b.place.node &&
         ((a.place.gpus & b.place.gpus) != 0 ||
          std::any_of(b.place.mig.begin(), b.place.mig.end(),
                      [&](const MigPick& pick) { return has_instance(a, pick.gpu, pick.id); }));
}

// A member of the same group is to move to where this one is, and this one elsewhere: they are
// alike, so this one stays and the other goes there.
void exchange_with_sibling(Trial& trial, const VictimTask& task) {
  const Cluster& cluster = trial.cluster();
  const TaskId promise = place_of(cluster, task, TaskState::Nominated);
  if (task.promise || !promise.valid() || cluster.task(task.id).state != TaskState::Releasing)
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

// An instance of the same kind on the same GPU that nobody will have, nor this task itself.
const MigSlotState* free_like(const NodeState& node, const MigPick& pick, const Task& task) {
  for (const MigGpuState& gpu : node.mig)
    for (const MigSlotState& instance : gpu.instances)
      if (gpu.gpu == pick.gpu && instance.profile == pick.profile && instance.free(View::Future) &&
          !has_instance(task, gpu.gpu, instance.id))
        return &instance;
  return nullptr;
}

}  // namespace

bool exchange_instances(Trial& trial, TaskId stays) {
  const Cluster& cluster = trial.cluster();
  if (cluster.task(stays).place.mig.empty()) return true;
  const Task own = cluster.task(stays);
  for (const TaskId id : promised_there(cluster, own)) {
    Task other = cluster.task(id);
    trial.drop(id);
    for (MigPick& pick : other.place.mig) {
      if (!has_instance(own, pick.gpu, pick.id)) continue;
      const MigSlotState* like = free_like(cluster.node(own.place.node), pick, other);
      if (like == nullptr) return false;
      pick.id = like->id;
      pick.start = like->start;
      pick.create = false;
    }
    trial.place(other.job, other.group, other.rank, other.place, TaskState::Nominated, other.since);
  }
  return true;
}

}  // namespace gs
