#include "cycle/victims.hpp"

#include <algorithm>

namespace gs {
namespace {

constexpr std::uint32_t kPutBack = std::numeric_limits<std::uint32_t>::max();

// GPU-minutes that would have to be run again, and a surcharge for each time it was evicted before.
// Who only has a promise loses nothing.
std::int64_t loss_of(const JobRecord& record, std::int64_t gpu_milli, Instant now) {
  if (record.active_tasks == record.nominated_tasks) return 0;
  const std::int64_t gpus = std::max<std::int64_t>(1, gpu_milli / kWholeGpu);
  const std::int64_t ran_min = std::max<std::int64_t>(0, (now - record.started).ms / 60'000);
  const std::int64_t again = record.checkpointable ? 0 : ran_min * gpus;
  constexpr std::int64_t kRestartMinutes = 30;
  return again + record.preemptions * kRestartMinutes * gpus;
}

}  // namespace

bool VictimPool::may_leave(JobId job) const {
  const Cluster& cluster = context_.cluster;
  const JobRecord& record = cluster.job(job);
  if (!record.preemptible || record.state == JobState::Stopping) return false;
  if (record.max_preemptions > 0 && record.preemptions >= record.max_preemptions) return false;
  const bool runs = record.active_tasks > record.nominated_tasks;
  if (runs && (context_.now - record.started).ms < record.min_runtime_ms) return false;
  for (TenantId id = record.tenant; id.valid(); id = cluster.tenant(id).parent)
    if (!cluster.tenant(id).spec.allow_preemption) return false;
  return true;
}

void VictimPool::collect() {
  collected_ = true;
  for (const Decision& d : context_.decisions)
    if (d.kind == Decision::Kind::Start) ++fresh_[d.job];
  const Cluster& cluster = context_.cluster;
  std::vector<bool> seen(cluster.job_count(), false);
  for (std::size_t n = 0; n < cluster.node_count(); ++n)
    for (const TaskId id : cluster.node(NodeId{n}).tasks) {
      const Task& task = cluster.task(id);
      if (task.state == TaskState::Releasing || seen[task.job.index()]) continue;
      seen[task.job.index()] = true;
      if (may_leave(task.job)) jobs_[cluster.job(task.job).tenant].push_back(task.job);
    }
  for (auto& [tenant, jobs] : jobs_) tenants_.push_back(tenant);
  std::sort(tenants_.begin(), tenants_.end());
  for (const TenantId tenant : tenants_) sort(tenant);
}

void VictimPool::sort(TenantId tenant) {
  auto& jobs = jobs_[tenant];
  std::erase_if(jobs, [&](JobId job) { return context_.cluster.job(job).active_tasks == 0; });
  std::vector<std::pair<JobKey, JobId>> keyed;
  for (const JobId job : jobs) keyed.emplace_back(key(job, nullptr), job);
  std::sort(keyed.begin(), keyed.end(),
            [](const auto& a, const auto& b) { return before(b.first, a.first); });
  std::transform(keyed.begin(), keyed.end(), jobs.begin(), [](const auto& k) { return k.second; });
}

const std::vector<TenantId>& VictimPool::tenants() {
  if (!collected_) collect();
  return tenants_;
}

const std::vector<JobId>& VictimPool::of(TenantId tenant) {
  if (!collected_) collect();
  if (stale_.erase(tenant) > 0) sort(tenant);
  return jobs_[tenant];
}

void VictimPool::changed(JobId job) { stale_.insert(context_.cluster.job(job).tenant); }

JobKey VictimPool::key(JobId job, const TaskMarks* taken) const {
  const Cluster& cluster = context_.cluster;
  const JobRecord& record = cluster.job(job);
  std::int64_t gpu_milli = 0;
  for (const TaskId id : record.tasks)
    if (cluster.task(id).state != TaskState::Releasing)
      gpu_milli += cluster.usage(cluster.task(id)).gpu_milli;
  const auto fresh = fresh_.find(job);
  const int untold = record.nominated_tasks + (fresh == fresh_.end() ? 0 : fresh->second);
  const std::int64_t order = untold >= record.active_tasks
                                 ? std::numeric_limits<std::int64_t>::min()
                                 : order_key(record.priority, {}, 0);
  return {order, fill_of(cluster, job, taken), loss_of(record, gpu_milli, context_.now),
          record.submitted, record.seq};
}

UnitStream::UnitStream(VictimPool& pool, const Ask& ask)
    : pool_(pool),
      ask_(ask),
      tenants_(pool.context().cluster, pool.context().shares, pool.context().config.tier_step),
      tree_(pool.context().cluster, tenants_, OrderTree::Way::TakeFrom) {
  // A move takes nothing from anybody.
  if (!ask.only_movable)
    untouchable_ = pool.context().eviction_order.above(pool.context().cluster.job(ask.for_job).seq);
  for (const TenantId tenant : pool.tenants()) {
    if (!ask.from(tenant)) continue;
    sources_.push_back({&pool.of(tenant), 0});
    add_next_of(sources_.size() - 1);
  }
}

bool UnitStream::eligible(JobId job) const {
  const JobRecord& record = pool_.context().cluster.job(job);
  if (job == ask_.for_job || record.active_tasks == 0) return false;
  if (untouchable_.contains(record.seq)) return false;
  // Room that somebody lost its place for is not passed on in the same round.
  if (!ask_.only_movable && pool_.context().evictors.contains(job)) return false;
  return record.priority < ask_.below_priority && (!ask_.only_movable || record.movable);
}

void UnitStream::add_next_of(std::size_t source) {
  Source& from = sources_[source];
  while (from.next < from.jobs->size()) {
    const JobId job = (*from.jobs)[from.next++];
    if (eligible(job)) return add(job, static_cast<std::uint32_t>(source));
  }
}

// What the job loses next; nothing if its disruption budget is used up and it would not leave as a
// whole.
std::vector<TaskId> UnitStream::unit_of(JobId job) const {
  const Cluster& cluster = pool_.context().cluster;
  std::vector<TaskId> unit = next_to_leave(cluster, job, &taken_);
  const int budget = cluster.job(job).disruption_budget;
  if (budget == 0) return unit;
  const auto count = [&](const auto& map) {
    const auto it = map.find(job);
    return it == map.end() ? 0 : it->second;
  };
  const int taken = count(shrunk_);
  const bool whole = taken + static_cast<int>(unit.size()) == cluster.job(job).active_tasks;
  const int gone = taken + count(pool_.context().evicted) + static_cast<int>(unit.size());
  if (!whole && gone > budget) unit.clear();
  return unit;
}

void UnitStream::add(JobId job, std::uint32_t tag) {
  const Cluster& cluster = pool_.context().cluster;
  Amounts held{};
  const std::vector<TaskId> unit = unit_of(job);
  if (unit.empty()) return;
  for (const TaskId id : unit) held = held + amounts(cluster.usage(cluster.task(id)));
  tree_.add({job, pool_.key(job, &taken_), held, tag});
}

const Unit* UnitStream::at(std::size_t i) {
  const Cluster& cluster = pool_.context().cluster;
  while (units_.size() <= i && !tree_.empty()) {
    const OrderTree::Head head = tree_.pop();
    auto unit = std::make_unique<Unit>();
    unit->job = head.job;
    for (const TaskId id : unit_of(head.job)) {
      const Task& task = cluster.task(id);
      const auto promise =
          task.state == TaskState::Nominated ? std::make_shared<const Task>(task) : nullptr;
      unit->tasks.push_back({id, task.job, task.group, task.rank, task.place.node,
                             amounts(cluster.usage(task)), promise});
      taken_.set(id);
    }
    shrunk_[head.job] += static_cast<int>(unit->tasks.size());
    units_.push_back(std::move(unit));
    if (head.tag != kPutBack) add_next_of(head.tag);
    if (shrunk_[head.job] < cluster.job(head.job).active_tasks) add(head.job, kPutBack);
  }
  return i < units_.size() ? units_[i].get() : nullptr;
}

}  // namespace gs
