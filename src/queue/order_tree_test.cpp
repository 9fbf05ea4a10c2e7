#include "queue/order_tree.hpp"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "base/rng.hpp"
#include "queue/lab_test.hpp"

namespace gs {
namespace {

using Way = OrderTree::Way;

// Tenants below tenants, each with jobs of all sizes.
class OrderTreeTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  static constexpr int kTenants = 40, kTop = 25, kJobs = 150, kNodes = 20;

  void SetUp() override {
    for (int i = 0; i < kNodes; ++i) nodes.push_back(lab.node("n" + std::to_string(i), 8));
    for (int i = 0; i < kTenants; ++i) {
      const std::string parent = i >= kTop ? "t" + std::to_string(i % 5) : "";
      lab.tenant("t" + std::to_string(i), rng.between(0, 8), rng.between(1, 3), parent);
    }
    std::vector<Amounts> waiting(kTenants, Amounts{});
    for (int i = 0; i < kJobs; ++i) {
      const TenantId tenant{rng.below(kTenants)};
      const auto gpus = static_cast<int>(rng.between(1, 4));
      const auto priority = static_cast<int>(rng.between(1, 3));
      const JobId job =
          lab.add(QueueLab::job("j" + std::to_string(i), gpus, 1, 0, priority), tenant);
      jobs.push_back(job);
      wants[job] = next_amounts(lab.cluster, job, nullptr);
      waiting[tenant.index()] = waiting[tenant.index()] + wants[job];
    }
    shares.compute(lab.cluster, {waiting, hours(24), {}});
  }

  OrderTree::Head head(JobId job) const {
    return {job, job_key(lab.cluster, job, 0), wants.at(job), 0};
  }
  void run(JobId job) {
    for (const NodeId node : nodes) {
      const int free = gpu_count(lab.cluster.node(node).free_gpus(View::Now));
      if (free * kWholeGpu < wants[job][kShareGpu]) continue;
      lab.run(job, 0, node);
      return;
    }
  }

  // By the rule and without heaps: the next of this tenant and all below it; none if there is none.
  JobId best_of(TenantId tenant, Way way, const std::vector<JobId>& left) const {
    JobId own;
    for (const JobId job : left) {
      if (lab.cluster.job(job).tenant != tenant) continue;
      const bool better =
          !own.valid() || (way == Way::Serve ? before(head(job).key, head(own).key)
                                             : before(head(own).key, head(job).key));
      if (better) own = job;
    }
    if (own.valid() && way == Way::Serve) return own;
    const JobId below =
        best_among(tenant.valid() ? lab.cluster.tenant(tenant).children : lab.cluster.top_tenants(),
                   way, left);
    return below.valid() ? below : own;
  }
  JobId best_among(const std::vector<TenantId>& siblings, Way way,
                   const std::vector<JobId>& left) const {
    JobId best;
    Standing best_standing;
    for (const TenantId tenant : siblings) {
      const JobId job = best_of(tenant, way, left);
      if (!job.valid()) continue;
      TenantLoad load{tenant, {}, {}};
      (way == Way::Serve ? load.more : load.less) = wants.at(job);
      if (way == Way::TakeFrom)
        for (const JobId gone : jobs)
          if (lab.cluster.job(gone).tenant == lab.cluster.job(job).tenant &&
              std::find(left.begin(), left.end(), gone) == left.end())
            load.less = load.less + wants.at(gone);
      const Standing standing = order.standing(load);
      const int c = best.valid() ? compare(standing, best_standing) : 0;
      if (best.valid() && (way == Way::Serve ? c > 0 : c < 0)) continue;
      best = job;
      best_standing = standing;
    }
    return best;
  }

  void expect_by_the_rule(Way way, bool runs) {
    OrderTree tree(lab.cluster, order, way);
    for (const JobId job : jobs) tree.add(head(job));
    std::vector<JobId> left = jobs;
    while (!left.empty()) {
      const JobId expected = best_of(TenantId{}, way, left);
      const JobId job = tree.pop().job;
      ASSERT_EQ(lab.cluster.job(job).id, lab.cluster.job(expected).id) << left.size() << " left";
      std::erase(left, job);
      if (runs) run(job);
    }
    EXPECT_TRUE(tree.empty());
  }

  Rng rng{GetParam()};
  QueueLab lab;
  std::vector<NodeId> nodes;
  std::vector<JobId> jobs;
  std::map<JobId, Amounts> wants;
  FairShares shares;
  TenantOrder order{lab.cluster, shares, 100};
};

TEST_P(OrderTreeTest, ServesByTheRuleWhileTenantsFillUp) { expect_by_the_rule(Way::Serve, true); }

TEST_P(OrderTreeTest, TakesByTheRule) {
  for (const JobId job : jobs) run(job);
  expect_by_the_rule(Way::TakeFrom, false);
}

// The one that follows takes the place of the one before it, as in a lane.
TEST_P(OrderTreeTest, AFollowerIsTreatedAsIfItHadBeenThere) {
  OrderTree all(lab.cluster, order, Way::Serve), lanes(lab.cluster, order, Way::Serve);
  std::map<std::pair<TenantId, int>, std::vector<JobId>> by_lane;
  for (const JobId job : jobs)
    by_lane[{lab.cluster.job(job).tenant, lab.cluster.job(job).priority}].push_back(job);
  for (const auto& [lane, line] : by_lane) lanes.add(head(line.front()));
  for (const JobId job : jobs) all.add(head(job));
  while (!all.empty()) {
    const JobId job = all.pop().job;
    ASSERT_EQ(lanes.pop().job, job);
    auto& line = by_lane[{lab.cluster.job(job).tenant, lab.cluster.job(job).priority}];
    line.erase(line.begin());
    if (!line.empty()) lanes.add(head(line.front()));
  }
  EXPECT_TRUE(lanes.empty());
}

INSTANTIATE_TEST_SUITE_P(Seeds, OrderTreeTest, testing::Range<std::uint64_t>(1, 21));

}  // namespace
}  // namespace gs
