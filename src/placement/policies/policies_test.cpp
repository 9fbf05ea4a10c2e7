// What each policy prefers, on machines small enough to see why.
#include <cmath>

#include <gtest/gtest.h>

#include "base/rng.hpp"
#include "cluster/trial.hpp"
#include "placement/devices.hpp"
#include "placement/node_index.hpp"
#include "placement/place.hpp"
#include "placement/policies/fragmentation.hpp"
#include "placement/policies/policy.hpp"

namespace gs {
namespace {

struct Lab {
  explicit Lab(const std::string& policy) {
    config.node_policy = policy;
    Tenant t;
    t.id = "t";
    tenant = cluster.put_tenant(t);
    placer = std::make_unique<Placer>(cluster, config);
  }
  void node(const std::string& name, int gpus, std::int64_t cpu, const std::string& model = "A") {
    Node n;
    n.name = name;
    n.capacity = {cpu, 512LL * 1024 * kMiB, {}};
    for (int i = 0; i < gpus; ++i) {
      Gpu gpu;
      gpu.index = i;
      gpu.model = model;
      gpu.memory_mib = 81'920;
      n.gpus.push_back(gpu);
    }
    cluster.put_node(n);
  }
  static TaskRequest request(int gpus, int milli, std::int64_t cpu, const char* model = nullptr) {
    TaskRequest r;
    r.gpu.count = gpus;
    if (gpus > 0 && milli < kWholeGpu) r.gpu.sharing = Sharing::Shared, r.gpu.milli = milli;
    r.resources.cpu_milli = cpu;
    if (model != nullptr) r.gpu.models = {model};
    return r;
  }
  JobId add(const TaskRequest& r) {
    Job j;
    j.id = "j" + std::to_string(next++);
    j.tenant = "t";
    Group group;
    group.request = r;
    j.groups.push_back(group);
    return cluster.add_job(j, tenant);
  }
  // So many of them have been asked for; nothing is placed.
  void expect(const TaskRequest& r, int times) {
    for (int i = 0; i < times; ++i) placer->observe(add(r));
    placer->refresh();
  }
  // "node/gpu,gpu", or "" if there is no room.
  std::string place(const TaskRequest& r) {
    const JobId job = add(r);
    Trial trial(cluster);
    if (!placer->place(trial, {job, {{0, {0}}}, Firmness::StartNow, nullptr, Instant{0}}))
      return "";
    trial.keep();
    const Allocation& at = cluster.task(cluster.job(job).tasks[0]).place;
    std::string text = cluster.node(at.node).spec.name + "/";
    for_each_gpu(at.gpus,
                 [&](int gpu) { text += (text.back() == '/' ? "" : ",") + std::to_string(gpu); });
    return text;
  }

  Cluster cluster;
  Config config;
  TenantId tenant;
  std::unique_ptr<Placer> placer;
  int next = 0;
};

TEST(DefaultPolicyTest, TasksThatNeedCpuGoWhereCpuIsSpare) {
  Lab lab("default");
  lab.node("a-lean", 4, 32'000);
  lab.node("b-rich", 4, 256'000);
  lab.expect(Lab::request(1, kWholeGpu, 8000), 200);
  EXPECT_EQ(lab.place(Lab::request(0, 0, 16'000)), "b-rich/");
  EXPECT_EQ(lab.place(Lab::request(1, kWholeGpu, 24'000)), "b-rich/0");
}

TEST(DefaultPolicyTest, PartsThatBelongTogetherShareAGpu) {
  Lab lab("default");
  lab.node("n", 4, 64'000);
  lab.expect(Lab::request(1, 700, 1000), 100);
  lab.expect(Lab::request(1, 300, 1000), 100);
  EXPECT_EQ(lab.place(Lab::request(1, 700, 1000)), "n/0");
  EXPECT_EQ(lab.place(Lab::request(1, 300, 1000)), "n/0");
  EXPECT_EQ(lab.place(Lab::request(1, 300, 1000)), "n/1");
}

TEST(DefaultPolicyTest, ARareModelIsKeptForThoseWhoNeedIt) {
  Lab lab("default");
  lab.node("a", 4, 64'000, "rare");
  for (int i = 0; i < 8; ++i) lab.node("b" + std::to_string(i), 4, 64'000, "common");
  for (int i = 0; i < 100; ++i) {
    lab.expect(Lab::request(1, kWholeGpu, 4000), 3);
    lab.expect(Lab::request(1, kWholeGpu, 4000, "rare"), 1);
  }
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(lab.place(Lab::request(1, kWholeGpu, 4000))[0], 'b') << "task " << i;
  EXPECT_EQ(lab.place(Lab::request(1, kWholeGpu, 4000, "rare")), "a/0");
}

TEST(DefaultPolicyTest, WholeMachinesAreKeptForLargeTasks) {
  Lab lab("default");
  for (int i = 0; i < 4; ++i) lab.node("n" + std::to_string(i), 8, 128'000);
  for (int i = 0; i < 8; ++i) lab.expect(Lab::request(1, kWholeGpu, 4000), 10);
  std::string first;
  for (int i = 0; i < 8; ++i) {
    const std::string at = lab.place(Lab::request(1, kWholeGpu, 4000));
    if (first.empty()) first = at.substr(0, 2);
    EXPECT_EQ(at.substr(0, 2), first);
  }
  for (int i = 0; i < 3; ++i) EXPECT_NE(lab.place(Lab::request(8, kWholeGpu, 64'000)), "");
}

TEST(DefaultPolicyTest, KnowsNothingYetAndStillDecides) {
  Lab lab("default");
  lab.node("n", 2, 16'000);
  EXPECT_EQ(lab.place(Lab::request(1, 400, 1000)), "n/0");
  EXPECT_EQ(lab.place(Lab::request(1, kWholeGpu, 1000)), "n/1");
  EXPECT_EQ(lab.place(Lab::request(1, kWholeGpu, 1000)), "");
}

// After any history the kept scores are those that a fresh index would come to.
TEST(DefaultPolicyTest, KeptScoresAreThoseOfAFreshLook) {
  Lab kept("default");
  Rng rng(5);
  for (int i = 0; i < 12; ++i)
    kept.node("n" + std::to_string(i), static_cast<int>(rng.between(1, 8)),
              rng.between(8, 64) * 1000, rng.chance(0.5) ? "A" : "B");
  std::vector<TaskRequest> requests;
  for (int i = 0; i < 12; ++i)
    requests.push_back(Lab::request(static_cast<int>(rng.between(0, 2)),
                                    static_cast<int>(rng.between(2, 10)) * 100,
                                    rng.between(1, 8) * 1000, rng.chance(0.3) ? "A" : nullptr));
  for (TaskRequest& r : requests)
    if (r.gpu.count > 1) r.gpu.sharing = Sharing::Exclusive, r.gpu.milli = 0;
  for (int i = 0; i < 120; ++i) {
    const TaskRequest& r = requests[rng.below(requests.size())];
    kept.expect(r, 1);
    Placer fresh(kept.cluster, kept.config);
    fresh.set_demand(kept.placer->demand().state());
    const JobId job = kept.add(r);
    std::string at;
    {
      Trial trial(kept.cluster);
      if (fresh.place(trial, {job, {{0, {0}}}, Firmness::StartNow, nullptr, Instant{0}})) {
        const Allocation& place = kept.cluster.task(kept.cluster.job(job).tasks[0]).place;
        at = kept.cluster.node(place.node).spec.name + "/" + std::to_string(place.gpus);
      }
    }
    Trial trial(kept.cluster);
    std::string ours;
    if (kept.placer->place(trial, {job, {{0, {0}}}, Firmness::StartNow, nullptr, Instant{0}})) {
      trial.keep();
      const Allocation& place = kept.cluster.task(kept.cluster.job(job).tasks[0]).place;
      ours = kept.cluster.node(place.node).spec.name + "/" + std::to_string(place.gpus);
    }
    ASSERT_EQ(ours, at) << "task " << i;
  }
}

TEST(FgdPolicyTest, FragmentationIsWhatTypicalTasksCannotUse) {
  Lab lab("fgd");
  lab.node("n", 2, 8000);
  Fragmentation fragmentation(lab.cluster.shapes().models());
  fragmentation.set_typical({{4000, 1, 600, {}, 0.5},           // fits
                             {16'000, 1, 600, {}, 0.2},         // too little CPU
                             {1000, 1, kWholeGpu, {"B"}, 0.2},  // wrong model
                             {1000, 0, 0, {}, 0.1}});           // needs none
  EXPECT_DOUBLE_EQ(fragmentation.of(lab.cluster.node(NodeId{0}), View::Now), 0.5 * 2000);
  ASSERT_EQ(lab.place(Lab::request(1, 700, 1000)), "n/0");
  EXPECT_DOUBLE_EQ(fragmentation.of(lab.cluster.node(NodeId{0}), View::Now),
                   0.5 * 300 + 0.5 * 1300);
}

TEST(FgdPolicyTest, TakesTheGpuThatFragmentsLeast) {
  Lab lab("fgd");
  lab.config.typical_tasks = {{1000, 1, kWholeGpu, {}, 0.5}, {1000, 1, 500, {}, 0.5}};
  lab.placer->reconfigured();
  lab.node("n", 2, 64'000);
  EXPECT_EQ(lab.place(Lab::request(1, 500, 1000)), "n/0");
  EXPECT_EQ(lab.place(Lab::request(1, 500, 1000)), "n/0");
}

TEST(BestFitPolicyTest, TakesTheNodeWithLeastLeft) {
  Lab lab("bestfit");
  lab.node("a", 8, 64'000);
  lab.node("b", 2, 64'000);
  lab.node("c", 2, 32'000);
  EXPECT_EQ(lab.place(Lab::request(1, kWholeGpu, 4000)), "c/0");
  EXPECT_EQ(lab.place(Lab::request(2, kWholeGpu, 4000)), "b/0,1");
}

TEST(BestFitPolicyTest, ATaskOfAWholeNodeIsJudgedAsAnyOtherWhereThereIsNoNetwork) {
  Lab lab("bestfit");
  lab.node("a", 8, 128'000);
  lab.node("b", 8, 64'000);
  EXPECT_EQ(lab.place(Lab::request(8, kWholeGpu, 32'000)), "b/0,1,2,3,4,5,6,7");
}

TEST(PolicyTableTest, NamesAreFound) {
  for (const PolicyRow& row : node_policies()) EXPECT_EQ(find_node_policy(row.name), &row);
  EXPECT_EQ(find_node_policy("no-such"), nullptr);
}

}  // namespace
}  // namespace gs
