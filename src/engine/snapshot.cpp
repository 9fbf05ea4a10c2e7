// Snapshot and restore: the state as plain values, and back. The order in which things are put in
// again is the order in which they came, so that every later decision is the same.
#include <algorithm>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "engine/state.hpp"

namespace gs {
namespace {

NodeSnapshot snapshot_of(const NodeState& node, const Names& resources) {
  NodeSnapshot out{node.spec, node.hot, node.performance, {}};
  for (const MigGpuState& gpu : node.mig)
    for (const MigSlotState& instance : gpu.instances)
      out.mig.push_back(
          {gpu.gpu, resources.name(instance.profile).substr(4), instance.start, false});
  return out;
}

int instance_index(const NodeState& node, const MigPick& pick) {
  const auto& instances = node.mig_gpu(pick.gpu)->instances;
  const auto it = std::find_if(instances.begin(), instances.end(),
                               [&](const MigSlotState& i) { return i.id == pick.id; });
  return static_cast<int>(it - instances.begin());
}

TaskSnapshot snapshot_of(const Task& task, const TaskPlace& place, const NodeState& node) {
  TaskSnapshot out;
  out.group = task.group;
  out.rank = task.rank;
  out.state = static_cast<std::uint8_t>(task.state);
  out.node = place.node;
  out.gpus = task.place.gpus;
  out.mig = place.mig;
  for (const MigPick& pick : task.place.mig) out.mig_instance.push_back(instance_index(node, pick));
  out.since = task.since;
  out.started = task.started;
  return out;
}

// A promised instance that does not exist yet is cut in the books anew.
MigPick pick_of(const NodeState& node, const MigPlace& place, int instance, TaskState state) {
  const MigGpuState* gpu = node.mig_gpu(place.gpu);
  CHECK_MSG(gpu != nullptr && instance < static_cast<int>(gpu->instances.size()),
            "snapshot: a MIG instance of a task is not on its node");
  const MigSlotState& i = gpu->instances[static_cast<std::size_t>(instance)];
  return {static_cast<std::uint8_t>(place.gpu),         i.start, i.size, i.id, i.profile,
          place.create && state == TaskState::Nominated};
}

}  // namespace

WaitSnapshot Engine::Impl::wait_value(JobId id) const {
  WaitSnapshot out;
  if (const auto reason = cycle.reasons().find(queue.lane_of(id));
      queue.contains(id) && reason != cycle.reasons().end()) {
    out.constraint = reason->second.constraint;
    out.quota = reason->second.quota;
  }
  out.searched = cycle.searched(id);
  for (const Reservation& reservation : cycle.reservations())
    if (reservation.job == id) {
      out.start = reservation.start;
      out.nodes = reservation.nodes;
    }
  if (const auto plan = cycle.plans().find(cluster.job(id).seq); plan != cycle.plans().end())
    for (const Plan::Place& place : plan->second.places) {
      TaskSnapshot task;
      task.group = place.group;
      task.rank = place.rank;
      task.node = cluster.node(place.place.node).spec.name;
      task.gpus = place.place.gpus;
      out.plan.push_back(std::move(task));
    }
  return out;
}

void Engine::Impl::restore_wait(JobId id, const WaitSnapshot& value) {
  if (value.constraint && queue.contains(id))
    cycle.restore_wait(queue.lane_of(id), {*value.constraint, value.quota});
  if (value.searched) cycle.restore_search(id);
  if (!value.start) return;
  Plan plan{*value.start, {}};
  for (const TaskSnapshot& task : value.plan)
    if (const NodeId node = cluster.find_node(task.node); node.valid())
      plan.places.push_back({task.group, task.rank, Allocation{node, task.gpus, {}}});
  cycle.restore_reservation({id, *value.start, value.nodes}, cluster.job(id).seq, std::move(plan));
}

Snapshot Engine::snapshot() const {
  const Impl& from = *impl_;
  const Cluster& cluster = from.cluster;
  Snapshot out;
  out.now = from.now;
  out.dirty = from.dirty;
  out.next_seq = cluster.next_seq();
  out.config = from.config;
  out.demand = from.placer.demand().state();
  out.levels = cluster.domains().levels();
  for (std::size_t i = 0; i < cluster.node_count(); ++i)
    if (!cluster.node(NodeId{i}).gone)
      out.nodes.push_back(snapshot_of(cluster.node(NodeId{i}), cluster.shapes().resources()));
  const auto add_tenants = [&](auto&& self, const std::vector<TenantId>& ids) -> void {
    for (const TenantId id : ids) {
      const TenantRecord& t = cluster.tenant(id);
      out.tenants.push_back({t.spec, t.decayed_gpu_hours, t.decayed_at});
      self(self, t.children);
    }
  };
  add_tenants(add_tenants, cluster.top_tenants());
  for (std::size_t i = 0; i < cluster.job_count(); ++i) {
    const JobId id{i};
    const JobRecord& job = cluster.job(id);
    if (is_final(job.state)) continue;
    JobSnapshot value;
    value.job = cluster.job_value(id);
    value.seq = job.seq;
    value.state = static_cast<std::uint8_t>(job.state);
    value.ends_as = static_cast<std::uint8_t>(job.ends_as);
    if (const auto why = from.endings.find(id); why != from.endings.end())
      value.ending = why->second;
    value.started = job.started;
    value.waiting_since = job.waiting_since;
    value.ran_ms = job.ran_ms;
    value.preemptions = job.preemptions;
    value.evicted_for = from.cycle.eviction_order().evicted_for(job.seq);
    value.queued = from.queue.contains(id);
    value.wait = from.wait_value(id);
    value.broken = from.cycle.broken().contains({job.seq, id});
    for (const TaskId task : job.tasks)
      value.tasks.push_back(snapshot_of(cluster.task(task), from.place_value(cluster.task(task)),
                                        cluster.node(cluster.task(task).place.node)));
    for (const auto& [group, rank] : job.ended) value.ended.emplace_back(group, rank);
    out.jobs.push_back(std::move(value));
  }
  std::sort(out.jobs.begin(), out.jobs.end(),
            [](const auto& a, const auto& b) { return a.seq < b.seq; });
  return out;
}

void Engine::Impl::restore(const JobSnapshot& value) {
  cluster.set_next_seq(value.seq);
  const TenantId tenant = cluster.find_tenant(value.job.tenant);
  const JobId id = cluster.add_job(value.job, tenant);
  JobRecord& job = cluster.job(id);
  job.state = static_cast<JobState>(value.state);
  job.ends_as = static_cast<JobState>(value.ends_as);
  if (value.ending) endings[id] = *value.ending;
  job.started = value.started;
  job.waiting_since = value.waiting_since;
  job.ran_ms = value.ran_ms;
  job.preemptions = value.preemptions;
  for (const auto& [group, rank] : value.ended)
    job.ended.emplace_back(static_cast<std::uint16_t>(group), rank);
  ++cluster.tenant(tenant).jobs;
  if (job.state == JobState::Waiting)
    for (TenantId t = tenant; t.valid(); t = cluster.tenant(t).parent)
      ++cluster.tenant(t).waiting_jobs;
  if (job.state == JobState::Held) count_held(tenant, 1);
  for (const TaskSnapshot& task : value.tasks) {
    const NodeId node = cluster.find_node(task.node);
    CHECK_MSG(node.valid(), "snapshot: a task is on a node that is not there");
    const auto state = static_cast<TaskState>(task.state);
    Allocation place{node, task.gpus, {}};
    for (std::size_t i = 0; i < task.mig.size(); ++i)
      place.mig.push_back(pick_of(cluster.node(node), task.mig[i], task.mig_instance[i], state));
    const TaskId placed =
        cluster.place(id, task.group, task.rank, std::move(place), state, task.since);
    if (task.started) cluster.set_started(placed);
  }
  if (cluster.job(id).nominated_tasks > 0) cycle.nominated().push_back(id);
  if (value.broken) cycle.broken().insert({value.seq, id});
  for (const std::uint64_t evictor : value.evicted_for)
    cycle.eviction_order().note(value.seq, evictor);
  if (value.queued) queue.push(id);
  restore_wait(id, value.wait);
  watch_deadline(id);
}

std::unique_ptr<Engine> Engine::restore(const Snapshot& snapshot) {
  auto engine = std::make_unique<Engine>();
  Impl& to = *engine->impl_;
  to.now = snapshot.now;
  to.config = snapshot.config;
  to.placer.set_demand(snapshot.demand);
  to.cluster.set_topology(snapshot.levels);
  for (const NodeSnapshot& value : snapshot.nodes) {
    const NodeId id = to.cluster.put_node(value.node);
    to.cluster.set_mig(id, value.mig);
    to.cluster.set_hot(id, value.hot_gpus);
    for (std::size_t i = 0; i < value.node.gpus.size(); ++i)
      to.report(id, static_cast<int>(i), value.node.gpus[i].health,
                value.node.gpus[i].temperature_c);
    to.cluster.set_performance(id, value.performance);
  }
  for (const TenantSnapshot& value : snapshot.tenants) {
    const TenantId id = to.cluster.put_tenant(value.tenant);
    to.cluster.tenant(id).decayed_gpu_hours = value.decayed_gpu_hours;
    to.cluster.tenant(id).decayed_at = value.decayed_at;
  }
  for (const JobSnapshot& value : snapshot.jobs) to.restore(value);
  to.cluster.set_next_seq(snapshot.next_seq);
  to.dirty = snapshot.dirty;
  return engine;
}

std::uint64_t Engine::hash() const {
  Hash hash;
  hash.add(impl_->cluster.hash()).add(impl_->placer.demand().hash());
  impl_->cycle.eviction_order().add_to(hash);
  return hash.value();
}

}  // namespace gs
