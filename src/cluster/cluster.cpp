#include "cluster/cluster.hpp"

#include <algorithm>
#include <tuple>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "model/mig.hpp"

namespace gs {

const char* to_string(JobState state) {
  switch (state) {
    case JobState::Waiting:
      return "waiting";
    case JobState::Held:
      return "held";
    case JobState::Starting:
      return "starting";
    case JobState::Running:
      return "running";
    case JobState::Evicting:
      return "evicting";
    case JobState::Stopping:
      return "stopping";
    case JobState::Completed:
      return "completed";
    case JobState::Failed:
      return "failed";
    case JobState::Cancelled:
      return "cancelled";
  }
  return "?";
}

namespace {

template <typename Map>
typename Map::mapped_type look_up(const Map& map, const std::string& key) {
  const auto it = map.find(key);
  return it == map.end() ? typename Map::mapped_type{} : it->second;
}

}  // namespace

NodeId Cluster::find_node(const std::string& name) const { return look_up(node_by_name_, name); }
JobId Cluster::find_job(const std::string& id) const { return look_up(job_by_id_, id); }
TenantId Cluster::find_tenant(const std::string& id) const { return look_up(tenant_by_id_, id); }

// ---------------------------------------------------------------- nodes

void Cluster::set_topology(std::vector<std::string> levels) {
  domains_ = DomainTree{};
  domains_.set_levels(std::move(levels));
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (!nodes_[i].gone)
      nodes_[i].domain = domains_.attach(NodeId{i}, nodes_[i].spec.name, nodes_[i].spec.domain);
  ++structure_version_;
}

const Layout* Cluster::intern(const Layout& layout) {
  for (const Layout& known : layouts_)
    if (known == layout) return &known;
  layouts_.push_back(layout);
  return &layouts_.back();
}

void Cluster::touch(NodeId id) {
  // Readers further behind than this rebuild; it costs them less than walking a longer log.
  const std::size_t keep = std::max<std::size_t>(1024, nodes_.size());
  if (log_.size() >= 2 * keep) {
    log_.erase(log_.begin(), log_.begin() + static_cast<std::ptrdiff_t>(keep));
    log_base_ += keep;
  }
  log_.push_back(id);
}

namespace {

bool overlaps(const MigGpuState& gpu, const MigSlotState& instance) {
  return instance.start >= 0 &&
         std::any_of(gpu.instances.begin(), gpu.instances.end(), [&](const MigSlotState& other) {
           return other.start >= 0 && (mig_slots(other.start, other.size) &
                                       mig_slots(instance.start, instance.size)) != 0;
         });
}

// One order however the instances came about: which of two like ones is taken must not depend on
// the past.
void sort_by_start(MigGpuState& gpu) {
  std::stable_sort(gpu.instances.begin(), gpu.instances.end(),
                   [](const MigSlotState& a, const MigSlotState& b) { return a.start < b.start; });
}

// Whether the device under a task would be another one after this report.
bool other_device(const Node& before, const Node& after, int gpu) {
  const auto i = static_cast<std::size_t>(gpu);
  if (i >= after.gpus.size()) return true;
  const Gpu& a = before.gpus[i];
  const Gpu& b = after.gpus[i];
  return a.model != b.model || a.memory_mib != b.memory_mib || a.mig_enabled != b.mig_enabled ||
         (!a.uuid.empty() && !b.uuid.empty() && a.uuid != b.uuid);
}

}  // namespace

std::vector<TaskId> Cluster::displaced_by(const Node& spec) const {
  std::vector<TaskId> displaced;
  const NodeId id = find_node(spec.name);
  if (!id.valid() || node(id).gone) return displaced;
  for (const TaskId task_id : node(id).tasks) {
    const Allocation& place = task(task_id).place;
    bool lost = false;
    for_each_gpu(place.gpus, [&](int gpu) { lost |= other_device(node(id).spec, spec, gpu); });
    for (const MigPick& pick : place.mig) lost |= other_device(node(id).spec, spec, pick.gpu);
    if (lost) displaced.push_back(task_id);
  }
  std::sort(displaced.begin(), displaced.end(), [&](TaskId a, TaskId b) {
    const Task& x = task(a);
    const Task& y = task(b);
    return std::tuple(job(x.job).seq, x.group, x.rank, x.state) <
           std::tuple(job(y.job).seq, y.group, y.rank, y.state);
  });
  return displaced;
}

void Cluster::apply_spec(NodeState& node, const Node& spec) {
  node.spec = spec;
  node.layout = intern(layout_of(spec, shapes_.models()));
  node.cpu_milli.capacity = spec.capacity.cpu_milli;
  node.memory_bytes.capacity = spec.capacity.memory_bytes;
  for (auto& ledger : node.named) ledger.capacity = 0;
  for (const auto& [name, amount] : spec.capacity.named) {
    const std::uint32_t id = shapes_.resources().intern(name);
    if (node.named.size() <= id) node.named.resize(id + 1);
    node.named[id].capacity = amount;
  }
  node.gpus.resize(spec.gpus.size());
  node.hot &= first_gpus(static_cast<int>(spec.gpus.size()));
  node.warm &= first_gpus(static_cast<int>(spec.gpus.size()));
  node.busy_now = node.busy_future = node.partly = 0;
  node.healthy = node.whole = 0;
  std::vector<MigGpuState> mig;
  for (std::size_t i = 0; i < spec.gpus.size(); ++i) {
    const Gpu& gpu = spec.gpus[i];
    const GpuMask bit = gpu_bit(static_cast<int>(i));
    node.gpus[i].memory_mib.capacity = gpu.memory_mib;
    if (gpu.health == Health::Healthy) node.healthy |= bit;
    if (!gpu.mig_enabled) node.whole |= bit;
    if (!gpu.mig_enabled) continue;
    // Instances that tasks use keep their ids; the others are taken from the report.
    MigGpuState state{static_cast<int>(i), gpu.mig_dynamic, 1, {}};
    if (const MigGpuState* old = node.mig_gpu(static_cast<int>(i))) {
      state.next_id = old->next_id;
      for (const auto& instance : old->instances)
        if (instance.used || instance.nominated) state.instances.push_back(instance);
    }
    std::vector<bool> matched(state.instances.size(), false);
    for (const auto& reported : gpu.mig) {
      const std::uint32_t profile =
          shapes_.resources().intern("mig:" + canonical_mig_profile(reported.profile));
      bool known = false;
      for (std::size_t k = 0; k < matched.size() && !known; ++k) {
        const auto& instance = state.instances[k];
        if (matched[k] || instance.profile != profile) continue;
        if (reported.start >= 0 && instance.start != reported.start) continue;
        matched[k] = known = true;
      }
      if (known) continue;
      const MigProfile* geometry =
          find_mig_profile(gpu.model, gpu.memory_mib, canonical_mig_profile(reported.profile));
      const MigSlotState instance{
          profile,
          static_cast<std::int8_t>(reported.start),
          static_cast<std::uint8_t>(geometry != nullptr ? geometry->size : 1),
          state.next_id,
          false,
          false,
          false};
      if (overlaps(state, instance)) continue;  // the report is older than what we gave away there
      state.instances.push_back(instance);
      ++state.next_id;
    }
    sort_by_start(state);
    mig.push_back(std::move(state));
  }
  node.mig = std::move(mig);
  for (int i = 0; i < static_cast<int>(spec.gpus.size()); ++i) node.refresh_gpu(i);
}

NodeId Cluster::put_node(const Node& spec) {
  CHECK_MSG(displaced_by(spec).empty(), "node " + spec.name + " takes devices from its tasks");
  NodeId id = find_node(spec.name);
  const bool known = id.valid() && !node(id).gone;
  if (!id.valid()) {
    id = NodeId{nodes_.size()};
    nodes_.emplace_back();
    node_by_name_.emplace(spec.name, id);
  }
  NodeState& state = nodes_[id.index()];
  if (!known) {  // one that returns is a new one: nothing of its past decides
    const std::uint32_t stamp = state.spec_stamp;
    state = NodeState{};
    state.spec_stamp = stamp;
  }
  if (!known || state.spec.domain != spec.domain) {
    if (known) domains_.detach(id, state.domain);
    state.domain = domains_.attach(id, spec.name, spec.domain);
    state.gone = false;
    ++structure_version_;
  }
  if (state.spec.gpus.size() != spec.gpus.size()) ++structure_version_;
  apply_spec(state, spec);
  ++state.spec_stamp;
  ++spec_version_;
  touch(id);
  total_stale_ = true;
  return id;
}

void Cluster::remove_node(NodeId id) {
  NodeState& node = nodes_[id.index()];
  CHECK(!node.gone && node.tasks.empty());
  domains_.detach(id, node.domain);
  node.gone = true;
  ++spec_version_;
  ++structure_version_;
  touch(id);
  total_stale_ = true;
}

void Cluster::set_ready(NodeId id, bool ready) {
  nodes_[id.index()].spec.ready = ready;
  ++nodes_[id.index()].spec_stamp;
  touch(id);
  total_stale_ = true;
}

void Cluster::set_cordoned(NodeId id, bool cordoned) {
  nodes_[id.index()].spec.cordoned = cordoned;
  ++nodes_[id.index()].spec_stamp;
  touch(id);
  total_stale_ = true;
}

void Cluster::set_gpu(NodeId id, int gpu, Health health, Heat heat) {
  NodeState& node = nodes_[id.index()];
  const GpuMask bit = gpu_bit(gpu);
  Gpu& spec = node.spec.gpus[static_cast<std::size_t>(gpu)];
  const bool was_healthy = spec.health == Health::Healthy;
  spec.health = health;
  spec.temperature_c = heat.temperature_c;
  node.healthy = health == Health::Healthy ? node.healthy | bit : node.healthy & ~bit;
  node.hot = heat.hot ? node.hot | bit : node.hot & ~bit;
  node.warm = heat.warm ? node.warm | bit : node.warm & ~bit;
  touch(id);
  if (was_healthy != (health == Health::Healthy)) total_stale_ = true;
}

void Cluster::set_hot(NodeId id, GpuMask hot) {
  nodes_[id.index()].hot = hot;
  touch(id);
}

void Cluster::set_mig(NodeId id, const std::vector<MigPlace>& instances) {
  NodeState& node = nodes_[id.index()];
  for (MigGpuState& gpu : node.mig) {
    gpu.instances.clear();
    const Gpu& spec = node.spec.gpus[static_cast<std::size_t>(gpu.gpu)];
    for (const MigPlace& place : instances) {
      if (place.gpu != gpu.gpu) continue;
      const MigProfile* geometry = find_mig_profile(spec.model, spec.memory_mib, place.profile);
      gpu.instances.push_back({shapes_.resources().intern("mig:" + place.profile),
                               static_cast<std::int8_t>(place.start),
                               static_cast<std::uint8_t>(geometry != nullptr ? geometry->size : 1),
                               gpu.next_id++, false, false, false});
    }
  }
  touch(id);
}

void Cluster::set_performance(NodeId id, double performance) {
  nodes_[id.index()].performance = performance;
  touch(id);
}

namespace {

// A GPU that may be cut anew counts as a whole one; else it is worth what it is cut into.
std::int64_t mig_total(const ShapeTable& shapes, const MigGpuState& gpu) {
  if (gpu.dynamic) return kWholeGpu;
  int slices = 0;
  for (const auto& instance : gpu.instances)
    slices += mig_compute_slices(shapes.resources().name(instance.profile).substr(4));  // "mig:"
  return shapes.mig_milli(slices);
}

}  // namespace

const Usage& Cluster::total() const {
  if (!total_stale_) return total_;
  total_stale_ = false;
  total_ = {};
  smallest_gpu_memory_mib_ = largest_gpu_memory_mib_ = 0;
  for (const NodeState& node : nodes_) {
    if (!node.schedulable()) continue;
    total_.cpu_milli += node.cpu_milli.capacity;
    total_.memory_bytes += node.memory_bytes.capacity;
    for_each_gpu(node.healthy & node.whole, [&](int gpu) {
      const std::int64_t memory = node.gpus[static_cast<std::size_t>(gpu)].memory_mib.capacity;
      total_.gpu_milli += kWholeGpu;
      total_.gpu_memory_mib += memory;
      if (memory > 0 && (smallest_gpu_memory_mib_ == 0 || memory < smallest_gpu_memory_mib_))
        smallest_gpu_memory_mib_ = memory;
      largest_gpu_memory_mib_ = std::max(largest_gpu_memory_mib_, memory);
    });
    for (const auto& gpu : node.mig)
      if ((node.healthy & gpu_bit(gpu.gpu)) != 0) total_.gpu_milli += mig_total(shapes_, gpu);
  }
  return total_;
}

// ---------------------------------------------------------------- tenants

TenantId Cluster::put_tenant(const Tenant& spec) {
  TenantId id = find_tenant(spec.id);
  const auto order = [&](TenantId a, TenantId b) {
    const Tenant& x = tenant(a).spec;
    const Tenant& y = tenant(b).spec;
    return x.created_order != y.created_order ? x.created_order < y.created_order : x.id < y.id;
  };
  if (!id.valid()) {
    id = TenantId{tenants_.size()};
    tenants_.emplace_back();
    tenant_by_id_.emplace(spec.id, id);
    tenants_.back().parent = find_tenant(spec.parent);
    tenants_.back().spec = spec;
  } else {
    CHECK_MSG(tenant(id).gone || tenant(id).spec.parent == spec.parent,
              "a tenant's parent can't change");
    if (tenant(id).gone) {  // one that returns is a new one
      tenant(id) = TenantRecord{};
      tenant(id).parent = find_tenant(spec.parent);
    }
    tenant(id).spec = spec;
  }
  auto& siblings = tenant(id).parent.valid() ? tenant(tenant(id).parent).children : top_tenants_;
  if (std::find(siblings.begin(), siblings.end(), id) == siblings.end()) siblings.push_back(id);
  std::sort(siblings.begin(), siblings.end(), order);
  return id;
}

void Cluster::remove_tenant(TenantId id) {
  TenantRecord& record = tenant(id);
  CHECK(record.children.empty() && record.used == Usage{});
  auto& siblings = record.parent.valid() ? tenant(record.parent).children : top_tenants_;
  siblings.erase(std::find(siblings.begin(), siblings.end(), id));
  record.gone = true;
}

// ---------------------------------------------------------------- jobs

void Cluster::count_gang(JobShapeId shape, int sign) {
  std::int64_t gpus = 1;
  for (const ShapedGroup& group : shapes_.at(shape).groups)
    gpus = std::max(gpus, std::int64_t{group.count} * std::max(1, shapes_.at(group.shape).gpus()));
  int& count = gangs_[gpus];
  count += sign;
  if (count == 0) gangs_.erase(gpus);
}

JobId Cluster::add_job(const Job& job, TenantId tenant) {
  CHECK(!find_job(job.id).valid());
  JobId id;
  if (free_jobs_.empty()) {
    id = JobId{jobs_.size()};
    jobs_.emplace_back();
  } else {
    id = free_jobs_.back();
    free_jobs_.pop_back();
  }
  JobRecord& record = jobs_[id.index()];
  record = JobRecord{};
  record.id = job.id;
  record.name = job.name;
  record.tenant = tenant;
  record.shape = shapes_.intern(job);
  count_gang(record.shape, +1);
  record.seq = next_seq_++;
  record.priority = job.priority;
  record.arrived = job.arrived;
  record.submitted = record.waiting_since = job.submitted;
  if (job.expected_runtime) record.expected_runtime_ms = job.expected_runtime->ms;
  if (job.max_runtime) record.max_runtime_ms = job.max_runtime->ms;
  if (job.start_timeout) record.start_timeout_ms = job.start_timeout->ms;
  record.min_runtime_ms = job.min_runtime.ms;
  record.max_preemptions = job.max_preemptions;
  record.disruption_budget = job.disruption_budget;
  record.preemptible = job.preemptible;
  record.can_preempt_others = job.can_preempt_others;
  record.checkpointable = job.checkpointable;
  record.movable = job.movable;
  record.state = job.held ? JobState::Held : JobState::Waiting;
  record.labels = job.labels;
  record.active.assign(shapes_.at(record.shape).groups.size(), 0);
  job_by_id_.emplace(job.id, id);
  return id;
}

Job Cluster::job_value(JobId id) const {
  const JobRecord& record = job(id);
  const JobShape& shape = shape_of(id);
  Job value;
  value.id = record.id;
  value.name = record.name;
  value.tenant = tenant(record.tenant).spec.id;
  value.priority = record.priority;
  value.submitted = record.submitted;
  value.sets = shape.sets;
  for (const ShapedGroup& group : shape.groups)
    value.groups.push_back({group.name, shapes_.at(group.shape).request, group.count,
                            group.min == 0 ? kNoMinimum : group.min, group.set, group.topology,
                            group.slices});
  const auto duration = [](std::int64_t ms) {
    return ms < 0 ? std::optional<Duration>{} : Duration{ms};
  };
  value.expected_runtime = duration(record.expected_runtime_ms);
  value.max_runtime = duration(record.max_runtime_ms);
  value.start_timeout = duration(record.start_timeout_ms);
  value.min_runtime = Duration{record.min_runtime_ms};
  value.preemptible = record.preemptible;
  value.can_preempt_others = record.can_preempt_others;
  value.max_preemptions = record.max_preemptions;
  value.checkpointable = record.checkpointable;
  value.movable = record.movable;
  value.disruption_budget = record.disruption_budget;
  value.arrived = record.arrived;
  value.held = record.state == JobState::Held;
  value.labels = record.labels;
  return value;
}

void Cluster::forget_job(JobId id) {
  JobRecord& record = job(id);
  CHECK(record.tasks.empty());
  job_by_id_.erase(record.id);
  count_gang(record.shape, -1);
  record = JobRecord{};
  record.state = JobState::Cancelled;
  free_jobs_.push_back(id);
}

void Cluster::set_job_shape(JobId id, const Job& changed) {
  JobRecord& record = job(id);
  CHECK(record.tasks.empty());
  count_gang(record.shape, -1);
  record.shape = shapes_.intern(changed);
  count_gang(record.shape, +1);
  record.active.assign(shapes_.at(record.shape).groups.size(), 0);
}

std::vector<int> Cluster::missing_ranks(JobId id, int group) const {
  const JobRecord& record = job(id);
  const auto count =
      static_cast<std::size_t>(shape_of(id).groups[static_cast<std::size_t>(group)].count);
  std::vector<bool> there(count, false);
  if (record.active[static_cast<std::size_t>(group)] > 0)
    for (const TaskId placed : record.tasks) {
      const Task& t = task(placed);
      if (t.group == group && t.state != TaskState::Releasing)
        there[static_cast<std::size_t>(t.rank)] = true;
    }
  for (const auto& [ended_group, rank] : record.ended)
    if (ended_group == group) there[static_cast<std::size_t>(rank)] = true;
  std::vector<int> missing;
  for (std::size_t i = 0; i < count; ++i)
    if (!there[i]) missing.push_back(static_cast<int>(i));
  return missing;
}

bool Cluster::is_leaving(JobId id, int group, int rank) const {
  const JobRecord& record = job(id);
  return record.releasing_tasks > 0 &&
         std::any_of(record.tasks.begin(), record.tasks.end(), [&](TaskId task_id) {
           const Task& t = task(task_id);
           return t.group == group && t.rank == rank && t.state == TaskState::Releasing;
         });
}

// ---------------------------------------------------------------- tasks

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
    sort_by_start(gpu);
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
    JobId& owner = node.gpus[static_cast<std::size_t>(gpu)].pin_owner;
    owner = {};
    for (const TaskId id : node.tasks) {
      const Task& task = tasks_[id.index()];
      if (task.state != TaskState::Releasing && (task.place.gpus & gpu_bit(gpu)) != 0 &&
          !shape_of(task).request.gpu.pinned_ids.empty())
        owner = task.job;
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
