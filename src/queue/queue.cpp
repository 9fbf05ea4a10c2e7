#include "queue/queue.hpp"

#include <algorithm>
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

std::size_t Queue::KeyHash::operator()(const Key& key) const noexcept {
  const std::uint64_t who = std::uint64_t{key.tenant.v} << 32 | key.shape.v;
  const std::uint64_t how = static_cast<std::uint64_t>(key.priority) << 8 | key.rights;
  return Hash{}.add(who).add(how).value();
}

LaneId Queue::lane_for(const JobRecord& record) {
  const auto rights =
      static_cast<std::uint8_t>(record.preemptible | record.can_preempt_others << 1);
  const auto [it, added] = lane_by_key_.try_emplace(
      Key{record.tenant, record.shape, record.priority, rights}, LaneId{lanes_.size()});
  if (!added) return it->second;
  lanes_.push_back({record.tenant,
                    record.shape,
                    record.priority,
                    record.preemptible,
                    record.can_preempt_others,
                    {},
                    0,
                    0});
  if (by_tenant_.size() <= record.tenant.index()) by_tenant_.resize(record.tenant.index() + 1);
  by_tenant_[record.tenant.index()].push_back(it->second);
  return it->second;
}

void Queue::push(JobId job) {
  if (places_.size() <= job.index()) places_.resize(cluster_.job_count());
  Place& place = places_[job.index()];
  CHECK(place.ticket == 0 && !place.grows);
  const JobRecord& record = cluster_.job(job);
  ++size_;
  if (record.active_tasks > 0) {
    place.grows = true;
    growing_.emplace(record.seq, job);
    return;
  }
  place.lane = lane_for(record);
  place.ticket = next_ticket_++;
  Lane& lane = lanes_[place.lane.index()];
  const Entry entry{job, place.ticket, record.submitted, record.seq};
  const auto before = [](const Entry& a, const Entry& b) {
    return a.submitted != b.submitted ? a.submitted < b.submitted : a.seq < b.seq;
  };
  ++lane.live;
  if (lane.entries.empty() || before(lane.entries.back(), entry)) {
    lane.entries.push_back(entry);
    return;
  }
  // Came back after an eviction, or submitted out of order.
  const auto begin = lane.entries.begin() + static_cast<std::ptrdiff_t>(lane.head);
  const auto at = std::upper_bound(begin, lane.entries.end(), entry, before);
  if (at == begin && lane.head > 0)
    lane.entries[--lane.head] = entry;
  else
    lane.entries.insert(at, entry);
}

void Queue::erase(JobId job) {
  if (!contains(job)) return;
  Place& place = places_[job.index()];
  --size_;
  if (place.grows)
    growing_.erase({cluster_.job(job).seq, job});
  else
    --lanes_[place.lane.index()].live;
  place = {};
}

bool Queue::contains(JobId job) const {
  return job.index() < places_.size() &&
         (places_[job.index()].ticket != 0 || places_[job.index()].grows);
}

JobId Queue::head(LaneId id) {
  Lane& lane = lanes_[id.index()];
  while (lane.head < lane.entries.size() && !is_live(lane.entries[lane.head])) ++lane.head;
  if (lane.head == lane.entries.size()) {
    lane.entries.clear();
    lane.head = 0;
    return JobId{};
  }
  // Give the room of long-gone entries back; each entry is shifted once per halving, O(1) each.
  if (lane.head > 64 && lane.head * 2 > lane.entries.size()) {
    lane.entries.erase(lane.entries.begin(),
                       lane.entries.begin() + static_cast<std::ptrdiff_t>(lane.head));
    lane.head = 0;
  }
  return lane.entries[lane.head].job;
}

JobId Queue::after(LaneId id, JobId job) const {
  const Lane& lane = lanes_[id.index()];
  const JobRecord& record = cluster_.job(job);
  auto at = std::upper_bound(lane.entries.begin() + static_cast<std::ptrdiff_t>(lane.head),
                             lane.entries.end(), std::pair(record.submitted, record.seq),
                             [](const auto& key, const Entry& entry) {
                               return key < std::pair(entry.submitted, entry.seq);
                             });
  while (at != lane.entries.end() && !is_live(*at)) ++at;
  return at == lane.entries.end() ? JobId{} : at->job;
}

LaneId Queue::lane_of(JobId job) const {
  return contains(job) ? places_[job.index()].lane : LaneId{};
}

const std::vector<LaneId>& Queue::lanes_of(TenantId tenant) const {
  static const std::vector<LaneId> none;
  return tenant.index() < by_tenant_.size() ? by_tenant_[tenant.index()] : none;
}

std::vector<JobId> Queue::first(LaneId id, std::size_t count) const {
  const Lane& lane = lanes_[id.index()];
  std::vector<JobId> jobs;
  for (std::size_t i = lane.head; i < lane.entries.size() && jobs.size() < count; ++i)
    if (is_live(lane.entries[i])) jobs.push_back(lane.entries[i].job);
  return jobs;
}

std::vector<Amounts> Queue::demand() const {
  std::vector<Amounts> demand(cluster_.tenant_count(), Amounts{});
  const std::int64_t memory = cluster_.smallest_gpu_memory_mib();
  for (const Lane& lane : lanes_) {
    if (lane.live == 0) continue;
    Amounts& of = demand[lane.tenant.index()];
    for (const ShapedGroup& group : cluster_.shapes().at(lane.shape).groups) {
      const Amounts one = amounts(usage_of(cluster_.shapes().at(group.shape), memory));
      const auto times = static_cast<std::int64_t>(lane.live) * group.count;
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
