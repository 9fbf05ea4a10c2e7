#include "queue/reclaim.hpp"

#include <gtest/gtest.h>

#include "base/rng.hpp"
#include "queue/lab_test.hpp"

namespace gs {
namespace {

Amounts gpus(std::int64_t count) { return {count * kWholeGpu, 0, 0}; }

class ReclaimTest : public testing::Test {
 protected:
  void compute() {
    shares.compute(lab.cluster, input);
    rules.emplace(lab.cluster, shares);
  }
  void wants(TenantId tenant, std::int64_t count) {
    if (input.waiting.size() <= tenant.index()) input.waiting.resize(tenant.index() + 1);
    input.waiting[tenant.index()] = gpus(count);
  }
  Job cpuless(const std::string& id, int count) {
    Job job = QueueLab::job(id, count);
    job.groups[0].request.resources.cpu_milli = 0;
    return job;
  }

  QueueLab lab;
  NodeId node = lab.node("n", 8);
  FairShares shares;
  FairShares::Input input;
  std::optional<ReclaimRules> rules;
};

TEST_F(ReclaimTest, WhoIsWithinItsGuaranteeTakesFromWhoIsAboveIts) {
  const TenantId a = lab.tenant("a", 4);
  const TenantId b = lab.tenant("b", 4);
  lab.running(cpuless("r", 8), b, node);
  wants(a, 4);
  compute();
  const ReclaimAsk ask{a, gpus(4), true};
  EXPECT_TRUE(rules->may_ask(ask));
  EXPECT_TRUE(rules->may_lose(ask, b));
  EXPECT_TRUE(rules->may_take(ask, {{b, gpus(4)}}));
  // The first unit brings b to its guarantee: there is nothing more to take.
  EXPECT_FALSE(rules->may_take(ask, {{b, gpus(4)}, {b, gpus(1)}}));
}

TEST_F(ReclaimTest, NothingIsTakenFromWhoIsWithinItsShare) {
  const TenantId a = lab.tenant("a", 2);
  const TenantId b = lab.tenant("b", 6);
  lab.running(cpuless("r", 6), b, node);
  wants(a, 4);
  compute();
  EXPECT_FALSE(rules->may_ask({a, gpus(4), true}));  // its fair share is 2
  EXPECT_FALSE(rules->may_take({a, gpus(2), true}, {{b, gpus(2)}}));
}

TEST_F(ReclaimTest, UnpreemptibleWorkAsksOnlyWithinItsGuarantee) {
  const TenantId a = lab.tenant("a", 1);
  const TenantId b = lab.tenant("b", 0);
  lab.running(cpuless("r", 8), b, node);
  wants(a, 4);
  compute();
  EXPECT_TRUE(rules->may_ask({a, gpus(2), true}));
  EXPECT_FALSE(rules->may_ask({a, gpus(2), false}));
  EXPECT_TRUE(rules->may_ask({a, gpus(1), false}));
}

TEST_F(ReclaimTest, TenantsAreComparedWhereTheirPathsPart) {
  const TenantId p = lab.tenant("p", 6);
  const TenantId q = lab.tenant("q", 2);
  const TenantId x = lab.tenant("x", 0, 1, "p");
  const TenantId y = lab.tenant("y", 0, 1, "q");
  lab.running(cpuless("r", 8), y, node);
  wants(x, 6);
  compute();
  const ReclaimAsk ask{x, gpus(6), true};
  EXPECT_TRUE(rules->may_lose(ask, y));  // p has a guarantee although x has none
  EXPECT_TRUE(rules->may_take(ask, {{y, gpus(6)}}));
  EXPECT_EQ(shares.of(p).fair[kShareGpu], 6000);
  EXPECT_EQ(shares.of(q).fair[kShareGpu], 2000);
}

// Whoever has taken what the rules allow leaves nobody a claim to take it back.
TEST_F(ReclaimTest, TakingIsNeverAnsweredByTakingBack) {
  Rng rng(11);
  int taken = 0;
  for (int round = 0; round < 2000; ++round) {
    QueueLab l;
    const NodeId n = l.node("n", 16);
    const TenantId a = l.tenant("a", rng.between(0, 8), rng.between(0, 3));
    const TenantId b = l.tenant("b", rng.between(0, 8), rng.between(0, 3));
    const auto b_runs = rng.between(1, 16);
    const auto a_runs = rng.between(0, 16 - b_runs);
    const JobId victim = l.running(cpuless("b", static_cast<int>(b_runs)), b, n);
    if (a_runs > 0) l.running(cpuless("a", static_cast<int>(a_runs)), a, n);
    const auto request = rng.between(1, 16);
    if (a_runs + request > 16) continue;
    FairShares before;
    before.compute(l.cluster, {{gpus(request), gpus(0)}, hours(24), {}});
    const ReclaimRules now(l.cluster, before);
    const ReclaimAsk ask{a, gpus(request), true};
    if (!now.may_ask(ask) || !now.may_take(ask, {{b, gpus(b_runs)}})) continue;
    ++taken;
    // b's job has left and waits; a's runs in its place.
    l.cluster.remove_task(l.cluster.job(victim).tasks[0]);
    l.running(cpuless("taker", static_cast<int>(request)), a, n);
    FairShares after;
    after.compute(l.cluster, {{gpus(0), gpus(b_runs)}, hours(24), {}});
    const ReclaimRules then(l.cluster, after);
    const ReclaimAsk back{b, gpus(b_runs), true};
    EXPECT_FALSE(then.may_ask(back) && then.may_take(back, {{a, gpus(request)}}))
        << "round " << round;
  }
  EXPECT_GT(taken, 50);
}

}  // namespace
}  // namespace gs
