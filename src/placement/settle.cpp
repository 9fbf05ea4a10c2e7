// The last step of a placement: exact devices on a chosen node, or its old ones for a task that was
// evicted in this very trial and comes back to where it runs.
#include <algorithm>

#include "placement/filters.hpp"
#include "placement/fit.hpp"
#include "placement/placer.hpp"

namespace gs {

bool Placer::Impl::settle(Trial& trial, const PlaceAsk& ask, int group, int rank, NodeId node,
                          View view) {
  if (cluster.job(ask.job).releasing_tasks > 0 && spare(trial, ask, group, rank, node)) return true;
  const Shape& shape = cluster.shapes().at(group_of(ask.job, group).shape);
  // A rank whose old task is still stopping elsewhere must not run twice: it waits for that.
  const bool now =
      view == View::Now && may_use(ask.firmness, view) && !cluster.is_leaving(ask.job, group, rank);
  // Who waits takes what is being freed, also where the node has room: that stays for others.
  const View of = now ? view : View::Future;
  // The node may have been chosen in the other view.
  if (!amounts_fit(cluster.node(node), shape, of)) return false;
  const auto place = devices.choose(cluster, node, shape, of, ask.job);
  if (!place) return false;
  trial.place(ask.job, group, rank, *place, now ? TaskState::Running : TaskState::Nominated,
              ask.now);
  return true;
}

bool Placer::Impl::settle_soonest(Trial& trial, const PlaceAsk& ask, int group, int rank,
                                  NodeId node) {
  for (const View view : {View::Now, View::Future})
    if (may_use(ask.firmness, view) && settle(trial, ask, group, rank, node, view)) return true;
  return false;
}

TaskId Placer::Impl::evicted_twin(const Trial& trial, JobId job, int group, int rank,
                                  NodeId node) const {
  TaskId evicted;
  for (const TaskId id : cluster.job(job).tasks) {
    const Task& task = cluster.task(id);
    const bool twin = task.group == group && task.rank == rank && task.place.node == node;
    if (twin && task.state == TaskState::Releasing) evicted = id;
  }
  if (!evicted.valid()) return {};
  const auto& changes = trial.changes();
  const bool here = std::any_of(changes.rbegin(), changes.rend(), [&](const Trial::Change& change) {
    return change.kind == Trial::Kind::Released && change.task == evicted;
  });
  return here ? evicted : TaskId{};
}

namespace {

bool own_pins_free(const NodeState& node, const Shape& shape, const Task& task, View view) {
  bool free = true;
  for_each_gpu(task.place.gpus, [&](int gpu) {
    const GpuState& books = node.gpus[static_cast<std::size_t>(gpu)];
    const bool others = view == View::Now && (books.milli.used > 0 || books.pin_releasing > 0);
    const bool ours =
        books.pin_owner == PinOwner(shape, task.job) && books.milli.nominated == 0 && !others;
    free &= ours || (node.free_gpus(view) & gpu_bit(gpu)) != 0;
  });
  return free;
}

// Its own devices and amounts.
bool own_devices_free(const Cluster& cluster, const Task& task, const Shape& shape, View view) {
  const NodeState& node = cluster.node(task.place.node);
  if (!amounts_fit(node, shape, view)) return false;
  for (const MigPick& pick : task.place.mig)
    for (const MigSlotState& instance : node.mig_gpu(pick.gpu)->instances)
      if (instance.id == pick.id && instance.nominated) return false;
  if (!shape.request.gpu.pinned_ids.empty()) return own_pins_free(node, shape, task, view);
  if (shape.exclusive()) return (task.place.gpus & ~node.free_gpus(view)) == 0;
  bool free = true;
  for_each_gpu(task.place.gpus, [&](int gpu) {
    const GpuPart part =
        gpu_part(shape.request.gpu, node.layout->memory_mib[static_cast<std::size_t>(gpu)]);
    free &= !node.gpus[static_cast<std::size_t>(gpu)].pinned(view) &&
            node.free_milli(gpu, view) >= part.milli &&
            node.free_memory_mib(gpu, view) >= part.memory_mib;
  });
  return free;
}

}  // namespace

bool Placer::will_fit(JobId job, int group, const Allocation& place, View view) const {
  const Cluster& cluster = impl_->cluster;
  const NodeState& node = cluster.node(place.node);
  const Shape& shape = cluster.shapes().at(impl_->group_of(job, group).shape);
  if (node.gone || refusal(node, shape) != Constraint::None) return false;
  if ((place.gpus & ~(node.usable() & eligible_gpus(*node.layout, shape))) != 0) return false;
  Task task;
  task.job = job;
  task.group = static_cast<std::uint16_t>(group);
  task.place = place;
  return own_devices_free(cluster, task, shape, view);
}

// Whether a task that shares GPUs would lie tighter on others of its node: then it moves there, and
// what it leaves may become whole.
bool Placer::Impl::has_tighter_place(const Task& task) {
  const Shape& shape = cluster.shape_of(task);
  if (shape.request.gpu.sharing != Sharing::Shared || !shape.request.gpu.pinned_ids.empty())
    return false;
  const NodeState& node = cluster.node(task.place.node);
  const auto better = devices.choose(cluster, task.place.node, shape, View::Future, task.job);
  if (!better || better->gpus == task.place.gpus) return false;
  const auto room = [&](GpuMask gpus) {
    std::int64_t milli = 0;
    for_each_gpu(gpus, [&](int gpu) { milli += node.free_milli(gpu, View::Future); });
    return milli;
  };
  return room(better->gpus) < room(task.place.gpus);
}

bool Placer::Impl::spare(Trial& trial, const PlaceAsk& ask, int group, int rank, NodeId node) {
  const TaskId evicted = evicted_twin(trial, ask.job, group, rank, node);
  if (!evicted.valid()) return false;
  if (own_devices_free(cluster, cluster.task(evicted), cluster.shape_of(cluster.task(evicted)),
                       View::Future)) {
    if (has_tighter_place(cluster.task(evicted))) return false;
    trial.spare(evicted);
    return true;
  }
  return cluster.shape_of(cluster.task(evicted)).exclusive() && spare_by_swap(trial, ask, evicted);
}

// Whole GPUs of a node are as good as each other to somebody who only waits for them: whoever is
// nominated for ours takes others, if there are any.
bool Placer::Impl::spare_by_swap(Trial& trial, const PlaceAsk& ask, TaskId evicted) {
  const NodeId node = cluster.task(evicted).place.node;
  const GpuMask own = cluster.task(evicted).place.gpus;
  const std::size_t mark = trial.mark();
  std::vector<Task> moved;
  for (const TaskId id : std::vector<TaskId>(cluster.node(node).tasks)) {
    const Task task = cluster.task(id);
    if (task.state != TaskState::Nominated || (task.place.gpus & own) == 0 ||
        !cluster.shape_of(task).exclusive())
      continue;
    trial.drop(id);
    moved.push_back(task);
  }
  if (own_devices_free(cluster, cluster.task(evicted), cluster.shape_of(cluster.task(evicted)),
                       View::Future)) {
    trial.spare(evicted);
    const bool all = std::all_of(moved.begin(), moved.end(), [&](const Task& task) {
      if (!amounts_fit(cluster.node(node), cluster.shape_of(task), View::Future)) return false;
      const auto place =
          devices.choose(cluster, node, cluster.shape_of(task), View::Future, task.job);
      if (place)
        trial.place(task.job, task.group, task.rank, *place, TaskState::Nominated, ask.now);
      return place.has_value();
    });
    if (all) return true;
  }
  trial.rollback(mark);
  return false;
}

}  // namespace gs
