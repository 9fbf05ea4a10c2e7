#include "queue/quota.hpp"

#include <gtest/gtest.h>

#include "queue/lab_test.hpp"

namespace gs {
namespace {

class QuotaTest : public testing::Test {
 protected:
  QueueLab lab;
  NodeId node = lab.node("n", 8);
  TenantId parent = lab.tenant("p", 4);
  TenantId child = lab.tenant("c", 2, 1, "p");
  Usage gpus(int count) { return {count * 1000, 0, 0, 0}; }
};

TEST_F(QuotaTest, TheFirstLimitOnTheWayUpIsNamed) {
  lab.cluster.tenant(parent).spec.limit.gpu_milli = 3000;
  lab.running(QueueLab::job("r", 2), child, node);
  EXPECT_FALSE(over_limit(lab.cluster, child, gpus(1), 1));
  const auto broken = over_limit(lab.cluster, child, gpus(2), 1);
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->tenant, "p");
  EXPECT_EQ(broken->requested, 2000);
  EXPECT_EQ(broken->current, 2000);
  EXPECT_EQ(broken->limit, 3000);
}

TEST_F(QuotaTest, OnlyWhatIsAskedForCounts) {
  lab.running(QueueLab::job("r", 2), child, node);
  lab.cluster.tenant(child).spec.limit.gpu_milli = 1000;  // lowered below what runs
  EXPECT_FALSE(over_limit(lab.cluster, child, {0, 0, 1000, 0}, 1));
  EXPECT_TRUE(over_limit(lab.cluster, child, gpus(1), 1));
}

TEST_F(QuotaTest, UnpreemptibleWorkStaysWithinTheGuarantee) {
  Job fixed = QueueLab::job("r", 1);
  fixed.preemptible = false;
  lab.running(fixed, child, node);
  EXPECT_FALSE(over_guaranteed(lab.cluster, child, gpus(1)));
  EXPECT_EQ(over_guaranteed(lab.cluster, child, gpus(2))->tenant, "c");
}

TEST_F(QuotaTest, RunningJobs) {
  lab.cluster.tenant(child).spec.limit.running_jobs = 1;
  EXPECT_FALSE(over_limit(lab.cluster, child, gpus(1), 1));
  lab.running(QueueLab::job("r", 1), child, node);
  EXPECT_EQ(over_limit(lab.cluster, child, gpus(1), 1)->resource, "running_jobs");
  EXPECT_FALSE(over_limit(lab.cluster, child, gpus(1), 0));  // growing needs no further job
}

TEST_F(QuotaTest, GpusOfAModelAreCountedAfterPlacing) {
  lab.cluster.tenant(child).spec.limit.gpus_by_model = {{"H100", 1}};
  lab.running(QueueLab::job("r", 2), child, node);
  const std::vector<std::uint32_t> models = {lab.cluster.shapes().models().intern("H100")};
  EXPECT_TRUE(exceeded(lab.cluster, child, true, gpus(2), models));
  EXPECT_FALSE(exceeded(lab.cluster, child, true, gpus(2), {}));
}

TEST_F(QuotaTest, NeverIsWhatTheRequestAloneExceeds) {
  lab.cluster.tenant(parent).spec.limit.gpu_milli = 3000;
  lab.running(QueueLab::job("r", 3), child, node);
  EXPECT_FALSE(never_allowed(lab.cluster, child, gpus(3), true));
  EXPECT_TRUE(never_allowed(lab.cluster, child, gpus(4), true));
  EXPECT_TRUE(never_allowed(lab.cluster, child, gpus(3), false));  // guaranteed 2
}

}  // namespace
}  // namespace gs
