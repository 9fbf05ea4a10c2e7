// Who is next? Tenants by what they hold against what they may hold, jobs inside a tenant by
// priority (aged), then the oldest.
//
// Siblings at each level of the tenant tree are compared with the job that each would start next:
//   1. over its fair share in every resource: last
//   2. still within its guarantee with that job: first
//   3. priority of the tenant, its tier included
//   4. would use a resource of which it may have nothing: last
//   5. smaller dominant share with that job, then without it
//   6. smaller share altogether (the weaker one)
//   7. created first, then id
// Within an effective priority, jobs that have not reached their minimum come before those that
// only want to grow.
#pragma once

#include "cluster/cluster.hpp"
#include "queue/amounts.hpp"
#include "queue/fair_share.hpp"
#include "queue/members.hpp"

namespace gs {

struct Ratio {
  __extension__ using Wide = __int128;  // products of byte counts outgrow 64 bits
  Wide num = 0, den = 1;
};

// `more`: what the next job would add; `less`: what victims give back.
struct TenantLoad {
  TenantId id;
  Amounts more{}, less{};
};

// All that counts of a tenant when it is compared with its siblings, for one load and by what the
// books say now. Worked out once and compared often.
struct Standing {
  bool over_fair_share = false;
  bool starved = false;
  bool uses_what_it_may_not = false;
  int rank = 0;
  Ratio share_then, share_now;  // dominant, with the load and without it
  Amounts may_hold{};
  const Tenant* tenant = nullptr;
};
// Negative: `a` comes first.
int compare(const Standing& a, const Standing& b);

class TenantOrder {
 public:
  TenantOrder(const Cluster& cluster, const FairShares& shares, int tier_step)
      : cluster_(cluster), shares_(shares), tier_step_(tier_step) {}
  Standing standing(const TenantLoad& load) const;

 private:
  const Cluster& cluster_;
  const FairShares& shares_;
  int tier_step_;
};

struct JobKey {
  std::int64_t key = 0;
  Fill fill = Fill::BelowMin;
  std::int64_t loss = 0;  // what evicting it would cost; the dearer is taken later
  Instant submitted;
  std::uint64_t seq = 0;
};
JobKey job_key(const Cluster& cluster, JobId job, double aging_per_hour);
bool before(const JobKey& a, const JobKey& b);

// What the job's next members count for, with the smallest GPU that there is.
Amounts next_amounts(const Cluster& cluster, JobId job, const TaskMarks* evicted);

}  // namespace gs
