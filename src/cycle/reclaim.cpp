// reclaim: tenants that hold more than their share give back what others are entitled to.
#include "queue/reclaim.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>

#include "cycle/make_room.hpp"
#include "cycle/room_phase.hpp"

namespace gs {
namespace {

// What this cycle has started so far, and what is promised. A promise may go to somebody else later
// in this cycle: what runs must not have been lost because of it.
struct Fresh {
  TaskMarks tasks;
  std::vector<Amounts> by_tenant;

  void add(const Cluster& cluster, TaskId id) {
    if (tasks.has(id)) return;
    tasks.set(id);
    const Task& task = cluster.task(id);
    Amounts& sum = by_tenant[cluster.job(task.job).tenant.index()];
    sum = sum + amounts(cluster.usage(task));
  }
};

Fresh fresh_of(const CycleContext& context) {
  const Cluster& cluster = context.cluster;
  Fresh fresh;
  fresh.by_tenant.resize(cluster.tenant_count(), Amounts{});
  std::set<std::tuple<JobId, int, int>> started;  // by this cycle, wherever they go after that
  for (const Decision& d : context.decisions)
    if (d.kind == Decision::Kind::Start && !d.moved) started.insert({d.job, d.group, d.rank});
  // Who moves has had as much before, unless it is of this cycle altogether.
  for (const JobId job : context.nominated)
    for (const TaskId id : cluster.job(job).tasks) {
      const Task& task = cluster.task(id);
      if (task.state != TaskState::Nominated) continue;
      if (!cluster.is_leaving(job, task.group, task.rank) ||
          started.contains({job, task.group, task.rank}))
        fresh.add(cluster, id);
    }
  for (const Decision& d : context.decisions) {
    if (d.kind != Decision::Kind::Start || d.moved) continue;
    const Task& task = cluster.task(d.task);
    if (task.job != d.job || task.group != d.group || task.rank != d.rank) continue;  // given up
    if (task.state != TaskState::Releasing) fresh.add(cluster, d.task);
  }
  return fresh;
}

// What is lost, as the rules count it: of each job the surplus task by task, then the rest at once.
std::vector<Loss> losses_of(const Cluster& cluster, const Simulation& simulation,
                            const TaskMarks& fresh) {
  TaskMarks is_lost;
  for (const VictimTask& task : simulation.lost()) is_lost.set(task.id);
  std::vector<std::vector<const VictimTask*>> jobs;
  std::unordered_map<JobId, std::size_t> known;
  for (const VictimTask& task : simulation.victims()) {
    const auto [it, added] = known.try_emplace(task.job, jobs.size());
    if (added) jobs.emplace_back();
    jobs[it->second].push_back(&task);
  }
  // Promises go before what runs: who has only those must not make its tenant lose anything else.
  std::stable_partition(jobs.begin(), jobs.end(), [](const auto& tasks) {
    return std::all_of(tasks.begin(), tasks.end(),
                       [](const auto* t) { return t->promise != nullptr; });
  });
  std::vector<Loss> losses;
  for (const auto& tasks : jobs) {
    const JobShape& shape = cluster.shape_of(tasks.front()->job);
    const TenantId tenant = cluster.job(tasks.front()->job).tenant;
    std::vector<int> left(shape.groups.size(), 0);
    Loss core{tenant, {}, true};
    bool any = false;
    for (const VictimTask* task : tasks) {
      const auto group = static_cast<std::size_t>(task->group);
      const bool surplus = left[group]++ >= shape.groups[group].min;
      if (!is_lost.has(task->id)) continue;
      if (surplus) {
        losses.push_back({tenant, task->amounts, fresh.has(task->id)});
      } else {
        core.amounts = core.amounts + task->amounts;
        core.fresh &= fresh.has(task->id);
        any = true;
      }
    }
    if (any) losses.push_back(core);
  }
  return losses;
}

}  // namespace

void run_reclaim(CycleContext& context) {
  RoomPhase phase(context, {});
  for (JobId job = phase.next(); job.valid(); job = phase.next()) {
    const JobRecord& record = context.cluster.job(job);
    if (!phase.may_evict_others(job)) continue;
    RoomAsk ask{job, next_members(context.cluster, job, nullptr), {}, false};
    const Fresh fresh = fresh_of(context);
    const ReclaimRules rules(context.cluster, context.shares, fresh.by_tenant);
    const auto claim = [&](std::size_t count) {
      return ReclaimAsk{record.tenant, phase.amounts_of(job, ask.members, count),
                        record.preemptible};
    };
    const ReclaimAsk whole = claim(ask.members.size());
    if (!rules.may_ask(whole)) continue;
    ask.verdict = [&](std::size_t count, const Simulation& simulation) {
      return rules.may_take(claim(count), losses_of(context.cluster, simulation, fresh.tasks));
    };
    phase.make_room(ask, {job,
                          [&](TenantId tenant) {
                            return tenant != record.tenant && rules.may_lose(whole, tenant);
                          },
                          std::numeric_limits<int>::max(), false});
  }
}

}  // namespace gs
