// Rules between pods at the desk: what is bound where, one by one and as gangs. The world itself
// looks at every order (World::check_rules).
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "drivers/kubernetes/world_test.hpp"

namespace gs::kube {
namespace {

constexpr const char* kZone = "zone";
constexpr const char* kHost = "kubernetes.io/hostname";

PodTerm term(const std::string& app, const char* key) {
  PodTerm term;
  term.selector = LabelSelector{{{"app", LabelOp::In, {app}}}};
  term.topology_key = key;
  return term;
}

Pod labelled(Pod pod, const std::string& app) {
  set_label(pod.meta.labels, "app", app);
  return pod;
}

Pod apart(Pod pod, const std::string& app, const char* key = kHost) {
  pod = labelled(std::move(pod), app);
  pod.pod_anti_affinity.required = {term(app, key)};
  return pod;
}

Pod spread(Pod pod, const std::string& app, const char* key = kZone) {
  pod = labelled(std::move(pod), app);
  TopologySpread rule;
  rule.topology_key = key;
  rule.selector = LabelSelector{{{"app", LabelOp::In, {app}}}};
  pod.spread = {rule};
  return pod;
}

// Six nodes of eight GPUs, two in each of three zones.
class RulesAtTheDesk : public testing::Test {
 protected:
  RulesAtTheDesk() {
    for (int i = 0; i < 6; ++i)
      world_.add_node("n" + std::to_string(i), 8, {{kZone, std::string(1, "abc"[i / 2])}});
  }

  std::string zone_of(const std::string& uid) {
    const std::string& node = world_.pod(uid).node_name;
    return node.empty() ? "" : *find_label(world_.nodes().at(node).labels, kZone);
  }
  std::map<std::string, int> zones(const std::vector<std::string>& uids) {
    std::map<std::string, int> counts;
    for (const std::string& uid : uids) ++counts[zone_of(uid)];
    return counts;
  }
  std::set<std::string> nodes(const std::vector<std::string>& uids) {
    std::set<std::string> names;
    for (const std::string& uid : uids) names.insert(world_.pod(uid).node_name);
    return names;
  }
  std::string told(const std::string& uid) {
    world_.advance(seconds(2));
    const auto it = world_.told().find(uid);
    return it == world_.told().end() ? "" : it->second.message;
  }

  World world_;
};

TEST_F(RulesAtTheDesk, pods_that_keep_apart_get_a_node_each) {
  std::vector<std::string> uids;
  for (int i = 0; i < 7; ++i)
    uids.push_back(world_.add(apart(world_.make_pod("p" + std::to_string(i), 1), "web")));
  world_.play();
  EXPECT_EQ(nodes(uids).size(), 7U) << "six nodes, and none for the last";
  std::string last;
  for (const std::string& uid : uids)
    if (world_.pod(uid).node_name.empty()) last = uid;
  EXPECT_NE(told(last).find("anti-affinity between it and others leaves 0 of 6 nodes"),
            std::string::npos)
      << told(last);
  world_.end_pod(uids[0] == last ? uids[1] : uids[0], PodPhase::Succeeded);
  world_.play();
  EXPECT_NE(world_.pod(last).node_name, "");
}

TEST_F(RulesAtTheDesk, a_newcomer_keeps_away_from_those_that_want_it_so) {
  Pod lonely = labelled(world_.make_pod("lonely", 1), "db");
  lonely.pod_anti_affinity.required = {term("web", kZone)};
  const std::string first = world_.add(lonely);
  world_.play();
  std::vector<std::string> uids;
  for (int i = 0; i < 32; ++i)
    uids.push_back(world_.add(labelled(world_.make_pod("w" + std::to_string(i), 1), "web")));
  world_.play();
  for (const std::string& uid : uids) EXPECT_NE(zone_of(uid), "") << uid;
  EXPECT_EQ(zones(uids).count(zone_of(first)), 0U);
}

TEST_F(RulesAtTheDesk, a_pod_that_waits_may_be_relabelled_out_of_a_rule) {
  for (const char* zone : {"a", "b", "c"}) {
    Pod lonely = labelled(world_.make_pod(std::string("lonely-") + zone, 1), "db");
    lonely.pod_anti_affinity.required = {term("web", kZone)};
    lonely.node_selector = {{kZone, zone}};
    world_.bind_by_another(world_.add(lonely), std::string("n") + std::to_string(2 * (*zone - 'a')),
                           {0});
  }
  const std::string uid = world_.add(labelled(world_.make_pod("newcomer", 1), "web"));
  world_.play();
  ASSERT_EQ(zone_of(uid), "");
  world_.add(labelled(world_.pod(uid), "cache"));
  world_.play();
  EXPECT_NE(zone_of(uid), "");
}

TEST_F(RulesAtTheDesk, followers_come_after_whom_they_follow) {
  Pod follower = labelled(world_.make_pod("follower", 1), "web");
  follower.pod_affinity.required = {term("cache", kHost)};
  const std::string uid = world_.add(follower);
  world_.play();
  EXPECT_EQ(world_.pod(uid).node_name, "");
  EXPECT_NE(told(uid).find("affinity to other pods leaves 0 of 6 nodes"), std::string::npos);
  const std::string cache = world_.add(labelled(world_.make_pod("cache", 4), "cache"));
  world_.play();
  EXPECT_EQ(world_.pod(uid).node_name, world_.pod(cache).node_name);
}

TEST_F(RulesAtTheDesk, pods_spread_over_zones) {
  std::vector<std::string> uids;
  for (int i = 0; i < 12; ++i)
    uids.push_back(world_.add(spread(world_.make_pod("s" + std::to_string(i), 1), "web")));
  world_.play();
  EXPECT_EQ(zones(uids), (std::map<std::string, int>{{"a", 4}, {"b", 4}, {"c", 4}}));
}

TEST_F(RulesAtTheDesk, a_gang_that_keeps_apart_starts_on_as_many_nodes) {
  std::vector<std::string> uids;
  for (int i = 0; i < 6; ++i)
    uids.push_back(
        world_.add(apart(world_.make_pod("g" + std::to_string(i), 1, "ring", 6), "ring")));
  world_.play();
  EXPECT_EQ(nodes(uids).size(), 6U);
  EXPECT_EQ(nodes(uids).count(""), 0U);
}

TEST_F(RulesAtTheDesk, a_gang_that_can_not_keep_apart_is_not_begun) {
  std::vector<std::string> uids;
  for (int i = 0; i < 4; ++i)
    uids.push_back(
        world_.add(apart(world_.make_pod("g" + std::to_string(i), 1, "ring", 4), "ring", kZone)));
  world_.play();
  EXPECT_EQ(nodes(uids), std::set<std::string>{""});
  EXPECT_TRUE(world_.leases().empty());
  world_.add_node("n6", 8, {{kZone, "d"}});
  world_.advance(seconds(90));
  EXPECT_EQ(zones(uids), (std::map<std::string, int>{{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}}));
}

TEST_F(RulesAtTheDesk, a_gang_that_keeps_apart_starts_over_elsewhere_while_its_pods_are_made_anew) {
  std::vector<std::string> uids;
  for (int i = 0; i < 3; ++i)
    uids.push_back(
        world_.add(apart(world_.make_pod("g" + std::to_string(i), 8, "ring", 3), "ring", kZone)));
  world_.play();
  ASSERT_EQ(zones(uids), (std::map<std::string, int>{{"a", 1}, {"b", 1}, {"c", 1}}));
  world_.set_controllers(true);
  const std::string lost = world_.pod(uids[0]).node_name;
  world_.set_ready(lost, false);
  world_.play();
  world_.remove_pod(uids[0]);  // by whoever watches over nodes
  world_.advance(seconds(5));
  std::set<std::string> zones, nodes;
  for (const auto& [uid, pod] : world_.pods()) {
    zones.insert(zone_of(uid));
    nodes.insert(pod.node_name);
  }
  EXPECT_EQ(zones, (std::set<std::string>{"a", "b", "c"}));
  EXPECT_FALSE(nodes.contains(lost));
}

// Its plan is turned back, and one of its pods is gone: the next plan would be the same.
TEST_F(RulesAtTheDesk, a_gang_that_waits_for_a_member_is_not_planned_without_it) {
  std::vector<std::string> uids;
  for (int i = 0; i < 3; ++i)
    uids.push_back(
        world_.add(apart(world_.make_pod("g" + std::to_string(i), 1, "ring", 3), "ring", kZone)));
  world_.remove_pod(uids[2]);
  world_.play();
  uids[2] = world_.add(apart(world_.make_pod("again", 1, "ring", 3), "ring", kZone));
  world_.play();
  EXPECT_EQ(zones(uids), (std::map<std::string, int>{{"a", 1}, {"b", 1}, {"c", 1}}));
}

TEST_F(RulesAtTheDesk, a_gang_spreads_while_it_starts) {
  std::vector<std::string> uids;
  for (int i = 0; i < 12; ++i)
    uids.push_back(
        world_.add(spread(world_.make_pod("g" + std::to_string(i), 2, "ring", 12), "ring")));
  world_.play();
  EXPECT_EQ(zones(uids), (std::map<std::string, int>{{"a", 4}, {"b", 4}, {"c", 4}}));
}

TEST_F(RulesAtTheDesk, workers_start_beside_the_leader_of_their_gang) {
  std::vector<std::string> uids;
  for (int i = 0; i < 4; ++i) {
    Pod pod = world_.make_pod("g" + std::to_string(i), 4, "ring", 4);
    if (i == 3) {
      uids.push_back(world_.add(labelled(pod, "leader")));
      continue;
    }
    pod.pod_affinity.required = {term("leader", kZone)};
    uids.push_back(world_.add(pod));
  }
  world_.play();
  EXPECT_EQ(zones(uids).size(), 1U);
  EXPECT_EQ(zones(uids).count(""), 0U);
}

TEST_F(RulesAtTheDesk, a_host_port_is_taken_once_a_node) {
  std::vector<std::string> uids;
  for (int i = 0; i < 7; ++i) {
    Pod pod = world_.make_pod("p" + std::to_string(i), 1);
    pod.host_ports = {{"0.0.0.0", 80, "TCP"}};
    uids.push_back(world_.add(pod));
  }
  world_.play();
  EXPECT_EQ(nodes(uids).size(), 7U);
  std::string last;
  for (const std::string& uid : uids)
    if (world_.pod(uid).node_name.empty()) last = uid;
  EXPECT_NE(told(last).find("host port 80/TCP"), std::string::npos) << told(last);
}

TEST_F(RulesAtTheDesk, a_host_port_of_somebody_elses_pod_counts) {
  for (int i = 1; i < 6; ++i) world_.remove_node("n" + std::to_string(i));
  Pod theirs = world_.make_pod("theirs", 1);
  theirs.scheduler_name = "default-scheduler";
  theirs.host_ports = {{"10.0.0.1", 80, "TCP"}};
  world_.bind_by_another(world_.add(theirs), "n0", {});
  Pod same = world_.make_pod("same", 1), other = world_.make_pod("other", 1);
  same.host_ports = {{"0.0.0.0", 80, "TCP"}};
  other.host_ports = {{"10.0.0.2", 80, "TCP"}};
  const std::string a = world_.add(same), b = world_.add(other);
  world_.play();
  EXPECT_EQ(world_.pod(a).node_name, "");
  EXPECT_EQ(world_.pod(b).node_name, "n0");
}

TEST_F(RulesAtTheDesk, wishes_decide_between_nodes_that_are_alike) {
  const std::string cache = world_.add(labelled(world_.make_pod("cache", 1), "cache"));
  world_.play();
  for (const bool near : {true, false}) {
    Pod pod = labelled(world_.make_pod(near ? "near" : "far", 1), "web");
    PodTerm wish = term("cache", kZone);
    wish.weight = 100;
    (near ? pod.pod_affinity : pod.pod_anti_affinity).preferred = {wish};
    const std::string uid = world_.add(pod);
    world_.play();
    EXPECT_EQ(zone_of(uid) == zone_of(cache), near);
  }
}

TEST_F(RulesAtTheDesk, rules_outlive_the_scheduler) {
  std::vector<std::string> uids;
  for (int i = 0; i < 3; ++i)
    uids.push_back(world_.add(apart(world_.make_pod("p" + std::to_string(i), 1), "web", kZone)));
  world_.play();
  world_.restart();
  uids.push_back(world_.add(apart(world_.make_pod("p3", 1), "web", kZone)));
  world_.play();
  EXPECT_EQ(world_.pod(uids.back()).node_name, "");
  world_.end_pod(uids[0], PodPhase::Failed);
  world_.play();
  EXPECT_NE(world_.pod(uids.back()).node_name, "");
}

}  // namespace
}  // namespace gs::kube
