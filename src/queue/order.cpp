#include "queue/order.hpp"

#include "queue/queue.hpp"

namespace gs {
namespace {

__extension__ typedef __int128 Wide;  // products of byte counts outgrow 64 bits

int sign_of(bool a_first) { return a_first ? -1 : 1; }

// A fraction; infinity is modelled by the factor below.
struct Ratio {
  Wide num = 0, den = 1;
};
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

int TenantOrder::rank(TenantId id) const {
  const Tenant& t = cluster_.tenant(id).spec;
  return t.priority + (static_cast<int>(t.tier) - static_cast<int>(Tier::Medium)) * tier_step_;
}

int TenantOrder::compare(const TenantLoad& a, const TenantLoad& b) const {
  const TenantShare& sa = shares_.of(a.id);
  const TenantShare& sb = shares_.of(b.id);
  const Amounts used_a = amounts(cluster_.tenant(a.id).used);
  const Amounts used_b = amounts(cluster_.tenant(b.id).used);
  const bool over_a = over_fair_share(used_a, sa), over_b = over_fair_share(used_b, sb);
  if (over_a != over_b) return sign_of(over_b);
  const Amounts with_a = used_a + a.more, with_b = used_b + b.more;
  const bool starved_a = within(with_a, sa.guaranteed), starved_b = within(with_b, sb.guaranteed);
  if (starved_a != starved_b) return sign_of(starved_a);
  if (rank(a.id) != rank(b.id)) return sign_of(rank(a.id) > rank(b.id));
  const bool bad_a = uses_what_it_may_not(with_a, sa), bad_b = uses_what_it_may_not(with_b, sb);
  if (bad_a != bad_b) return sign_of(bad_b);
  int c = gs::compare(dominant_share(with_a - a.less, sa, shares_.total()),
                      dominant_share(with_b - b.less, sb, shares_.total()));
  if (c == 0)
    c = gs::compare(dominant_share(used_a, sa, shares_.total()),
                    dominant_share(used_b, sb, shares_.total()));
  if (c != 0) return c;
  const Amounts may_a = sa.allocatable(), may_b = sb.allocatable();
  if (may_a != may_b && within(may_a, may_b)) return -1;
  if (may_a != may_b && within(may_b, may_a)) return 1;
  const Tenant& ta = cluster_.tenant(a.id).spec;
  const Tenant& tb = cluster_.tenant(b.id).spec;
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
