#include "cluster/domains.hpp"

#include <gtest/gtest.h>

namespace gs {
namespace {

TEST(NaturalOrder, compares_runs_of_digits_by_value) {
  EXPECT_TRUE(natural_less("leaf-2", "leaf-10"));
  EXPECT_FALSE(natural_less("leaf-10", "leaf-2"));
  EXPECT_TRUE(natural_less("a", "a1"));
  EXPECT_TRUE(natural_less("a9b10", "a10b2"));
  EXPECT_TRUE(natural_less("x99999999999999999999998", "x99999999999999999999999"));
}

TEST(NaturalOrder, is_total_also_for_names_of_equal_value) {
  EXPECT_NE(natural_less("n01", "n1"), natural_less("n1", "n01"));
  EXPECT_FALSE(natural_less("n1", "n1"));
}

class Tree : public testing::Test {
 protected:
  Tree() { tree.set_levels({"spine", "leaf"}); }
  DomainId attach(std::size_t node, const std::string& spine, const std::string& leaf) {
    return tree.attach(NodeId{node}, "n" + std::to_string(node), {spine, leaf});
  }
  std::vector<std::string> names(DomainId id) const {
    std::vector<std::string> names;
    for (const DomainId child : tree.at(id).children) names.push_back(tree.at(child).name);
    return names;
  }
  DomainTree tree;
};

TEST_F(Tree, levels_are_found_by_name_and_the_node_is_the_innermost) {
  EXPECT_EQ(tree.level_index("spine"), 0);
  EXPECT_EQ(tree.level_index("leaf"), 1);
  EXPECT_EQ(tree.level_index("node"), 2);
  EXPECT_EQ(tree.level_index("kubernetes.io/hostname"), 2);
  EXPECT_EQ(tree.level_index("rack"), std::nullopt);
}

TEST_F(Tree, children_and_nodes_are_in_natural_order_whatever_the_order_of_arrival) {
  attach(10, "s1", "leaf-10");
  attach(2, "s1", "leaf-2");
  const DomainId leaf = attach(9, "s1", "leaf-2");
  const DomainId spine = tree.at(leaf).parent;
  EXPECT_EQ(names(spine), (std::vector<std::string>{"leaf-2", "leaf-10"}));
  EXPECT_EQ(tree.at(tree.at(spine).children[1]).position, 1);
  EXPECT_EQ(tree.at(leaf).nodes, (std::vector<NodeId>{NodeId{2}, NodeId{9}}));
}

TEST_F(Tree, the_same_name_under_two_parents_is_two_domains) {
  EXPECT_NE(attach(1, "s1", "leaf"), attach(2, "s2", "leaf"));
  EXPECT_EQ(tree.named("leaf").size(), 2U);
}

TEST_F(Tree, a_node_with_an_incomplete_path_hangs_under_the_root) {
  EXPECT_EQ(tree.attach(NodeId{1}, "n1", {"s1"}), DomainTree::root());
  EXPECT_TRUE(tree.at(DomainTree::root()).children.empty());
}

TEST_F(Tree, a_domain_without_nodes_leaves_the_lists_and_comes_back_as_itself) {
  attach(1, "s1", "a");
  const DomainId b = attach(2, "s1", "b");
  const DomainId c = attach(3, "s1", "c");
  const DomainId spine = tree.at(b).parent;
  tree.detach(NodeId{2}, b);
  EXPECT_EQ(names(spine), (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(tree.at(c).position, 1) << "its neighbour is a now";
  EXPECT_TRUE(tree.named("b").empty());
  EXPECT_EQ(attach(2, "s1", "b"), b);
  EXPECT_EQ(names(spine), (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(Tree, an_emptied_branch_goes_up_to_the_root) {
  const DomainId leaf = attach(1, "s1", "a");
  tree.detach(NodeId{1}, leaf);
  EXPECT_TRUE(tree.at(DomainTree::root()).children.empty());
}

TEST_F(Tree, ancestors_hops_and_paths) {
  const DomainId a = attach(1, "s1", "a");
  const DomainId b = attach(2, "s1", "b");
  const DomainId other = attach(3, "s2", "a");
  EXPECT_EQ(tree.ancestor(a, 0), tree.ancestor(b, 0));
  EXPECT_FALSE(tree.ancestor(tree.at(a).parent, 1).valid());
  EXPECT_TRUE(tree.contains(tree.at(a).parent, b));
  EXPECT_FALSE(tree.contains(tree.at(a).parent, other));
  EXPECT_EQ(tree.hops(a, a), 2);
  EXPECT_EQ(tree.hops(a, b), 4);
  EXPECT_EQ(tree.hops(a, other), 6);
  EXPECT_EQ(tree.path(a), "s1/a");
  EXPECT_EQ(tree.path(DomainTree::root()), "cluster");
}

}  // namespace
}  // namespace gs
