#include "queue/reclaim.hpp"

#include <algorithm>

namespace gs {
namespace {

__extension__ typedef __int128 Wide;  // products of byte counts outgrow 64 bits

std::uint8_t resources_in(const Amounts& amounts) {
  std::uint8_t mask = 0;
  for (std::size_t r = 0; r < kShareCount; ++r)
    if (amounts[r] > 0) mask = static_cast<std::uint8_t>(mask | 1U << r);
  return mask;
}

// Whether holding `a` of `fair_a` is at least as saturated as holding `b` of `fair_b`.
bool at_least_as_saturated(std::int64_t a, std::int64_t fair_a, std::int64_t b,
                           std::int64_t fair_b) {
  if (fair_a == 0) return true;  // holds something of which it should have nothing
  return Wide{a} * fair_b >= Wide{b} * fair_a;
}

}  // namespace

ReclaimRules::ReclaimRules(const Cluster& cluster, const FairShares& shares,
                           std::vector<Amounts> fresh)
    : cluster_(cluster), shares_(shares), fresh_(cluster.tenant_count(), Amounts{}) {
  for (std::size_t i = 0; i < cluster.tenant_count(); ++i) {
    used_.push_back(amounts(cluster.tenant(TenantId{i}).used));
    fixed_.push_back(amounts(cluster.tenant(TenantId{i}).used_unpreemptible));
  }
  for (std::size_t i = 0; i < fresh.size(); ++i)
    for (TenantId up{i}; up.valid(); up = cluster.tenant(up).parent)
      fresh_[up.index()] = fresh_[up.index()] + fresh[i];
}

ReclaimRules::Pair ReclaimRules::meet(TenantId asks, TenantId loses) const {
  const auto path = [&](TenantId id) {
    std::vector<TenantId> up;
    for (; id.valid(); id = cluster_.tenant(id).parent) up.push_back(id);
    std::reverse(up.begin(), up.end());
    return up;
  };
  const std::vector<TenantId> a = path(asks), b = path(loses);
  std::size_t i = 0;
  while (i + 1 < std::min(a.size(), b.size()) && a[i] == b[i]) ++i;
  return {a[i], b[i]};
}

bool ReclaimRules::may_ask(const ReclaimAsk& ask) const {
  const TenantShare& share = shares_.of(ask.tenant);
  if (!within(used_[ask.tenant.index()] + ask.request, share.fair)) return false;
  return ask.preemptible || within(fixed_[ask.tenant.index()] + ask.request, share.guaranteed);
}

bool ReclaimRules::may_lose(const ReclaimAsk& ask, TenantId victim) const {
  const Pair pair = meet(ask.tenant, victim);
  if (pair.asks == pair.loses) return false;
  const TenantShare& loser = shares_.of(pair.loses);
  const Amounts& holds = used_[pair.loses.index()];
  if (!within(used_[pair.asks.index()] + ask.request, shares_.of(pair.asks).guaranteed))
    return !within(holds, loser.allocatable());
  bool below = false;
  for (std::size_t r = 0; r < kShareCount; ++r) {
    if (ask.request[r] <= 0 || loser.guaranteed[r] >= kUnlimited) continue;
    if (holds[r] > loser.guaranteed[r]) return true;
    below |= holds[r] < loser.guaranteed[r];
  }
  return !below;
}

bool ReclaimRules::may_take(const ReclaimAsk& ask, const std::vector<Loss>& losses) const {
  std::vector<Amounts> left = used_;
  std::vector<Amounts> fresh = fresh_;
  std::vector<std::uint8_t> lost(used_.size(), 0);  // resources, per tenant
  for (const Loss& loss : losses) {
    const Pair pair = meet(ask.tenant, loss.tenant);
    const TenantShare& loser = shares_.of(pair.loses);
    const std::size_t loses = pair.loses.index();
    const Amounts holds = loss.fresh ? left[loses] : left[loses] - fresh[loses];
    const bool over_share = !within(holds, loser.allocatable());
    const bool guaranteed =
        within(used_[pair.asks.index()] + ask.request, shares_.of(pair.asks).guaranteed) &&
        !within(holds, loser.guaranteed);
    if (!over_share && !guaranteed) return false;
    for (TenantId id = loss.tenant; id.valid(); id = cluster_.tenant(id).parent) {
      left[id.index()] = left[id.index()] - loss.amounts;
      if (loss.fresh) fresh[id.index()] = fresh[id.index()] - loss.amounts;
      lost[id.index()] = static_cast<std::uint8_t>(lost[id.index()] | resources_in(loss.amounts));
    }
  }
  return stays_fair(ask, std::move(left), lost);
}

bool ReclaimRules::stays_fair(const ReclaimAsk& ask, std::vector<Amounts> left,
                              const std::vector<std::uint8_t>& lost) const {
  const std::uint8_t asked = resources_in(ask.request);
  for (TenantId id = ask.tenant; id.valid(); id = cluster_.tenant(id).parent) {
    const TenantShare& mine = shares_.of(id);
    const Amounts holds = left[id.index()] + ask.request;
    const TenantId parent = cluster_.tenant(id).parent;
    const auto& siblings =
        parent.valid() ? cluster_.tenant(parent).children : cluster_.top_tenants();
    for (const TenantId sibling : siblings) {
      if (sibling == id || lost[sibling.index()] == 0) continue;
      const TenantShare& theirs = shares_.of(sibling);
      for (std::size_t r = 0; r < kShareCount; ++r) {
        if (((asked | lost[sibling.index()]) >> r & 1) == 0) continue;
        if (holds[r] > mine.fair[r] && theirs.fair[r] > 0 &&
            at_least_as_saturated(holds[r], mine.fair[r], left[sibling.index()][r], theirs.fair[r]))
          return false;
      }
    }
    if (!ask.preemptible && !within(fixed_[id.index()] + ask.request, mine.guaranteed))
      return false;
  }
  return true;
}

}  // namespace gs
