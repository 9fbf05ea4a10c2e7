#include "cluster/layout.hpp"

#include <gtest/gtest.h>

namespace gs {
namespace {

Node node_with(std::vector<std::string> islands) {
  Node node;
  node.name = "n";
  for (std::size_t i = 0; i < islands.size(); ++i) {
    Gpu gpu;
    gpu.index = static_cast<int>(i);
    gpu.model = "H100";
    gpu.memory_mib = 81'920;
    gpu.island = islands[i];
    gpu.bandwidth_gbps = 900;
    node.gpus.push_back(gpu);
  }
  return node;
}

TEST(Layout, links_inside_an_island_have_its_bandwidth_and_others_that_of_pcie) {
  Names models;
  const Layout layout = layout_of(node_with({"a", "a", "b"}), models);
  EXPECT_EQ(layout.between(0, 1), 900);
  EXPECT_EQ(layout.between(0, 2), kPcieGBps);
  EXPECT_EQ(layout.islands, 2);
  EXPECT_EQ(layout.of_island(0), 0b011U);
  EXPECT_EQ(layout.of_island(1), 0b100U);
}

TEST(Layout, a_known_matrix_wins) {
  Names models;
  Node node = node_with({"a", "a"});
  node.peer_bandwidth_gbps = {0, 50, 50, 0};
  EXPECT_EQ(layout_of(node, models).between(0, 1), 50);
}

TEST(Layout, machines_of_one_kind_are_equal_whatever_their_names) {
  Names models;
  Node other = node_with({"x", "x", "y"});
  other.name = "other";
  EXPECT_EQ(layout_of(node_with({"a", "a", "b"}), models), layout_of(other, models));
  EXPECT_NE(layout_of(node_with({"a", "b", "b"}), models), layout_of(other, models));
}

TEST(Layout, models_are_masks) {
  Names models;
  Node node = node_with({"a", "a"});
  node.gpus[1].model = "A100";
  const Layout layout = layout_of(node, models);
  EXPECT_EQ(layout.of_model(models.intern("A100")), 0b10U);
  EXPECT_EQ(layout.of_model(models.intern("T4")), 0U);
}

TEST(Layout, a_node_without_gpus_is_empty) {
  Names models;
  EXPECT_EQ(layout_of(Node{}, models).count, 0);
}

}  // namespace
}  // namespace gs
