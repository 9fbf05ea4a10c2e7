#include "cluster/cluster.hpp"

#include <algorithm>

#include "base/check.hpp"

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

}  // namespace gs
