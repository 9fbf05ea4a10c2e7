// Fair shares: how much of the cluster each tenant may count on this cycle.
//
// Siblings first get what is guaranteed to them, as far as they ask for it. What is left goes to
// those that ask for more: by priority, then by weight, in whole units, the rest of the division to
// the largest remainders. A tenant's children share its own share by the same rule. Shares are
// computed once per cycle from what runs and what waits, so a decision inside the cycle can't move
// the goal posts of the next.
//
// A tenant that has used much lately gets less of what is left: its weight w (as a part of all
// weights) counts as w + (w - u), u being its part of what was used, decayed by half-life.
// Without history, or with equal history, nothing changes.
//
// Invariant: fair <= min(limit, requested) in every resource, and the fair shares of siblings sum
// up to no more than the share of their parent unless their guarantees alone exceed it.
#pragma once

#include <vector>

#include "base/time.hpp"
#include "cluster/cluster.hpp"
#include "queue/amounts.hpp"

namespace gs {

struct TenantShare {
  Amounts guaranteed{}, limit{}, requested{}, fair{};
  std::int64_t weight = 1;
  std::int64_t used_ppm = 0;  // decayed GPU usage, parts per million of all

  // What it may hold without being over its share.
  std::int64_t allocatable(int resource) const;
  Amounts allocatable() const { return {allocatable(0), allocatable(1), allocatable(2)}; }
};

class FairShares {
 public:
  struct Input {
    std::vector<Amounts> waiting;  // by tenant: what its own jobs wait for
    Duration half_life = hours(24);
    Instant now;
  };
  void compute(const Cluster& cluster, const Input& input);

  const TenantShare& of(TenantId id) const { return shares_[id.index()]; }
  const Amounts& total() const { return total_; }

 private:
  void divide(const Cluster& cluster, const std::vector<TenantId>& siblings, const Amounts& total);

  std::vector<TenantShare> shares_;
  Amounts total_{};
};

// Brings the decayed usage of every tenant up to `now`: call before usage changes and before
// shares are computed.
void decay_usage(Cluster& cluster, Duration half_life, Instant now);

}  // namespace gs
