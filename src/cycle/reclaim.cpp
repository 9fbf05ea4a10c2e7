// reclaim: tenants that hold more than their share give back what others are entitled to.
#include "queue/reclaim.hpp"

#include <algorithm>

#include "cycle/make_room.hpp"
#include "cycle/room_phase.hpp"

namespace gs {
namespace {

// What is lost, as the rules count it: of each job the surplus task by task, then the rest at once.
std::vector<Loss> losses_of(const Cluster& cluster, const std::vector<VictimTask>& victims,
                            const std::vector<VictimTask>& lost) {
  TaskMarks is_lost;
  for (const VictimTask& task : lost) is_lost.set(task.id);
  std::vector<JobId> jobs;
  for (const VictimTask& task : victims)
    if (std::find(jobs.begin(), jobs.end(), task.job) == jobs.end()) jobs.push_back(task.job);
  std::vector<Loss> losses;
  for (const JobId job : jobs) {
    const JobShape& shape = cluster.shape_of(job);
    const TenantId tenant = cluster.job(job).tenant;
    std::vector<int> left(shape.groups.size(), 0);
    Loss core{tenant, {}};
    bool any = false;
    for (const VictimTask& task : victims) {
      if (task.job != job) continue;
      const auto group = static_cast<std::size_t>(task.group);
      const bool surplus = left[group]++ >= shape.groups[group].min;
      if (!is_lost.has(task.id)) continue;
      if (surplus) {
        losses.push_back({tenant, task.amounts});
      } else {
        core.amounts = core.amounts + task.amounts;
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
    const ReclaimRules rules(context.cluster, context.shares);
    const auto claim = [&](std::size_t count) {
      return ReclaimAsk{record.tenant, phase.amounts_of(job, ask.members, count),
                        record.preemptible};
    };
    const ReclaimAsk whole = claim(ask.members.size());
    if (!rules.may_ask(whole)) continue;
    ask.verdict = [&](std::size_t count, const Simulation& simulation) {
      return rules.may_take(claim(count),
                            losses_of(context.cluster, simulation.victims(), simulation.lost()));
    };
    phase.make_room(ask, {job,
                          [&](TenantId tenant) {
                            return tenant != record.tenant && rules.may_lose(whole, tenant);
                          },
                          std::numeric_limits<int>::max(), false});
  }
}

}  // namespace gs
