// preempt: inside a tenant, jobs of lower priority make room for those of higher priority.
#include "cycle/make_room.hpp"
#include "cycle/room_phase.hpp"
#include "queue/quota.hpp"

namespace gs {

void run_preempt(CycleContext& context) {
  RoomPhase phase(context, {});
  for (JobId job = phase.next(); job.valid(); job = phase.next()) {
    const JobRecord& record = context.cluster.job(job);
    if (!phase.may_evict_others(job)) continue;
    RoomAsk ask{job, next_members(context.cluster, job, nullptr), {}, false};
    if (!record.preemptible &&
        over_guaranteed(context.cluster, record.tenant, phase.least_usage_of(job, ask.members)))
      continue;
    ask.verdict = [](std::size_t, const Simulation&) { return true; };
    phase.make_room(ask, {job, [&](TenantId tenant) { return tenant == record.tenant; },
                          record.priority, false});
  }
}

}  // namespace gs
