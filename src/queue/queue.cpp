#include "queue/queue.hpp"

#include <cmath>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "queue/members.hpp"

namespace gs {

std::int64_t order_key(int priority, Instant submitted, double aging_per_hour) {
  // In thousandths of a point per hour: exact in 64 bits for priorities below a million and rates
  // below 5,000 points an hour.
  constexpr std::int64_t kScale = 1000LL * 3'600'000;
  return priority * kScale - std::llround(aging_per_hour * 1000) * submitted.ms;
}

LaneId Queue::lane_for(const JobRecord& record) {
  const std::uint64_t who = std::uint64_t{record.tenant.v} << 32 | record.shape.v;
  const std::uint64_t how = static_cast<std::uint64_t>(record.priority) << 2 |
                            static_cast<std::uint64_t>(record.preemptible) << 1 |
                            static_cast<std::uint64_t>(record.can_preempt_others);
  const auto hash = static_cast<std::uint32_t>(Hash{}.add(who).add(how).value());
  const LaneId known = lane_index_.find(hash, [&](LaneId id) {
    const Lane& lane = lanes_[id.index()];
    return lane.tenant == record.tenant && lane.shape == record.shape &&
           lane.priority == record.priority && lane.preemptible == record.preemptible &&
           lane.can_preempt_others == record.can_preempt_others;
  });
  if (known.valid()) return known;
  const LaneId added{lanes_.size()};
  lane_index_.add(hash, added);
  lanes_.push_back({record.tenant,
                    record.shape,
                    record.priority,
                    record.preemptible,
                    record.can_preempt_others,
                    0,
                    {}});
  return added;
}

void Queue::now_busy(LaneId id) {
  lanes_[id.index()].busy_at = static_cast<std::uint32_t>(busy_.size());
  busy_.push_back(id);
}

void Queue::now_empty(LaneId id) {
  const std::uint32_t at = lanes_[id.index()].busy_at;
  busy_[at] = busy_.back();
  lanes_[busy_[at].index()].busy_at = at;
  busy_.pop_back();
}

void Queue::push(JobId job) {
  if (places_.size() <= job.index()) places_.resize(cluster_.job_count(), kNowhere);
  LaneId& place = places_[job.index()];
  CHECK(place == kNowhere);
  const JobRecord& record = cluster_.job(job);
  ++size_;
  if (record.active_tasks > 0) {
    place = kGrowing;
    growing_.emplace(record.seq, job);
    return;
  }
  place = lane_for(record);
  Line& line = lanes_[place.index()].line;
  if (line.empty()) now_busy(place);
  line.join({record.submitted, record.seq, job});
}

void Queue::erase(JobId job) {
  const LaneId place = place_of(job);
  if (place == kNowhere) return;
  places_[job.index()] = kNowhere;
  --size_;
  if (place == kGrowing) {
    growing_.erase({cluster_.job(job).seq, job});
    return;
  }
  Line& line = lanes_[place.index()].line;
  if (line.front()->job == job) {
    line.leave_front();  // the usual case, without a look at the job
    // Who is first now is likely to leave next.
    if (!line.empty()) __builtin_prefetch(&places_[line.front()->job.index()], 1);
  } else {
    const JobRecord& record = cluster_.job(job);
    line.leave(record.submitted, record.seq);
  }
  if (line.empty()) now_empty(place);
}

bool Queue::contains(JobId job) const { return place_of(job) != kNowhere; }

LaneId Queue::lane_of(JobId job) const {
  const LaneId place = place_of(job);
  return place == kGrowing ? kNowhere : place;
}

std::vector<Amounts> Queue::demand() const {
  std::vector<Amounts> demand(cluster_.tenant_count(), Amounts{});
  const std::int64_t memory = cluster_.smallest_gpu_memory_mib();
  for (const LaneId id : busy_) {
    const Lane& lane = lanes_[id.index()];
    Amounts& of = demand[lane.tenant.index()];
    for (const ShapedGroup& group : cluster_.shapes().at(lane.shape).groups) {
      const Amounts one = amounts(usage_of(cluster_.shapes().at(group.shape), memory));
      const auto times = static_cast<std::int64_t>(lane.line.size()) * group.count;
      of = of + Amounts{one[0] * times, one[1] * times, one[2] * times};
    }
  }
  for (const auto& [seq, job] : growing_) {
    Amounts& of = demand[cluster_.job(job).tenant.index()];
    for (const Member& member : waiting_members(cluster_, job, nullptr))
      of = of +
           amounts(usage_of(cluster_.shapes().at(shape_of(cluster_, job, member.group)), memory));
  }
  return demand;
}

}  // namespace gs
