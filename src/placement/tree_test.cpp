#include "placement/tree.hpp"

#include <string>

#include <gtest/gtest.h>

#include "cluster/trial.hpp"
#include "placement/devices.hpp"

namespace gs {
namespace {

// Spines of leaves of nodes with 8 GPUs: s0/l0/n0, s0/l0/n1, ...
class TreeTest : public ::testing::Test {
 protected:
  void build(int spines, int leaves, int nodes, int gpus = 8) {
    cluster_.set_topology({"spine", "leaf"});
    int n = 0;
    for (int s = 0; s < spines; ++s)
      for (int l = 0; l < leaves; ++l)
        for (int i = 0; i < nodes; ++i) {
          Node node;
          node.name = "n" + std::to_string(n++);
          node.domain = {"s" + std::to_string(s), "l" + std::to_string(s * leaves + l)};
          node.capacity.cpu_milli = 64'000;
          for (int g = 0; g < gpus; ++g) {
            Gpu gpu;
            gpu.index = g;
            gpu.memory_mib = 80'000;
            node.gpus.push_back(gpu);
          }
          cluster_.put_node(node);
        }
  }

  TaskRequest whole(int gpus) {
    TaskRequest request;
    request.gpu.count = gpus;
    return request;
  }

  TreeAsk ask(const TaskRequest& request, int count, Reach reach, int level) {
    TreeAsk a;
    a.shape = cluster_.shapes().intern(request);
    a.count = count;
    a.reach = reach;
    a.level = level;
    return a;
  }

  std::string find(const TreeAsk& a) {
    if (!tree_.find(a)) return "no";
    std::string out;
    for (const Portion& portion : tree_.portions()) {
      out += (out.empty() ? "" : " ") + cluster_.node(portion.node).spec.name;
      if (portion.tasks != 1) out += "x" + std::to_string(portion.tasks);
      if (portion.leader) out += "L";
    }
    return out;
  }

  // Takes GPUs of a node for somebody.
  void take(Trial& trial, const std::string& node, int gpus) {
    Job job;
    job.id = "taken-" + std::to_string(taken_++);
    Group group;
    group.request = whole(gpus);
    job.groups.push_back(group);
    const JobId id = cluster_.add_job(job, {});
    const NodeId where = cluster_.find_node(node);
    const Shape& shape = cluster_.shapes().at(cluster_.shape_of(id).groups[0].shape);
    const auto place = devices_.choose(cluster_, where, shape, View::Now, id);
    ASSERT_TRUE(place.has_value());
    trial.place(id, 0, 0, *place, TaskState::Running, {});
  }

  Cluster cluster_;
  Config config_;
  Tree tree_{cluster_, config_};
  DeviceChooser devices_;
  int taken_ = 0;
};

TEST_F(TreeTest, FollowsTheChangeLogForthAndBack) {
  build(2, 2, 2);
  const TreeAsk gang = ask(whole(8), 2, Reach::Required, 1);
  EXPECT_EQ(find(gang), "n0 n1");
  {
    Trial trial(cluster_);
    take(trial, "n0", 1);
    EXPECT_EQ(find(gang), "n2 n3");
    take(trial, "n3", 8);
    EXPECT_EQ(find(gang), "n4 n5");
  }
  EXPECT_EQ(find(gang), "n0 n1");
  cluster_.set_cordoned(cluster_.find_node("n1"), true);
  EXPECT_EQ(find(gang), "n2 n3");
  cluster_.set_ready(cluster_.find_node("n2"), false);
  EXPECT_EQ(find(gang), "n4 n5");
}

TEST_F(TreeTest, SeesNodesComeAndGo) {
  build(1, 1, 1);
  const TreeAsk gang = ask(whole(8), 2, Reach::Preferred, 2);
  EXPECT_EQ(find(gang), "no");
  EXPECT_EQ(tree_.shortage().holds, 1);
  EXPECT_EQ(tree_.shortage().needs, 2);
  Node node = cluster_.node(cluster_.find_node("n0")).spec;
  node.name = "n7";
  node.domain = {"s0", "l9"};
  cluster_.put_node(node);
  EXPECT_EQ(find(gang), "n0 n7");
  cluster_.remove_node(cluster_.find_node("n0"));
  EXPECT_EQ(find(gang), "no");
}

TEST_F(TreeTest, AShortageNamesTheBestDomain) {
  build(2, 2, 2);
  Trial trial(cluster_);
  take(trial, "n0", 8);
  take(trial, "n2", 8);
  take(trial, "n4", 8);
  EXPECT_EQ(find(ask(whole(8), 3, Reach::Required, 1)), "no");
  EXPECT_EQ(cluster_.domains().path(tree_.shortage().where), "s1/l3");
  EXPECT_EQ(tree_.shortage().holds, 2);
  EXPECT_EQ(find(ask(whole(9), 1, Reach::Required, 2)), "no");
  EXPECT_EQ(tree_.shortage().holds, 0);
}

TEST_F(TreeTest, AmongAndWithinNarrow) {
  build(2, 2, 2);
  TreeAsk gang = ask(whole(8), 2, Reach::Preferred, 1);
  std::vector<bool> some(cluster_.node_count(), false);
  some[1] = some[4] = some[5] = true;
  gang.among = &some;
  EXPECT_EQ(find(gang), "n4 n5");
  gang.among = nullptr;
  gang.within = cluster_.domains().named("l1").at(0);
  EXPECT_EQ(find(gang), "n2 n3");
  gang.count = 3;
  EXPECT_EQ(find(gang), "no");
  gang.count = 1;
  gang.within = {};
  gang.within_node = cluster_.find_node("n6");
  EXPECT_EQ(find(gang), "n6");
}

TEST_F(TreeTest, ThePreferredDomainComesFirstIfItHoldsAll) {
  build(2, 2, 2);
  TaskRequest request = whole(8);
  request.preferred_domain = "s1";
  EXPECT_EQ(find(ask(request, 2, Reach::Preferred, 1)), "n4 n5");
  EXPECT_EQ(find(ask(request, 3, Reach::Preferred, 1)), "n4 n5 n6");
  EXPECT_EQ(find(ask(request, 5, Reach::Preferred, 1)), "n0 n1 n2 n3 n4");
  request.preferred_domain = "no-such-domain";
  EXPECT_EQ(find(ask(request, 2, Reach::Preferred, 1)), "n0 n1");
}

TEST_F(TreeTest, LimitsPerLeafHoldForTheWholeJob) {
  build(1, 3, 4);
  config_.max_nodes_per_leaf = 2;
  const TreeAsk four = ask(whole(8), 4, Reach::Preferred, 1);
  EXPECT_EQ(find(four), "n0 n1 n4 n5");
  EXPECT_EQ(find(ask(whole(8), 7, Reach::Preferred, 1)), "no");
  config_.max_nodes_per_leaf = 0;
  config_.max_gpus_per_leaf = 12;
  EXPECT_EQ(find(ask(whole(4), 3, Reach::Required, 1)), "n0x2 n1");
  EXPECT_EQ(find(ask(whole(4), 4, Reach::Required, 1)), "no");
  // What the job holds already counts: one GPU more fits into leaf 0, but no set of four.
  Job job;
  job.id = "j";
  Group group;
  group.request = whole(8);
  group.count = 2;
  job.groups.push_back(group);
  const JobId id = cluster_.add_job(job, {});
  Trial trial(cluster_);
  trial.place(id, 0, 0, {cluster_.find_node("n0"), first_gpus(8), {}}, TaskState::Running, {});
  TreeAsk more = ask(whole(4), 2, Reach::Required, 1);
  more.job = id;
  EXPECT_EQ(find(more), "n4x2");
}

TEST_F(TreeTest, ALeaderIsCountedOnTheSameDevices) {
  build(1, 2, 2);
  Trial trial(cluster_);
  take(trial, "n0", 2);
  take(trial, "n2", 4);
  TreeAsk workers = ask(whole(4), 3, Reach::Required, 1);
  workers.leader = cluster_.shapes().intern(whole(2));
  EXPECT_EQ(find(workers), "n0L n1x2") << "leaf 1 holds three workers, but then no leader";
  workers.count = 4;
  EXPECT_EQ(find(workers), "no");
  EXPECT_TRUE(tree_.shortage().leader_fits);
}

TEST_F(TreeTest, CandidatesHoldEveryGroup) {
  build(2, 2, 2);
  Trial trial(cluster_);
  take(trial, "n0", 8);
  take(trial, "n3", 4);
  const std::vector<TreeAsk> groups = {ask(whole(8), 1, Reach::Anywhere, 2),
                                       ask(whole(4), 3, Reach::Anywhere, 2)};
  std::string leaves;
  for (const Tree::Candidate& candidate : tree_.candidates(groups, 1, {}))
    leaves += cluster_.domains().at(candidate.domain).name + " ";
  EXPECT_EQ(leaves, "l1 l2 l3 ");
  const auto nodes = tree_.candidates({ask(whole(8), 1, Reach::Anywhere, 2)}, 2,
                                      cluster_.domains().named("l1").at(0));
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes[0].node, cluster_.find_node("n2"));
}

TEST_F(TreeTest, ADomainWhoseNodesHaveGoneHoldsNothing) {
  build(1, 2, 1);
  TreeAsk there = ask(whole(1), 1, Reach::Anywhere, 2);
  there.within = cluster_.domains().named("l0").at(0);
  EXPECT_EQ(find(there), "n0");
  cluster_.remove_node(cluster_.find_node("n0"));
  EXPECT_EQ(find(there), "no");
  EXPECT_TRUE(tree_.candidates({there}, 2, there.within).empty());
  cluster_.remove_node(cluster_.find_node("n1"));
  EXPECT_EQ(find(there), "no");
}

TEST_F(TreeTest, WishesThatNoClusterCanMeetAreErrors) {
  build(1, 1, 1);
  const DomainTree& domains = cluster_.domains();
  const auto message = [&](const TopologyWish& wish, const std::vector<Slice>& slices) {
    const auto made = tree_ask(domains, wish, slices);
    return made ? std::string("fine") : made.error().message;
  };
  EXPECT_EQ(message({"rack", ""}, {}), "topology: no level \"rack\" here");
  EXPECT_EQ(message({"", ""}, {{"rack", 2}}), "slices: no level \"rack\" here");
  EXPECT_EQ(message({"", ""}, {{"leaf", 4}, {"node", 3}}), "slices: 3 does not divide 4");
  EXPECT_EQ(message({"", ""}, {{"node", 4}, {"leaf", 2}}),
            "slices: \"leaf\" does not lie inside the level before it");
  EXPECT_TRUE(tree_ask(domains, {"leaf", ""}, {{"spine", 2}})->slices.empty())
      << "one leaf lies in one spine";
  EXPECT_EQ(tree_ask(domains, {"", "node"}, {{"leaf", 2}})->level, 1)
      << "a wish for less than packs need is only a wish";
  const auto both = tree_ask(domains, {"spine", "leaf"}, {});
  ASSERT_TRUE(both);
  EXPECT_EQ(both->reach, Reach::Preferred);
  EXPECT_EQ(both->level, 1);
  EXPECT_EQ(both->limit, 0);
}

}  // namespace
}  // namespace gs
