// What a waiting job is told would have to move: enough for it, and no more than need be.
#include <algorithm>

#include <gtest/gtest.h>

#include "base/rng.hpp"
#include "engine/engine.hpp"

namespace gs {
namespace {

constexpr int kNodes = 6, kGpus = 8;

Job job(const std::string& id, int gpus, const std::string& node = {}, int tasks = 1) {
  Job j;
  j.id = id;
  j.tenant = "t";
  Group group;
  group.count = tasks;
  group.request.gpu.count = gpus;
  if (!node.empty()) group.request.only_nodes = {node};
  j.groups.push_back(group);
  return j;
}

class WouldMoveTest : public testing::Test {
 protected:
  WouldMoveTest() {
    Tenant t;
    t.id = "t";
    handle(PutTenant{t});
    for (int i = 0; i < kNodes; ++i) {
      Node node;
      node.name = name(i);
      node.capacity = {64'000, 512LL * 1024 * kMiB, {}};
      for (int g = 0; g < kGpus; ++g) {
        Gpu gpu;
        gpu.index = g;
        gpu.model = "H100";
        gpu.memory_mib = 81'920;
        node.gpus.push_back(gpu);
      }
      handle(PutNode{node});
    }
  }

  static std::string name(int i) { return "n" + std::to_string(i); }
  void handle(const Command& command) { ASSERT_TRUE(engine.handle(command, Instant{1}).ok()); }
  // One-GPU jobs on a node.
  void fill(int node, int count) {
    for (int i = 0; i < count; ++i)
      handle(SubmitJob{job(name(node) + "-" + std::to_string(i), 1, name(node))});
    engine.tick(Instant{2});
  }
  std::optional<WouldMove> moves_for(const std::string& id) {
    engine.tick(Instant{3});
    const Result<Explanation> known = engine.explain(id, Instant{3});
    return known && known->why ? known->why->moves : std::nullopt;
  }

  Engine engine;
};

TEST_F(WouldMoveTest, a_gang_in_a_cluster_that_is_busy_everywhere) {
  for (int i = 0; i < kNodes; ++i) fill(i, 4);
  handle(SubmitJob{job("gang", 8, {}, 3)});
  const auto moves = moves_for("gang");
  ASSERT_TRUE(moves);
  EXPECT_EQ(moves->tasks, 12);
  EXPECT_EQ(moves->gpus, 12);
  EXPECT_EQ(moves->nodes, (std::vector<std::string>{"n0", "n1", "n2"}));
  EXPECT_EQ(moves->free_elsewhere, 12);
}

TEST_F(WouldMoveTest, not_where_too_little_is_free_elsewhere) {
  for (int i = 0; i < kNodes; ++i) fill(i, 7);
  handle(SubmitJob{job("gang", 8, {}, 2)});
  EXPECT_FALSE(moves_for("gang"));
  EXPECT_EQ(engine.explain("gang", Instant{3})->why->sentence.find("would fit"), std::string::npos);
}

TEST_F(WouldMoveTest, not_what_fits_nowhere_else) {
  for (int i = 0; i < kNodes; ++i) {
    handle(SubmitJob{job("wide-" + std::to_string(i), 5, name(i))});
    engine.tick(Instant{2});
  }
  handle(SubmitJob{job("big", 8)});
  EXPECT_FALSE(moves_for("big")) << "15 GPUs are free elsewhere, but nowhere five of them";
}

TEST_F(WouldMoveTest, whole_nodes_of_adjacent_gpus_too) {
  for (int i = 0; i < kNodes; ++i) fill(i, 4);
  Job whole = job("whole", kGpus);
  whole.groups[0].request.gpu.policy = DevicePolicy::Contiguous;
  handle(SubmitJob{whole});
  EXPECT_TRUE(moves_for("whole"));
  Job part = job("part", 5);
  part.groups[0].request.gpu.policy = DevicePolicy::Contiguous;
  handle(SubmitJob{part});
  EXPECT_FALSE(moves_for("part")) << "which ones are adjacent is not looked at";
}

// One job of a random size among one-GPU jobs: the node with most free GPUs is the one to clear,
// and with its work gone the job starts.
TEST_F(WouldMoveTest, as_few_as_can_be_and_enough) {
  Rng rng(7);
  std::vector<int> busy;
  for (int i = 0; i < kNodes; ++i) {
    busy.push_back(static_cast<int>(rng.between(3, 6)));
    fill(i, busy.back());
  }
  for (int size = 6; size <= kGpus; ++size) {
    const std::string id = "big-" + std::to_string(size);
    handle(SubmitJob{job(id, size)});
    const int most_free = kGpus - *std::min_element(busy.begin(), busy.end());
    const auto moves = moves_for(id);
    ASSERT_TRUE(moves) << size;
    EXPECT_EQ(moves->gpus, size - most_free);
    ASSERT_EQ(moves->nodes.size(), 1U);
    handle(CancelJob{id});
  }
  handle(SubmitJob{job("big", kGpus)});
  const auto moves = moves_for("big");
  ASSERT_TRUE(moves);
  for (int i = 0; i < busy[static_cast<std::size_t>(std::stoi(moves->nodes[0].substr(1)))]; ++i)
    handle(TaskEnded{{moves->nodes[0] + "-" + std::to_string(i), 0, 0}, Outcome::Succeeded});
  engine.tick(Instant{4});
  EXPECT_FALSE(engine.explain("big", Instant{4})->why) << "it runs";
}

}  // namespace
}  // namespace gs
