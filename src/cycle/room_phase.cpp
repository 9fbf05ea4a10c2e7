#include "cycle/room_phase.hpp"

#include <algorithm>

#include "queue/quota.hpp"

namespace gs {

RoomPhase::RoomPhase(CycleContext& context, JobOrder::Filter filter)
    : context_(context),
      order_(context.cluster, context.shares, context.queue, context.config, filter),
      pool_(context) {}

JobId RoomPhase::next() {
  for (JobId job = order_.next(); job.valid(); job = order_.next())
    if (is_ready(context_.cluster, job)) return job;
  return JobId{};
}

void RoomPhase::make_room(const RoomAsk& ask, const UnitStream::Ask& victims) {
  if (ask.members.empty()) return;
  UnitStream stream(pool_, victims);
  RoomMaker maker(context_, stream, ask);
  const bool found = maker.run();
  simulations_ += maker.simulations();
  if (!found) return;
  for (const JobId job : maker.evicted()) pool_.changed(job);
  order_.handled();
  order_.refresh();
}

bool RoomPhase::may_evict_others(JobId job) const {
  const JobRecord& record = context_.cluster.job(job);
  if (!record.can_preempt_others) return false;
  for (TenantId id = record.tenant; id.valid(); id = context_.cluster.tenant(id).parent)
    if (!context_.cluster.tenant(id).spec.can_preempt_others) return false;
  return true;
}

Amounts RoomPhase::amounts_of(JobId job, const std::vector<Member>& members,
                              std::size_t count) const {
  const Cluster& cluster = context_.cluster;
  Amounts sum{};
  for (std::size_t i = 0; i < count; ++i)
    sum = sum + amounts(usage_of(cluster.shapes().at(shape_of(cluster, job, members[i].group)),
                                 cluster.smallest_gpu_memory_mib()));
  return sum;
}

Usage RoomPhase::least_usage_of(JobId job, const std::vector<Member>& members) const {
  const Cluster& cluster = context_.cluster;
  Usage sum;
  for (const Member& member : members)
    sum += least_usage(cluster, cluster.shapes().at(shape_of(cluster, job, member.group)));
  return sum;
}

bool RoomPhase::enough_free_gpus(JobId job, const std::vector<Member>& members) const {
  const Cluster& cluster = context_.cluster;
  std::int64_t need_milli = 0, need_mib = 0;
  for (const Member& member : members) {
    const GpuRequest& gpu = cluster.shapes().at(shape_of(cluster, job, member.group)).request.gpu;
    if (gpu.sharing == Sharing::Mig) continue;
    need_milli +=
        std::int64_t{gpu.count} * (gpu.sharing == Sharing::Shared ? gpu.milli : kWholeGpu);
    need_mib += gpu.sharing == Sharing::Shared ? gpu.count * gpu.memory_mib : 0;
  }
  for (std::size_t i = 0; i < cluster.node_count() && (need_milli > 0 || need_mib > 0); ++i) {
    const NodeState& node = cluster.node(NodeId{i});
    if (node.gone || !node.schedulable()) continue;
    for_each_gpu(node.usable(), [&](int gpu) {
      const GpuState& books = node.gpus[static_cast<std::size_t>(gpu)];
      need_milli -= std::max<std::int64_t>(0, books.milli.free(View::Future));
      need_mib -= std::max<std::int64_t>(0, books.memory_mib.free(View::Future));
    });
  }
  return need_milli <= 0 && need_mib <= 0;
}

}  // namespace gs
