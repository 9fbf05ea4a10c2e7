#include "queue/queue.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/rng.hpp"
#include "queue/job_order.hpp"
#include "queue/lab_test.hpp"

namespace gs {
namespace {

class QueueTest : public testing::Test {
 protected:
  JobId waiting(const std::string& id, int priority, std::int64_t submitted_ms, TenantId of,
                int gpus = 1) {
    Job job = QueueLab::job(id, gpus, 1, 0, priority);
    job.submitted = Instant{submitted_ms};
    const JobId added = lab.add(job, of);
    queue.push(added);
    return added;
  }
  std::vector<std::string> order() {
    FairShares shares;
    shares.compute(lab.cluster, {queue.demand(), hours(24), {}});
    JobOrder walk(lab.cluster, shares, queue, config, {});
    std::vector<std::string> ids;
    std::vector<JobId> taken;
    for (JobId job = walk.next(); job.valid(); job = walk.next()) {
      ids.push_back(lab.cluster.job(job).id);
      queue.erase(job);
      taken.push_back(job);
      walk.handled();
    }
    for (const JobId job : taken) queue.push(job);
    return ids;
  }

  QueueLab lab;
  NodeId node = lab.node("n", 8);
  TenantId tenant = lab.tenant("t", 0);
  Queue queue{lab.cluster};
  Config config;
};

TEST_F(QueueTest, PriorityThenAge) {
  config.aging_per_hour = 0;
  waiting("late", 500, 30, tenant);
  waiting("low", 100, 10, tenant);
  waiting("early", 500, 20, tenant);
  EXPECT_EQ(order(), (std::vector<std::string>{"early", "late", "low"}));
}

TEST_F(QueueTest, AnHourOfWaitingIsWorthItsPoints) {
  config.aging_per_hour = 60;
  const std::int64_t hour = hours(1).ms;
  waiting("old", 500, 0, tenant);
  waiting("a point short", 560, hour + 60'000, tenant);
  waiting("a point ahead", 560, hour - 60'000, tenant);
  EXPECT_EQ(order(), (std::vector<std::string>{"a point ahead", "old", "a point short"}));
}

TEST_F(QueueTest, CancelledJobsAreSkippedAndMayComeBack) {
  config.aging_per_hour = 0;
  const JobId a = waiting("a", 500, 1, tenant);
  waiting("b", 500, 2, tenant);
  waiting("c", 500, 3, tenant);
  queue.erase(a);
  EXPECT_EQ(queue.size(), 2U);
  EXPECT_EQ(order(), (std::vector<std::string>{"b", "c"}));
  queue.push(a);
  EXPECT_EQ(order(), (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(QueueTest, TheTenantFurtherBelowItsShareIsServedFirst) {
  const TenantId other = lab.tenant("u", 0);
  lab.running(QueueLab::job("runs", 2), tenant, node);
  waiting("t1", 500, 1, tenant);
  waiting("u1", 500, 2, other);
  waiting("u2", 500, 3, other);
  EXPECT_EQ(order()[0], "u1");
}

TEST_F(QueueTest, AFailedLaneIsLeftOut) {
  waiting("a", 500, 1, tenant);
  waiting("twin", 500, 2, tenant);
  waiting("other", 500, 3, tenant, 2);
  FairShares shares;
  shares.compute(lab.cluster, {queue.demand(), hours(24), {}});
  JobOrder walk(lab.cluster, shares, queue, config, {});
  EXPECT_EQ(lab.cluster.job(walk.next()).id, "a");
  EXPECT_EQ(lab.cluster.job(walk.next()).id, "other");
  EXPECT_FALSE(walk.next().valid());
}

TEST_F(QueueTest, DemandCountsEveryWaitingMember) {
  waiting("a", 500, 1, tenant, 3);
  const JobId grows = lab.add(QueueLab::job("g", 1, 3, 1), tenant);
  lab.run(grows, 0, node);
  queue.push(grows);
  EXPECT_EQ(queue.demand()[tenant.index()][kShareGpu], 5000);
}

// Against a sorted list: pushes out of order, cancels, and heads taken.
TEST_F(QueueTest, SameOrderAsSorting) {
  Rng rng(3);
  config.aging_per_hour = 10;
  struct Plain {
    std::int64_t key;
    std::int64_t submitted;
    std::uint64_t seq;
    std::string id;
  };
  std::vector<Plain> plain;
  for (int i = 0; i < 500; ++i) {
    const int priority = static_cast<int>(rng.between(1, 5)) * 100;
    const std::int64_t submitted = rng.between(0, 100) * 60'000;
    const std::string id = "j" + std::to_string(i);
    const JobId job = waiting(id, priority, submitted, tenant);
    if (rng.chance(0.2)) {
      queue.erase(job);
      continue;
    }
    plain.push_back(
        {order_key(priority, Instant{submitted}, 10), submitted, lab.cluster.job(job).seq, id});
  }
  std::sort(plain.begin(), plain.end(), [](const Plain& a, const Plain& b) {
    if (a.key != b.key) return a.key > b.key;
    return a.submitted != b.submitted ? a.submitted < b.submitted : a.seq < b.seq;
  });
  std::vector<std::string> expected;
  for (const Plain& p : plain) expected.push_back(p.id);
  EXPECT_EQ(order(), expected);
}

}  // namespace
}  // namespace gs
