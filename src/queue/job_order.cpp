#include "queue/job_order.hpp"

#include "base/check.hpp"

namespace gs {

JobOrder::JobOrder(const Cluster& cluster, const FairShares& shares, const Queue& queue,
                   const Config& config, Filter filter)
    : cluster_(cluster),
      queue_(queue),
      aging_(config.aging_per_hour),
      tenants_(cluster, shares, config.tier_step),
      tree_(cluster, tenants_, OrderTree::Way::Serve) {
  for (const LaneId lane : queue.busy())
    if (const Queue::Lane& of = queue.lane(lane); !filter.only_preemptible || of.preemptible)
      add(lane, of.line.front(), first_amounts(of.shape));
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

void JobOrder::add(LaneId id, const Line::Entry* entry, const Amounts& amounts) {
  if (entry == nullptr) return;
  const Queue::Lane& lane = queue_.lane(id);
  const std::int64_t key = order_key(lane.priority, entry->submitted, aging_);
  tree_.add({entry->job, {key, Fill::BelowMin, 0, entry->submitted, entry->seq}, amounts, id.v},
            lane.tenant);
}

JobId JobOrder::next() {
  if (tree_.empty()) return JobId{};
  last_ = tree_.pop();
  lane_.v = last_.tag;
  return last_.job;
}

// What follows in a lane is a twin of the last one, and asks for the same.
void JobOrder::handled() {
  if (lane_.valid()) add(lane_, queue_.lane(lane_).line.front(), last_.amounts);
}

void JobOrder::passed(JobId job) {
  CHECK(job == last_.job);
  if (!lane_.valid()) return;
  const Line& line = queue_.lane(lane_).line;
  add(lane_, line.after(last_.key.submitted, last_.key.seq), last_.amounts);
}

void JobOrder::put_back(JobId job) {
  tree_.add(
      {job, job_key(cluster_, job, aging_), next_amounts(cluster_, job, nullptr), LaneId::kNone});
}

}  // namespace gs
