// May one tenant take from another?
//
// Two tenants meet where their paths from the root part: there the rules compare R, on the side of
// who asks, with V, on the side of who loses. A unit (a surplus task, or what a job can't run
// without) may be taken while V holds more than its allocatable share, or while V holds more than
// its guarantee and R stays within its own with what it asks for. What is left of V is counted unit
// by unit, before each. Afterwards nobody on the way up from the one who asks may stand better than
// a sibling that lost: not over its fair share in a resource while being at least as saturated.
//
// Who has taken is within its fair share (or guarantee), and nothing may be taken from a tenant
// that is: as long as shares stay, taking does not run in circles. Where they move,
// cycle/eviction_order sees to it.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/cluster.hpp"
#include "queue/fair_share.hpp"

namespace gs {

struct ReclaimAsk {
  TenantId tenant;
  Amounts request{};
  bool preemptible = true;
};

struct Loss {
  TenantId tenant;
  Amounts amounts{};
  bool fresh = false;  // started or promised by this very cycle: nobody was told yet
};

class ReclaimRules {
 public:
  // Remembers what the tenants hold now: later questions are about changes to this. `fresh`, by
  // tenant: what they hold only since this cycle. It may be taken from them, but does not make them
  // lose anything else.
  ReclaimRules(const Cluster& cluster, const FairShares& shares, std::vector<Amounts> fresh = {});

  // Whether the tenant has a claim at all: with the request it is within its fair share.
  bool may_ask(const ReclaimAsk& ask) const;
  // Whether jobs of `victim` may lose something, as far as that can be said beforehand.
  bool may_lose(const ReclaimAsk& ask, TenantId victim) const;
  // Whether these units may all be taken, in this order.
  bool may_take(const ReclaimAsk& ask, const std::vector<Loss>& losses) const;

 private:
  struct Pair {
    TenantId asks, loses;  // equal where one is an ancestor of the other
  };
  Pair meet(TenantId asks, TenantId loses) const;
  bool stays_fair(const ReclaimAsk& ask, std::vector<Amounts> left,
                  const std::vector<std::uint8_t>& lost) const;

  const Cluster& cluster_;
  const FairShares& shares_;
  std::vector<Amounts> used_;
  std::vector<Amounts> fixed_;  // unpreemptible
  std::vector<Amounts> fresh_;  // with all below
};

}  // namespace gs
