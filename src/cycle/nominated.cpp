// nominated: jobs that were promised room start as soon as it is free, whole.
#include <algorithm>

#include "cycle/cycle.hpp"

namespace gs {
namespace {

bool has_room(const Ledger& ledger) { return ledger.used + ledger.nominated <= ledger.capacity; }

// Whether everything that is promised on the task's devices is free now. All promises there are
// counted: who is promised less is not kept waiting by this, since nobody is promised the same
// twice.
bool free_now(const Cluster& cluster, const Task& task) {
  if (cluster.is_leaving(task.job, task.group, task.rank)) return false;
  const NodeState& node = cluster.node(task.place.node);
  const Shape& shape = cluster.shape_of(task);
  const auto& need = shape.request.resources;
  const auto fits = [](const Ledger& l, std::int64_t amount) {
    return amount <= 0 || l.used + amount <= l.capacity;
  };
  if (!fits(node.cpu_milli, need.cpu_milli) || !fits(node.memory_bytes, need.memory_bytes))
    return false;
  for (const auto& [id, amount] : shape.named)
    if (amount > 0 && (id >= node.named.size() || !fits(node.named[id], amount))) return false;
  bool free = true;
  for_each_gpu(task.place.gpus, [&](int gpu) {
    const GpuState& books = node.gpus[static_cast<std::size_t>(gpu)];
    free &= has_room(books.milli) && has_room(books.memory_mib) && books.pin_releasing == 0;
    if (!shape.request.gpu.pinned_ids.empty()) free &= books.milli.used == 0;
  });
  for (const MigPick& pick : task.place.mig)
    for (const auto& gpu : node.mig)
      for (const auto& instance : gpu.instances)
        if (gpu.gpu == pick.gpu && instance.id == pick.id) free &= !instance.used;
  return free;
}

// Whether what it needs will be free when everybody has left who is about to. Somebody who was
// found on the node after the promise may have it.
bool will_be_free(const NodeState& node, const Shape& shape) {
  const auto comes = [](const Ledger& l, std::int64_t amount) {
    return amount <= 0 || l.free(View::Future) >= 0;
  };
  const auto& need = shape.request.resources;
  return comes(node.cpu_milli, need.cpu_milli) && comes(node.memory_bytes, need.memory_bytes) &&
         std::all_of(shape.named.begin(), shape.named.end(), [&](const auto& named) {
           return named.second <= 0 ||
                  (named.first < node.named.size() && comes(node.named[named.first], named.second));
         });
}

bool usable(const Cluster& cluster, const Task& task) {
  const NodeState& node = cluster.node(task.place.node);
  if (node.gone || !node.schedulable() || !will_be_free(node, cluster.shape_of(task))) return false;
  GpuMask devices = task.place.gpus;
  for (const MigPick& pick : task.place.mig) devices |= gpu_bit(pick.gpu);
  return (devices & (~node.healthy | node.hot)) == 0;
}

std::vector<TaskId> nominated_tasks(const Cluster& cluster, JobId job) {
  std::vector<TaskId> tasks;
  for (const TaskId id : cluster.job(job).tasks)
    if (cluster.task(id).state == TaskState::Nominated) tasks.push_back(id);
  std::sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) {
    const Task &x = cluster.task(a), &y = cluster.task(b);
    return x.group != y.group ? x.group < y.group : x.rank < y.rank;
  });
  return tasks;
}

void start_or_drop(CycleContext& context, JobId job) {
  const std::vector<TaskId> tasks = nominated_tasks(context.cluster, job);
  Trial trial(context.cluster);
  const bool lost = std::any_of(tasks.begin(), tasks.end(), [&](TaskId id) {
    return !usable(context.cluster, context.cluster.task(id));
  });
  if (lost) {  // the place is worth nothing any more: back to the queue, for a new one
    for (const TaskId id : tasks) trial.drop(id);
    context.keep(trial, job);
    const JobRecord& record = context.cluster.job(job);
    if (record.active_tasks == 0) return;
    context.broken.insert({record.seq, job});  // others of it run on, and may be too few
    context.unsettled = true;
    return;
  }
  for (const TaskId id : tasks) {
    if (!free_now(context.cluster, context.cluster.task(id))) return;
    trial.start(id);
  }
  context.keep(trial, job);
}

}  // namespace

void run_nominated(CycleContext& context) {
  const std::vector<JobId> jobs = context.nominated;
  for (const JobId job : jobs) start_or_drop(context, job);
}

}  // namespace gs
