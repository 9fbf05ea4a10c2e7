#include "queue/order.hpp"

#include "queue/queue.hpp"

namespace gs {
namespace {

using Wide = Ratio::Wide;

int sign_of(bool a_first) { return a_first ? -1 : 1; }

int compare(const Ratio& a, const Ratio& b) {
  const Wide left = a.num * b.den, right = b.num * a.den;
  return left < right ? -1 : left > right ? 1 : 0;
}

// Largest part of what it may hold, over the resources. A unit of something it may not have at
// all weighs as much as a thousand times its whole share.
Ratio dominant_share(const Amounts& holds, const TenantShare& share, const Amounts& total) {
  Ratio worst;
  for (int r = 0; r < kShareCount; ++r) {
    const auto i = static_cast<std::size_t>(r);
    std::int64_t may = share.allocatable(r);
    if (may >= kUnlimited) may = total[i];
    const Wide unit = r == kShareGpu ? kWholeGpu : 1;
    const Ratio ratio = may == 0 ? Ratio{Wide{holds[i]} * 1000, unit} : Ratio{holds[i], may};
    if (compare(worst, ratio) < 0) worst = ratio;
  }
  return worst;
}

bool over_fair_share(const Amounts& used, const TenantShare& share) {
  return share.fair[0] < used[0] && share.fair[1] < used[1] && share.fair[2] < used[2];
}

bool uses_what_it_may_not(const Amounts& holds, const TenantShare& share) {
  for (int r = 0; r < kShareCount; ++r)
    if (share.allocatable(r) == 0 && holds[static_cast<std::size_t>(r)] > 0) return true;
  return false;
}

}  // namespace

Standing TenantOrder::standing(const TenantLoad& load) const {
  const TenantRecord& record = cluster_.tenant(load.id);
  const TenantShare& share = shares_.of(load.id);
  const Amounts used = amounts(record.used);
  const Amounts with = used + load.more;
  const int tier = static_cast<int>(record.spec.tier) - static_cast<int>(Tier::Medium);
  return {over_fair_share(used, share),
          within(with, share.guaranteed),
          uses_what_it_may_not(with, share),
          record.spec.priority + tier * tier_step_,
          dominant_share(with - load.less, share, shares_.total()),
          dominant_share(used, share, shares_.total()),
          share.allocatable(),
          &record.spec};
}

int compare(const Standing& a, const Standing& b) {
  if (a.over_fair_share != b.over_fair_share) return sign_of(b.over_fair_share);
  if (a.starved != b.starved) return sign_of(a.starved);
  if (a.rank != b.rank) return sign_of(a.rank > b.rank);
  if (a.uses_what_it_may_not != b.uses_what_it_may_not) return sign_of(b.uses_what_it_may_not);
  int c = compare(a.share_then, b.share_then);
  if (c == 0) c = compare(a.share_now, b.share_now);
  if (c != 0) return c;
  if (a.may_hold != b.may_hold && within(a.may_hold, b.may_hold)) return -1;
  if (a.may_hold != b.may_hold && within(b.may_hold, a.may_hold)) return 1;
  const Tenant &ta = *a.tenant, &tb = *b.tenant;
  if (ta.created_order != tb.created_order) return sign_of(ta.created_order < tb.created_order);
  return ta.id == tb.id ? 0 : sign_of(ta.id < tb.id);
}

JobKey job_key(const Cluster& cluster, JobId job, double aging_per_hour) {
  const JobRecord& record = cluster.job(job);
  return {order_key(record.priority, record.submitted, aging_per_hour),
          fill_of(cluster, job, nullptr), 0, record.submitted, record.seq};
}

bool before(const JobKey& a, const JobKey& b) {
  if (a.key != b.key) return a.key > b.key;
  if (a.fill != b.fill) return a.fill < b.fill;
  if (a.loss != b.loss) return a.loss > b.loss;
  return a.submitted != b.submitted ? a.submitted < b.submitted : a.seq < b.seq;
}

Amounts next_amounts(const Cluster& cluster, JobId job, const TaskMarks* evicted) {
  Amounts sum{};
  const std::int64_t memory = cluster.smallest_gpu_memory_mib();
  for (const Member& member : next_members(cluster, job, evicted))
    sum =
        sum + amounts(usage_of(cluster.shapes().at(shape_of(cluster, job, member.group)), memory));
  return sum;
}

}  // namespace gs
