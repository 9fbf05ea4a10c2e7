// Where device plugins choose devices: pods that they choose for, and pods that are told theirs,
// never meet on a node.
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "drivers/kubernetes/world_test.hpp"

namespace gs::kube {
namespace {

class Choosers : public testing::Test {
 protected:
  explicit Choosers(bool kubelet_chooses = true) : world_(1, true, true, kubelet_chooses) {
    for (const char* node : {"n0", "n1"}) world_.add_node(node, 8);
  }
  std::string named(const std::string& name, int gpus) {
    return world_.add(world_.make_named(name, gpus));
  }
  std::string node_of(const std::string& uid) { return world_.pod(uid).node_name; }
  std::string told(const std::string& uid) {
    world_.advance(seconds(2));
    const auto it = world_.told().find(uid);
    return it == world_.told().end() ? "" : it->second.message;
  }
  // Of every node, whether pods with a limit are on it, and whether pods without one are.
  void expect_apart() {
    std::map<std::string, std::set<bool>> kinds;
    for (const auto& [uid, pod] : world_.pods())
      if (!pod.node_name.empty())
        kinds[pod.node_name].insert(!pod.containers.front().limits.empty());
    for (const auto& [node, both] : kinds) EXPECT_EQ(both.size(), 1U) << node;
  }

  World world_;
};

TEST_F(Choosers, keep_pods_of_the_two_kinds_apart) {
  const std::string limit = world_.add_pod("limit", 1);
  world_.play();
  const std::string first = named("first", 1);
  world_.play();
  EXPECT_NE(node_of(first), node_of(limit));
  const std::string more = world_.add_pod("more", 7);
  const std::string second = named("second", 7);
  world_.play();
  EXPECT_EQ(node_of(more), node_of(limit));
  EXPECT_EQ(node_of(second), node_of(first));
  expect_apart();
}

TEST_F(Choosers, keep_them_apart_when_they_come_together) {
  world_.add_node("n2", 8);
  for (int i = 0; i < 4; ++i) {
    world_.add_pod("limit-" + std::to_string(i), 2);
    named("named-" + std::to_string(i), 2);
  }
  world_.play();
  world_.advance(seconds(5));
  world_.play();
  expect_apart();
  for (const auto& [uid, pod] : world_.pods()) EXPECT_FALSE(pod.node_name.empty()) << uid;
}

TEST_F(Choosers, keep_members_of_one_gang_apart) {
  const std::string leader = world_.add(world_.make_pod("leader", 1, "ring", 3));
  world_.add(world_.make_named("worker-0", 1, "ring", 3));
  world_.add(world_.make_named("worker-1", 1, "ring", 3));
  world_.play();
  for (const auto& [uid, pod] : world_.pods()) EXPECT_FALSE(pod.node_name.empty()) << uid;
  expect_apart();
}

TEST_F(Choosers, let_a_gang_evict_its_own_kind) {
  world_.add_pod("limit", 8);
  named("low", 8);
  world_.play();
  std::vector<std::string> gang;
  for (const char* name : {"g0", "g1"}) {
    Pod pod = world_.make_named(name, 4, "ring", 2);
    pod.priority = 100;
    gang.push_back(world_.add(std::move(pod)));
  }
  const std::string node = node_of("uid-low");
  world_.play();
  world_.kill_evicted();
  world_.play();
  EXPECT_EQ(node_of(gang[0]), node);
  EXPECT_EQ(node_of(gang[1]), node);
  EXPECT_TRUE(world_.exists("uid-limit"));
}

TEST_F(Choosers, say_why_a_pod_waits_and_let_it_in_when_the_others_have_gone) {
  const std::string a = world_.add_pod("a", 5), b = world_.add_pod("b", 5);
  world_.play();
  ASSERT_NE(node_of(a), node_of(b));
  const std::string waits = named("waits", 1);
  world_.play();
  EXPECT_EQ(node_of(waits), "");
  EXPECT_NE(told(waits).find("pods whose devices the kubelet chooses leave 0 of 2 nodes"),
            std::string::npos)
      << told(waits);
  const std::string node = node_of(a);
  world_.end_pod(a, PodPhase::Succeeded);
  world_.play();
  EXPECT_EQ(node_of(waits), node);
  world_.remove_pod(b);
  named("other", 8);
  const std::string late = world_.add_pod("late", 1);
  world_.play();
  EXPECT_EQ(node_of(late), "");
  EXPECT_NE(told(late).find("pods that were told their devices leave 0 of 2 nodes"),
            std::string::npos)
      << told(late);
}

TEST_F(Choosers, know_those_that_they_find_and_those_of_others) {
  named("named", 1);
  world_.play();
  const std::string foreign = world_.add_pod("foreign", 1, {}, 0, "default-scheduler");
  const std::string free = node_of("uid-named") == "n0" ? "n1" : "n0";
  world_.bind_by_another(foreign, free, {});
  world_.play();
  world_.restart();
  const std::string more = named("more", 7), limit = world_.add_pod("limit", 7);
  world_.play();
  EXPECT_EQ(node_of(more), node_of("uid-named"));
  EXPECT_EQ(node_of(limit), free);
}

TEST_F(Choosers, know_whom_another_of_our_schedulers_told_its_devices) {
  Pod theirs = world_.make_named("theirs", 1);
  theirs.scheduler_name = "gpu-scheduler-of-another-team";
  world_.bind_by_another(world_.add(std::move(theirs)), "n0", {0});
  world_.play();
  const std::string limit = world_.add_pod("limit", 1);
  world_.play();
  EXPECT_EQ(node_of(limit), "n1");
}

TEST_F(Choosers, leave_pods_without_gpus_alone) {
  world_.add_pod("limit", 1);
  named("named", 1);
  world_.play();
  const std::string plain = world_.add_pod("plain", 0);
  world_.play();
  EXPECT_FALSE(node_of(plain).empty());
}

class NoChoosers : public Choosers {
 protected:
  NoChoosers() : Choosers(false) {}
};

TEST_F(NoChoosers, pods_of_both_kinds_share_a_node) {
  const std::string limit = world_.add_pod("limit", 1);
  world_.play();
  const std::string named_pod = named("named", 1);
  world_.play();
  EXPECT_EQ(node_of(named_pod), node_of(limit)) << "the fuller node";
}

}  // namespace
}  // namespace gs::kube
