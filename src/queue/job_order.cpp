#include "queue/job_order.hpp"

namespace gs {

JobOrder::JobOrder(const Cluster& cluster, const FairShares& shares, Queue& queue,
                   const Config& config, Filter filter)
    : cluster_(cluster),
      queue_(queue),
      aging_(config.aging_per_hour),
      tenants_(cluster, shares, config.tier_step),
      tree_(cluster, tenants_, OrderTree::Way::Serve) {
  for (std::size_t i = 0; i < queue.lane_count(); ++i)
    if (!filter.only_preemptible || queue.lane(LaneId{i}).preemptible)
      add_lane(LaneId{i}, queue.head(LaneId{i}));
  for (const auto& [seq, job] : queue.growing())
    if (!filter.only_preemptible || cluster.job(job).preemptible) put_back(job);
}

const Amounts& JobOrder::first_amounts(JobShapeId shape) {
  const auto [it, added] = amounts_.try_emplace(shape.v);
  if (!added) return it->second;
  const std::int64_t memory = cluster_.smallest_gpu_memory_mib();
  const JobShape& job = cluster_.shapes().at(shape);
  for (const Member& member : first_members(job)) {
    const ShapeId task = job.groups[static_cast<std::size_t>(member.group)].shape;
    it->second = it->second + amounts(usage_of(cluster_.shapes().at(task), memory));
  }
  return it->second;
}

void JobOrder::add_lane(LaneId lane, JobId job) {
  if (!job.valid()) return;
  const JobRecord& record = cluster_.job(job);
  tree_.add({job,
             {order_key(record.priority, record.submitted, aging_), Fill::BelowMin, 0,
              record.submitted, record.seq},
             first_amounts(record.shape),
             lane.v});
}

JobId JobOrder::next() {
  if (tree_.empty()) return JobId{};
  const OrderTree::Head head = tree_.pop();
  lane_ = LaneId{};
  lane_.v = head.tag;
  return head.job;
}

void JobOrder::handled() {
  if (lane_.valid()) add_lane(lane_, queue_.head(lane_));
}

void JobOrder::passed(JobId job) {
  if (lane_.valid()) add_lane(lane_, queue_.after(lane_, job));
}

void JobOrder::put_back(JobId job) {
  tree_.add({job, job_key(cluster_, job, aging_), next_amounts(cluster_, job, nullptr),
             Id<struct LaneTag>::kNone});
}

}  // namespace gs
