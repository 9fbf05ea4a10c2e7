// Tasks: placed, moved between states, removed; every book that a task is in changes here.
#include <algorithm>

#include "base/check.hpp"
#include "cluster/cluster.hpp"
#include "model/mig.hpp"

namespace gs {

namespace {

// The device by which a task is counted; -1: it has none.
int first_device(const Allocation& place) {
  if (place.gpus != 0) return std::countr_zero(place.gpus);
  return place.mig.empty() ? -1 : place.mig.front().gpu;
}

}  // namespace

Usage Cluster::usage(const Task& task) const {
  const int first = first_device(task.place);
  const auto& memory = node(task.place.node).layout->memory_mib;
  return usage_of(shape_of(task), first < 0 ? 0 : memory[static_cast<std::size_t>(first)]);
}

void Cluster::charge_tenants(const Task& task, int sign) {
  if (task.state == TaskState::Releasing) return;
  const JobRecord& record = job(task.job);
  const NodeState& on = node(task.place.node);
  const int first = first_device(task.place);
  const Usage usage = this->usage(task);
  for (TenantId id = record.tenant; id.valid(); id = tenant(id).parent) {
    TenantRecord& books = tenant(id);
    if (sign > 0) {
      books.used += usage;
      if (!record.preemptible) books.used_unpreemptible += usage;
    } else {
      books.used -= usage;
      if (!record.preemptible) books.used_unpreemptible -= usage;
    }
    if (first >= 0) {
      const std::uint32_t model = on.layout->model[static_cast<std::size_t>(first)];
      if (books.milli_by_model.size() <= model) books.milli_by_model.resize(model + 1);
      books.milli_by_model[model] += sign * usage.gpu_milli;
    }
  }
}

// Counters of the job, and whether its tenants count it as running.
void Cluster::count_job(const Task& task, int sign) {
  JobRecord& record = job(task.job);
  if (task.state == TaskState::Releasing) {
    record.releasing_tasks += sign;
    return;
  }
  const bool was_active = record.active_tasks > 0;
  record.active[task.group] = static_cast<std::uint16_t>(record.active[task.group] + sign);
  record.active_tasks += sign;
  if (task.state == TaskState::Nominated) record.nominated_tasks += sign;
  const bool is_active = record.active_tasks > 0;
  if (was_active == is_active) return;
  for (TenantId id = record.tenant; id.valid(); id = tenant(id).parent)
    tenant(id).running_jobs += is_active ? 1 : -1;
}

namespace {

// Cuts the instance that the pick asks for; unused instances in its way are destroyed.
void cut_instance(NodeState& node, MigPick& pick) {
  for (auto& gpu : node.mig) {
    if (gpu.gpu != pick.gpu) continue;
    const std::uint8_t wanted = mig_slots(pick.start, pick.size);
    std::erase_if(gpu.instances, [&](const MigSlotState& instance) {
      const bool overlaps = (mig_slots(instance.start, instance.size) & wanted) != 0;
      CHECK(!overlaps || (!instance.used && !instance.nominated));
      return overlaps;
    });
    pick.id = gpu.next_id++;
    gpu.instances.push_back({pick.profile, pick.start, pick.size, pick.id, false, false, false});
    gpu.sort_by_start();
    return;
  }
  CHECK_MSG(false, "MIG pick on a GPU without MIG");
}

// Forgets an instance that was promised to a task but never cut.
void forget_instance(NodeState& node, const MigPick& pick) {
  for (auto& gpu : node.mig)
    if (gpu.gpu == pick.gpu)
      std::erase_if(gpu.instances,
                    [&](const MigSlotState& instance) { return instance.id == pick.id; });
}

}  // namespace

void Cluster::insert_task(TaskId id) {
  const Task& t = task(id);
  NodeState& node = nodes_[t.place.node.index()];
  node.charge(shape_of(t), t.place, t.job, t.state, +1);
  node.tasks.push_back(id);
  job(t.job).tasks.push_back(id);
  charge_tenants(t, +1);
  count_job(t, +1);
  touch(t.place.node);
}

TaskId Cluster::place(JobId job_id, int group, int rank, Allocation place, TaskState state,
                      Instant now) {
  TaskId id;
  if (free_tasks_.empty()) {
    id = TaskId{tasks_.size()};
    tasks_.emplace_back();
  } else {
    id = free_tasks_.back();
    free_tasks_.pop_back();
  }
  for (auto& pick : place.mig)
    if (pick.create) cut_instance(nodes_[place.node.index()], pick);
  tasks_[id.index()] =
      Task{job_id, static_cast<std::uint16_t>(group), state, rank, std::move(place), now};
  insert_task(id);
  return id;
}

// While reservations are worked out, tasks of several jobs may be pinned to one device; whoever is
// left owns it.
void Cluster::find_pin_owners(NodeState& node, GpuMask gpus) {
  for_each_gpu(gpus, [&](int gpu) {
    PinOwner& owner = node.gpus[static_cast<std::size_t>(gpu)].pin_owner;
    owner = {};
    for (const TaskId id : node.tasks) {
      const Task& task = tasks_[id.index()];
      const Shape& shape = shape_of(task);
      if (task.state != TaskState::Releasing && (task.place.gpus & gpu_bit(gpu)) != 0 &&
          !shape.request.gpu.pinned_ids.empty())
        owner = PinOwner(shape, task.job);
    }
  });
}

void Cluster::restore_task(TaskId id, Task task) {
  CHECK(!free_tasks_.empty() && free_tasks_.back() == id);
  free_tasks_.pop_back();
  tasks_[id.index()] = std::move(task);
  if (tasks_[id.index()].started) ++job(tasks_[id.index()].job).started_tasks;
  insert_task(id);
}

void Cluster::set_task_state(TaskId id, TaskState state) {
  Task& t = tasks_[id.index()];
  if (t.state == state) return;
  NodeState& node = nodes_[t.place.node.index()];
  const Shape& shape = shape_of(t);
  charge_tenants(t, -1);
  count_job(t, -1);
  node.charge(shape, t.place, t.job, t.state, -1);
  t.state = state;
  node.charge(shape, t.place, t.job, t.state, +1);
  if (!shape.request.gpu.pinned_ids.empty()) find_pin_owners(node, t.place.gpus);
  charge_tenants(t, +1);
  count_job(t, +1);
  touch(t.place.node);
}

void Cluster::set_started(TaskId id) {
  Task& t = tasks_[id.index()];
  if (!t.started) ++job(t.job).started_tasks;
  t.started = true;
}

void Cluster::hold(NodeId id, const Hold& hold, int sign) {
  NodeState& node = nodes_[id.index()];
  node.cpu_milli.nominated += sign * hold.cpu_milli;
  node.memory_bytes.nominated += sign * hold.memory_bytes;
  for (const auto& [resource, amount] : hold.named) node.named[resource].nominated += sign * amount;
  for (const auto& part : hold.parts) {
    GpuState& books = node.gpus[static_cast<std::size_t>(part.gpu)];
    books.milli.nominated += sign * part.milli;
    books.memory_mib.nominated += sign * part.memory_mib;
    node.refresh_gpu(part.gpu);
  }
  for (const int gpu : hold.mig_gpus) node.gpus[static_cast<std::size_t>(gpu)].mig_holds += sign;
  touch(id);
}

void Cluster::remove_task(TaskId id) {
  Task& t = tasks_[id.index()];
  if (t.started) --job(t.job).started_tasks;
  NodeState& node = nodes_[t.place.node.index()];
  charge_tenants(t, -1);
  count_job(t, -1);
  node.charge(shape_of(t), t.place, t.job, t.state, -1);
  if (t.state == TaskState::Nominated)
    for (const MigPick& pick : t.place.mig)
      if (pick.create) forget_instance(node, pick);
  const auto erase = [id](std::vector<TaskId>& list) {
    const auto it = std::find(list.rbegin(), list.rend(), id);  // what came last goes first
    CHECK(it != list.rend());
    *it = list.back();
    list.pop_back();
  };
  erase(node.tasks);
  erase(job(t.job).tasks);
  if (!shape_of(t).request.gpu.pinned_ids.empty()) find_pin_owners(node, t.place.gpus);
  touch(t.place.node);
  t = Task{};
  free_tasks_.push_back(id);
}

}  // namespace gs
