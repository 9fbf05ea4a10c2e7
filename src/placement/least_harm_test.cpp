#include "placement/least_harm.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "base/rng.hpp"

namespace gs {
namespace {

// A tree with free tasks per node, and room as if it were empty.
struct Sample {
  TreeLayout layout;
  std::vector<std::int32_t> free;
  HarmScale scale;

  TreeCounts counts() const {
    TreeCounts counts(layout, {{layout.leaf_row(), 1}}, false);
    for (std::uint32_t i = 0; i < free.size(); ++i) counts.set(i, {free[i], free[i], false, 0});
    counts.settle();
    return counts;
  }
};

std::vector<std::int32_t> largest(const TreeLayout& layout, const std::vector<std::int32_t>& full) {
  std::vector<std::int32_t> sums = full;
  std::vector<std::int32_t> most(static_cast<std::size_t>(layout.rows()));
  for (int row = layout.leaf_row(); row >= 0; --row) {
    most[static_cast<std::size_t>(row)] = *std::max_element(sums.begin(), sums.end());
    if (row == 0) break;
    std::vector<std::int32_t> outer(layout.width(row - 1), 0);
    for (std::uint32_t i = 0; i < sums.size(); ++i) outer[layout.parent(row, i)] += sums[i];
    sums = outer;
  }
  return most;
}

// pods x leaves x nodes, each node with room for `per_node`, of which some is free.
Sample sample(Rng& rng, int pods, int leaves, int nodes, int per_node) {
  std::vector<std::vector<std::uint32_t>> parents(3);
  std::vector<std::int32_t> full;
  Sample s;
  for (int p = 0; p < pods; ++p) {
    parents[0].push_back(0);
    for (int l = 0; l < leaves; ++l) {
      parents[1].push_back(static_cast<std::uint32_t>(p));
      const auto leaf = static_cast<std::uint32_t>(parents[1].size() - 1);
      const int width = 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(nodes)));
      for (int n = 0; n < width; ++n) {
        parents[2].push_back(leaf);
        full.push_back(per_node);
        s.free.push_back(
            static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(per_node) + 1)));
      }
    }
  }
  s.layout = TreeLayout(parents);
  s.scale = {largest(s.layout, full), 4};
  return s;
}

int domains_used(const TreeLayout& layout, const std::vector<SearchPart>& parts, int row) {
  std::vector<std::uint32_t> used;
  for (const SearchPart& part : parts)
    used.push_back(layout.ancestor(layout.leaf_row(), part.leaf, row));
  std::sort(used.begin(), used.end());
  return static_cast<int>(std::unique(used.begin(), used.end()) - used.begin());
}

// Every way to put the tasks onto the nodes; the cheapest of those in one domain of the innermost
// row that allows it.
double by_trying_everything(const Sample& s, const TreeCounts& counts, std::int32_t count) {
  LeastHarm rule;
  std::vector<double> best(static_cast<std::size_t>(s.layout.rows()) + 1,
                           std::numeric_limits<double>::infinity());
  std::vector<SearchPart> parts;
  const std::function<void(std::uint32_t, std::int32_t)> put = [&](std::uint32_t leaf,
                                                                   std::int32_t left) {
    if (left == 0) {
      std::size_t row = best.size() - 1;
      while (row > 0 && domains_used(s.layout, parts, static_cast<int>(row) - 1) > 1) --row;
      best[row] = std::min(best[row], rule.cost_of(counts, s.scale, parts));
      return;
    }
    if (leaf == s.free.size()) return;
    for (std::int32_t c = 0; c <= std::min(left, s.free[leaf]); ++c) {
      if (c > 0) parts.push_back({leaf, c, false});
      put(leaf + 1, left - c);
      if (c > 0) parts.pop_back();
    }
  };
  put(0, count);
  for (std::size_t row = best.size(); row-- > 0;)
    if (best[row] < std::numeric_limits<double>::infinity()) return best[row];
  return std::numeric_limits<double>::infinity();
}

void compare(Rng& rng, int per_node, int rounds) {
  LeastHarm rule;
  for (int round = 0; round < rounds; ++round) {
    const Sample s = sample(rng, 2, 2, 3, per_node);
    const TreeCounts counts = s.counts();
    const std::int32_t free = std::accumulate(s.free.begin(), s.free.end(), 0);
    for (std::int32_t count = 1; count <= std::min(free, 6); ++count) {
      ASSERT_TRUE(rule.find(counts, s.scale, count, std::nullopt));
      std::int32_t placed = 0;
      for (const SearchPart& part : rule.parts()) {
        EXPECT_LE(part.tasks, s.free[part.leaf]);
        placed += part.tasks;
      }
      EXPECT_EQ(placed, count);
      const double cost = rule.cost();
      const std::vector<SearchPart> parts = rule.parts();
      EXPECT_EQ(rule.cost_of(counts, s.scale, parts), cost);
      EXPECT_EQ(by_trying_everything(s, counts, count), cost) << "round " << round;
    }
    EXPECT_FALSE(rule.find(counts, s.scale, free + 1, std::nullopt));
  }
}

TEST(LeastHarm, finds_the_cheapest_of_all_placements_of_whole_nodes) {
  Rng rng(1);
  compare(rng, 1, 300);
}

TEST(LeastHarm, finds_the_cheapest_of_all_placements_of_several_tasks_a_node) {
  Rng rng(2);
  compare(rng, 3, 60);
}

// Leaves of four nodes in one pod, with so many free each; capacity four.
Sample row_of_leaves(const std::vector<std::int32_t>& free) {
  std::vector<std::vector<std::uint32_t>> parents = {{0}, {}, {}};
  Sample s;
  for (std::uint32_t leaf = 0; leaf < free.size(); ++leaf) {
    parents[1].push_back(0);
    for (std::int32_t n = 0; n < 4; ++n) {
      parents[2].push_back(leaf);
      s.free.push_back(n < free[leaf] ? 1 : 0);
    }
  }
  s.layout = TreeLayout(parents);
  s.scale = {{static_cast<std::int32_t>(4 * free.size()), 4, 1}, 8};
  return s;
}

std::vector<std::int32_t> taken_by_leaf(const Sample& s, std::int32_t count) {
  LeastHarm rule;
  EXPECT_TRUE(rule.find(s.counts(), s.scale, count, std::nullopt));
  std::vector<std::int32_t> taken(s.layout.width(1), 0);
  for (const SearchPart& part : rule.parts()) taken[s.layout.parent(2, part.leaf)] += part.tasks;
  return taken;
}

TEST(LeastHarm, takes_the_broken_leaf_and_keeps_the_whole_one) {
  EXPECT_EQ(taken_by_leaf(row_of_leaves({4, 3, 2}), 2), (std::vector<std::int32_t>{0, 0, 2}));
  EXPECT_EQ(taken_by_leaf(row_of_leaves({4, 2, 3}), 3), (std::vector<std::int32_t>{0, 0, 3}));
}

TEST(LeastHarm, makes_up_a_large_gang_exactly_from_what_is_broken) {
  EXPECT_EQ(taken_by_leaf(row_of_leaves({4, 4, 4, 2}), 6), (std::vector<std::int32_t>{4, 0, 0, 2}));
  EXPECT_EQ(taken_by_leaf(row_of_leaves({4, 4, 3, 3}), 7), (std::vector<std::int32_t>{4, 0, 3, 0}));
  EXPECT_EQ(taken_by_leaf(row_of_leaves({4, 4, 3, 3}), 8), (std::vector<std::int32_t>{4, 4, 0, 0}));
}

TEST(LeastHarm, ties_go_to_the_earlier_name) {
  EXPECT_EQ(taken_by_leaf(row_of_leaves({3, 3, 3}), 3), (std::vector<std::int32_t>{3, 0, 0}));
  EXPECT_EQ(taken_by_leaf(row_of_leaves({4, 4, 4}), 8), (std::vector<std::int32_t>{4, 4, 0}));
}

TEST(LeastHarm, among_equals_neighbours_are_taken) {
  EXPECT_EQ(taken_by_leaf(row_of_leaves({4, 0, 4, 4}), 8), (std::vector<std::int32_t>{0, 0, 4, 4}));
}

TEST(LeastHarm, stays_within_the_domain_asked_for) {
  const Sample s = row_of_leaves({1, 4, 2});
  const TreeCounts counts = s.counts();
  LeastHarm rule;
  ASSERT_TRUE(rule.find(counts, s.scale, 2, Spot{1, 1}));
  for (const SearchPart& part : rule.parts()) EXPECT_EQ(s.layout.parent(2, part.leaf), 1U);
  EXPECT_FALSE(rule.find(counts, s.scale, 2, Spot{1, 0}));
}

TEST(LeastHarm, fewest_pods_before_fewest_leaves) {
  // Pod 0: leaves with 2 + 1 + 1 free; pod 1: 3 free in one leaf. Four tasks fit into pod 0 alone.
  Sample s;
  std::vector<std::vector<std::uint32_t>> parents = {{0, 0}, {0, 0, 0, 1}, {}};
  const std::vector<std::int32_t> free = {2, 1, 1, 3};
  for (std::uint32_t leaf = 0; leaf < 4; ++leaf)
    for (std::int32_t n = 0; n < 4; ++n) {
      parents[2].push_back(leaf);
      s.free.push_back(n < free[leaf] ? 1 : 0);
    }
  s.layout = TreeLayout(parents);
  s.scale = {{12, 4, 1}, 4};
  EXPECT_EQ(taken_by_leaf(s, 4), (std::vector<std::int32_t>{2, 1, 1, 0}));
}

}  // namespace
}  // namespace gs
