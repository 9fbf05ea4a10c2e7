// Which nodes rules between pods leave: tables after what Kubernetes documents of its scheduler.
#include "drivers/kubernetes/pod_rules.hpp"

#include <deque>

#include <gtest/gtest.h>

#include "wire/kube/node_model.hpp"

namespace gs::kube {
namespace {

constexpr const char* kZone = "topology.kubernetes.io/zone";
constexpr const char* kHost = "kubernetes.io/hostname";

LabelSelector app(const std::string& value) { return {{{"app", LabelOp::In, {value}}}}; }

PodTerm term(const std::string& value, const char* key) {
  PodTerm term;
  term.selector = app(value);
  term.topology_key = key;
  return term;
}

TopologySpread spread(const std::string& value, int skew, const char* key = kZone) {
  TopologySpread rule;
  rule.max_skew = skew;
  rule.topology_key = key;
  rule.selector = app(value);
  return rule;
}

// Nodes a1 a2 in zone a, b1 b2 in zone b, c1 in zone c, x without a zone.
class Rules : public testing::Test {
 protected:
  Rules() {
    for (const char* name : {"a1", "a2", "b1", "b2", "c1", "x"})
      add_node(name, std::string(name, 1));
  }

  void add_node(const std::string& name, const std::string& zone) {
    gs::Node node;
    node.name = name;
    set_label(node.labels, kHost, name);
    set_label(node.labels, kNodeNameKey, name);
    if (zone != "x") set_label(node.labels, kZone, zone);
    rules_.put_node(std::make_shared<const gs::Node>(node));
  }

  Pod pod(const std::string& app_name, const std::string& ns = "default") {
    Pod pod;
    pod.meta.ns = ns;
    pod.meta.uid = "uid-" + std::to_string(++last_);
    set_label(pod.meta.labels, "app", app_name);
    return pod;
  }

  std::string put(const std::string& node, Pod pod) {
    rules_.place(pods_.emplace_back(std::move(pod)), node);
    return pods_.back().meta.uid;
  }

  // Names of the nodes that the pod may use, "a1 b2".
  std::string nodes_for(const Pod& pod) {
    std::string names;
    for (const auto& [name, node] : rules_.nodes())
      if (rules_.allows(pod, name)) names += (names.empty() ? "" : " ") + name;
    return names;
  }

  PodRules rules_;
  std::deque<Pod> pods_;
  int last_ = 0;
};

TEST_F(Rules, a_pod_without_rules_goes_anywhere) {
  put("a1", pod("web"));
  EXPECT_FALSE(rules_.book(pod("web")).has_value());
  EXPECT_EQ(nodes_for(pod("web")), "a1 a2 b1 b2 c1 x");
}

TEST_F(Rules, affinity_leads_into_the_domain_of_the_others) {
  Pod one = pod("web");
  one.pod_affinity.required = {term("cache", kZone)};
  EXPECT_EQ(nodes_for(one), "") << "nobody to be near to";
  const std::string uid = put("a1", pod("cache"));
  EXPECT_EQ(nodes_for(one), "a1 a2");
  put("b2", pod("cache"));
  EXPECT_EQ(nodes_for(one), "a1 a2 b1 b2");
  (void)rules_.lift(uid);
  EXPECT_EQ(nodes_for(one), "b1 b2");
  put("c1", pod("cache", "elsewhere"));
  EXPECT_EQ(nodes_for(one), "b1 b2") << "another namespace";
}

TEST_F(Rules, the_first_of_a_group_begins_where_there_is_a_domain) {
  Pod one = pod("web");
  one.pod_affinity.required = {term("web", kZone)};
  EXPECT_EQ(nodes_for(one), "a1 a2 b1 b2 c1") << "x has no zone";
  put("c1", one);
  Pod two = pod("web");
  two.pod_affinity.required = one.pod_affinity.required;
  EXPECT_EQ(nodes_for(two), "c1");
}

TEST_F(Rules, all_terms_must_hold_for_one_and_the_same_pod) {
  Pod one = pod("web");
  one.pod_affinity.required = {term("cache", kZone), term("cache", kHost)};
  put("a1", pod("cache"));
  EXPECT_EQ(nodes_for(one), "a1");
  PodTerm tier;
  tier.topology_key = kZone;
  tier.selector = LabelSelector{{{"tier", LabelOp::In, {"gold"}}}};
  one.pod_affinity.required = {term("cache", kZone), tier};
  EXPECT_EQ(nodes_for(one), "");
  Pod gold = pod("cache");
  set_label(gold.meta.labels, "tier", "gold");
  put("b1", gold);
  EXPECT_EQ(nodes_for(one), "b1 b2");
}

TEST_F(Rules, anti_affinity_keeps_out_of_the_domain_of_the_others) {
  Pod one = pod("web");
  one.pod_anti_affinity.required = {term("web", kHost)};
  EXPECT_EQ(nodes_for(one), "a1 a2 b1 b2 c1 x");
  put("a1", pod("web"));
  EXPECT_EQ(nodes_for(one), "a2 b1 b2 c1 x");
  one.pod_anti_affinity.required = {term("web", kZone)};
  EXPECT_EQ(nodes_for(one), "b1 b2 c1 x") << "a node without a zone is in nobody's zone";
}

TEST_F(Rules, anti_affinity_of_those_that_run_holds_for_newcomers_too) {
  Pod lonely = pod("db");
  lonely.pod_anti_affinity.required = {term("web", kZone)};
  const std::string uid = put("a1", lonely);
  EXPECT_EQ(nodes_for(pod("web")), "b1 b2 c1 x");
  EXPECT_EQ(nodes_for(pod("db")), "a1 a2 b1 b2 c1 x");
  EXPECT_EQ(nodes_for(pod("web", "elsewhere")), "a1 a2 b1 b2 c1 x");
  (void)rules_.lift(uid);
  EXPECT_FALSE(rules_.book(pod("web")).has_value());
}

TEST_F(Rules, namespaces_are_named_or_selected_by_their_labels) {
  rules_.put_namespace("blue", {{"team", "ml"}});
  rules_.put_namespace("red", {{"team", "web"}});
  put("a1", pod("cache", "blue"));
  put("b1", pod("cache", "red"));
  Pod one = pod("web");
  PodTerm near = term("cache", kZone);
  near.namespaces = {"red"};
  one.pod_affinity.required = {near};
  EXPECT_EQ(nodes_for(one), "b1 b2");
  near.namespaces.clear();
  near.namespace_selector = LabelSelector{{{"team", LabelOp::In, {"ml"}}}};
  one.pod_affinity.required = {near};
  EXPECT_EQ(nodes_for(one), "a1 a2");
  near.namespace_selector = LabelSelector{};
  one.pod_affinity.required = {near};
  EXPECT_EQ(nodes_for(one), "a1 a2 b1 b2") << "all namespaces";
  rules_.put_namespace("red", {{"team", "ml"}});
  near.namespace_selector = LabelSelector{{{"team", LabelOp::In, {"ml"}}}};
  one.pod_affinity.required = {near};
  EXPECT_EQ(nodes_for(one), "a1 a2 b1 b2") << "its labels have changed";
}

TEST_F(Rules, match_label_keys_compare_with_the_pod_itself) {
  const auto of_version = [&](const std::string& version) {
    Pod one = pod("web");
    set_label(one.meta.labels, "version", version);
    PodTerm apart = term("web", kZone);
    apart.match_label_keys = {"version"};
    one.pod_anti_affinity.required = {apart};
    return one;
  };
  put("a1", of_version("1"));
  EXPECT_EQ(nodes_for(of_version("1")), "b1 b2 c1 x");
  EXPECT_EQ(nodes_for(of_version("2")), "a1 a2 b1 b2 c1 x");
}

TEST_F(Rules, spread_keeps_the_skew) {
  Pod one = pod("web");
  one.spread = {spread("web", 1)};
  EXPECT_EQ(nodes_for(one), "a1 a2 b1 b2 c1") << "x has no zone";
  put("a1", pod("web"));
  EXPECT_EQ(nodes_for(one), "b1 b2 c1");
  put("b1", pod("web"));
  EXPECT_EQ(nodes_for(one), "c1");
  put("c1", pod("web"));
  EXPECT_EQ(nodes_for(one), "a1 a2 b1 b2 c1");
  one.spread = {spread("web", 2)};
  put("a2", pod("web"));
  EXPECT_EQ(nodes_for(one), "a1 a2 b1 b2 c1");
  put("a2", pod("web"));
  EXPECT_EQ(nodes_for(one), "b1 b2 c1");
}

TEST_F(Rules, a_pod_that_the_constraint_does_not_select_adds_nothing) {
  Pod one = pod("other");
  one.spread = {spread("web", 1)};
  put("a1", pod("web"));
  EXPECT_EQ(nodes_for(one), "a1 a2 b1 b2 c1");
  put("a1", pod("web"));
  EXPECT_EQ(nodes_for(one), "b1 b2 c1");
}

TEST_F(Rules, several_constraints_hold_together) {
  Pod one = pod("web");
  one.spread = {spread("web", 1), spread("web", 1, kHost)};
  put("a1", pod("web"));
  put("b1", pod("web"));
  put("c1", pod("web"));
  EXPECT_EQ(nodes_for(one), "a2 b2");
}

TEST_F(Rules, too_few_domains_count_as_one_that_is_empty) {
  Pod one = pod("web");
  one.spread = {spread("web", 1)};
  one.spread[0].min_domains = 4;
  for (const char* node : {"a1", "b1", "c1"}) put(node, pod("web"));
  EXPECT_EQ(nodes_for(one), "");
  add_node("d1", "d");
  EXPECT_EQ(nodes_for(one), "d1");
}

TEST_F(Rules, domains_that_the_pod_can_not_use_count_only_if_it_says_so) {
  Pod one = pod("web");
  one.spread = {spread("web", 1)};
  one.node_affinity.required = {NodeTerm{{{kZone, LabelOp::In, {"a", "b"}}}, {}}};
  put("a1", pod("web"));
  put("b1", pod("web"));
  EXPECT_NE(nodes_for(one).find("a1"), std::string::npos) << "zone c is not compared with";
  one.spread[0].honor_affinity = false;
  EXPECT_EQ(nodes_for(one), "c1");
}

TEST_F(Rules, tainted_nodes_count_unless_taints_are_honored) {
  gs::Node node;
  node.name = "c1";
  node.labels = {{kHost, "c1"}, {kZone, "c"}};
  node.taints = {{"gpu", "broken", TaintEffect::NoSchedule}};
  rules_.put_node(std::make_shared<const gs::Node>(node));
  Pod one = pod("web");
  one.spread = {spread("web", 1)};
  put("a1", pod("web"));
  put("b1", pod("web"));
  EXPECT_EQ(nodes_for(one), "c1");
  one.spread[0].honor_taints = true;
  EXPECT_EQ(nodes_for(one).substr(0, 11), "a1 a2 b1 b2");
}

TEST_F(Rules, a_pod_that_ends_counts_no_more_for_spreading) {
  Pod one = pod("web");
  one.spread = {spread("web", 1)};
  Pod ending = pod("web");
  ending.meta.deleted = Instant{1};
  put("a1", ending);
  EXPECT_EQ(nodes_for(one), "a1 a2 b1 b2 c1");
}

TEST_F(Rules, wishes_weigh_domains) {
  Pod one = pod("web");
  one.pod_affinity.preferred = {term("cache", kZone)};
  one.pod_affinity.preferred[0].weight = 30;
  one.pod_anti_affinity.preferred = {term("web", kHost)};
  one.pod_anti_affinity.preferred[0].weight = 20;
  one.spread = {spread("web", 1)};
  one.spread[0].required = false;
  put("a1", pod("cache"));
  put("b1", pod("web"));
  const std::optional<RuleBook> book = rules_.book(one);
  ASSERT_TRUE(book.has_value());
  EXPECT_TRUE(rules_.terms(*book).empty());
  const std::vector<PreferredTerms> wishes = rules_.wishes(*book);
  ASSERT_EQ(wishes.size(), 3U);
  EXPECT_EQ(wishes[0], (PreferredTerms{30, {{kZone, LabelOp::In, {"a"}}}}));
  EXPECT_EQ(wishes[1], (PreferredTerms{20, {{kHost, LabelOp::NotIn, {"b1"}}}}));
  EXPECT_EQ(wishes[2].terms, (LabelTerms{{kZone, LabelOp::In, {"a", "c"}}}));
}

TEST_F(Rules, words_say_what_each_rule_leaves) {
  Pod one = pod("web");
  one.pod_anti_affinity.required = {term("web", kHost)};
  one.spread = {spread("web", 1)};
  put("a1", pod("web"));
  EXPECT_EQ(rules_.words(*rules_.book(one)),
            "anti-affinity to other pods leaves 5 of 6 nodes, topology spread over "
            "topology.kubernetes.io/zone leaves 3 of 6 nodes");
}

TEST_F(Rules, looking_beside_others_changes_nothing) {
  Pod one = pod("web");
  one.pod_anti_affinity.required = {term("web", kZone)};
  const Pod two = pod("web");
  const std::uint64_t version = rules_.version();
  const LabelTerms terms = rules_.terms_beside(*rules_.book(one), {{&two, "a1"}});
  EXPECT_EQ(terms, (LabelTerms{{kZone, LabelOp::NotIn, {"a"}}}));
  EXPECT_EQ(rules_.version(), version);
  EXPECT_EQ(nodes_for(one), "a1 a2 b1 b2 c1 x");
}

}  // namespace
}  // namespace gs::kube
