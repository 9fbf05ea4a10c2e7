#include "queue/fair_share.hpp"

#include <gtest/gtest.h>

#include "base/rng.hpp"
#include "queue/lab_test.hpp"

namespace gs {
namespace {

class FairShareTest : public testing::Test {
 protected:
  // Whole GPUs that the tenant's jobs wait for.
  void wants(TenantId tenant, std::int64_t gpus) {
    if (input.waiting.size() <= tenant.index()) input.waiting.resize(tenant.index() + 1);
    input.waiting[tenant.index()] = {gpus * kWholeGpu, 1000 * gpus, 0};
  }
  std::int64_t gpus(TenantId tenant) {
    shares.compute(lab.cluster, input);
    return shares.of(tenant).fair[kShareGpu];
  }

  QueueLab lab;
  FairShares shares;
  FairShares::Input input;
};

TEST_F(FairShareTest, GuaranteesComeFirstAndWeightsShareTheRest) {
  lab.node("n", 8);
  const TenantId a = lab.tenant("a", 2, 1);
  const TenantId b = lab.tenant("b", 0, 2);
  wants(a, 8);
  wants(b, 8);
  EXPECT_EQ(gpus(a), 4000);  // 2 + a third of 6
  EXPECT_EQ(gpus(b), 4000);  // two thirds of 6
}

TEST_F(FairShareTest, WhatOneDoesNotWantGoesToTheOthers) {
  lab.node("n", 8);
  const TenantId a = lab.tenant("a", 4, 1);
  const TenantId b = lab.tenant("b", 0, 1);
  wants(a, 1);
  wants(b, 8);
  EXPECT_EQ(gpus(a), 1000);
  EXPECT_EQ(gpus(b), 7000);
}

TEST_F(FairShareTest, WholeGpusAndTheRestToTheLargestRemainderThenTheOldest) {
  lab.node("n", 8);
  const TenantId a = lab.tenant("a", 0, 1);
  const TenantId b = lab.tenant("b", 0, 1);
  const TenantId c = lab.tenant("c", 0, 1);
  for (const TenantId t : {a, b, c}) wants(t, 8);
  EXPECT_EQ(gpus(a), 3000);
  EXPECT_EQ(gpus(b), 3000);
  EXPECT_EQ(gpus(c), 2000);
}

TEST_F(FairShareTest, PriorityIsServedFirstFromWhatIsLeft) {
  lab.node("n", 4);
  const TenantId a = lab.tenant("a", 1, 1);
  const TenantId b = lab.tenant("b", 1, 1);
  lab.cluster.tenant(b).spec.priority = 200;
  wants(a, 4);
  wants(b, 4);
  EXPECT_EQ(gpus(b), 3000);
  EXPECT_EQ(gpus(a), 1000);
}

TEST_F(FairShareTest, LimitCutsAndTheRestGoesOn) {
  lab.node("n", 8);
  const TenantId a = lab.tenant("a", 0, 1);
  const TenantId b = lab.tenant("b", 0, 1);
  lab.cluster.tenant(a).spec.limit.gpu_milli = 2000;
  wants(a, 8);
  wants(b, 8);
  EXPECT_EQ(gpus(a), 2000);
  EXPECT_EQ(gpus(b), 6000);
}

TEST_F(FairShareTest, ChildrenShareWhatTheirParentHas) {
  lab.node("n", 8);
  const TenantId p = lab.tenant("p", 4, 0);
  const TenantId q = lab.tenant("q", 4, 0);
  const TenantId x = lab.tenant("x", 0, 1, "p");
  const TenantId y = lab.tenant("y", 3, 0, "p");
  wants(x, 8);
  wants(y, 8);
  wants(q, 8);
  EXPECT_EQ(gpus(p), 4000);
  EXPECT_EQ(gpus(y), 3000);
  EXPECT_EQ(gpus(x), 1000);
}

TEST_F(FairShareTest, WhoUsedMuchLatelyGetsLessOfTheRest) {
  lab.node("n", 8);
  const TenantId a = lab.tenant("a", 0, 1);
  const TenantId b = lab.tenant("b", 0, 1);
  wants(a, 8);
  wants(b, 8);
  EXPECT_EQ(gpus(a), 4000);
  lab.cluster.tenant(a).decayed_gpu_hours = 100;
  EXPECT_LT(gpus(a), gpus(b));
  lab.cluster.tenant(b).decayed_gpu_hours = 100;
  EXPECT_EQ(gpus(a), gpus(b));
}

TEST_F(FairShareTest, UsageHalvesInAHalfLife) {
  const NodeId n = lab.node("n", 8);
  const TenantId a = lab.tenant("a", 0, 1);
  lab.cluster.tenant(a).decayed_gpu_hours = 8;
  decay_usage(lab.cluster, hours(24), Instant{} + hours(24));
  EXPECT_NEAR(lab.cluster.tenant(a).decayed_gpu_hours, 4.0, 1e-9);
  lab.running(QueueLab::job("j", 8), a, n);
  decay_usage(lab.cluster, hours(24), Instant{} + hours(24 * 200));
  // In the long run: the GPUs in use times half-life / ln 2.
  EXPECT_NEAR(lab.cluster.tenant(a).decayed_gpu_hours, 8 * 24 / 0.6931, 1.0);
}

// Random trees: nobody gets more than it wants or may, and siblings get no more than there is.
TEST_F(FairShareTest, SharesNeverExceedWhatThereIs) {
  Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    QueueLab l;
    const auto total = rng.between(1, 40);
    l.node("n", static_cast<int>(total));
    FairShares::Input in;
    std::vector<TenantId> all;
    std::int64_t guaranteed = 0;
    for (int i = 0; i < rng.between(1, 6); ++i) {
      const auto g = std::min(rng.between(0, 5), total - guaranteed);
      guaranteed += g;
      all.push_back(l.tenant("t" + std::to_string(i), g, rng.between(0, 3)));
      if (rng.chance(0.3))
        l.cluster.tenant(all.back()).spec.limit.gpu_milli = rng.between(0, 9) * kWholeGpu;
      l.cluster.tenant(all.back()).spec.priority = static_cast<int>(rng.between(100, 102));
      in.waiting.push_back({rng.between(0, 20) * 500, 0, 0});
    }
    FairShares s;
    s.compute(l.cluster, in);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const TenantShare& t = s.of(all[i]);
      EXPECT_LE(t.fair[kShareGpu], std::min(t.limit[kShareGpu], in.waiting[i][kShareGpu]));
      EXPECT_GE(t.fair[kShareGpu], 0);
      sum += t.fair[kShareGpu];
    }
    EXPECT_LE(sum, total * kWholeGpu) << "round " << round;
  }
}

}  // namespace
}  // namespace gs
