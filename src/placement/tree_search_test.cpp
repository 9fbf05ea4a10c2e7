#include "placement/tree_search.hpp"

#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "base/rng.hpp"

namespace gs {
namespace {

// Two rows of domains and the nodes: leaves[i] nodes under leaf i, leaf i under spine i /
// per_spine.
TreeLayout layout_of(const std::vector<int>& leaves, int per_spine) {
  std::vector<std::vector<std::uint32_t>> parents(3);
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const auto spine = static_cast<std::uint32_t>(leaf / static_cast<std::size_t>(per_spine));
    if (spine == parents[0].size()) parents[0].push_back(0);
    parents[1].push_back(spine);
    for (int i = 0; i < leaves[leaf]; ++i) parents[2].push_back(static_cast<std::uint32_t>(leaf));
  }
  return TreeLayout(std::move(parents));
}

TreeCounts counts_of(const TreeLayout& layout, const std::vector<int>& room,
                     std::vector<SliceLayer> slices = {{2, 1}}) {
  TreeCounts counts(layout, std::move(slices), false);
  for (std::size_t i = 0; i < room.size(); ++i)
    counts.set(static_cast<std::uint32_t>(i), {room[i], room[i], false, 0});
  counts.settle();
  return counts;
}

// "2x3 5": three tasks on node 2, one on node 5; "L" marks the leader's node.
std::string text(const TreeSearch& search) {
  std::string out;
  for (const SearchPart& part : search.parts()) {
    out += (out.empty() ? "" : " ") + std::to_string(part.leaf);
    if (part.tasks != 1) out += "x" + std::to_string(part.tasks);
    if (part.leader) out += "L";
  }
  return out;
}

std::string find(const TreeCounts& counts, SearchAsk ask) {
  TreeSearch search;
  return search.find(counts, ask) ? text(search) : "no";
}

TEST(TreeSearch, RequiredTakesTheTightestDomainThatHoldsAll) {
  const TreeLayout layout = layout_of({2, 2, 2}, 3);
  const TreeCounts counts = counts_of(layout, {4, 4, 2, 2, 3, 0});
  EXPECT_EQ(find(counts, {3, Reach::Required, 1, {}, -1}), "4x3");
  EXPECT_EQ(find(counts, {4, Reach::Required, 1, {}, -1}), "2x2 3x2");
  EXPECT_EQ(find(counts, {5, Reach::Required, 1, {}, -1}), "0x4 1");
  EXPECT_EQ(find(counts, {9, Reach::Required, 1, {}, -1}), "no");
}

TEST(TreeSearch, AShortageNamesTheDomainThatComesClosest) {
  const TreeLayout layout = layout_of({2, 2, 2}, 3);
  const TreeCounts counts = counts_of(layout, {1, 1, 2, 2, 3, 0});
  TreeSearch search;
  EXPECT_FALSE(search.find(counts, {9, Reach::Required, 1, {}, -1}));
  ASSERT_TRUE(search.shortage().where.has_value());
  EXPECT_EQ(*search.shortage().where, (Spot{1, 1}));
  EXPECT_EQ(search.shortage().tasks, 4);
  EXPECT_FALSE(search.find(counts, {10, Reach::Preferred, 1, {}, -1}));
  EXPECT_FALSE(search.shortage().where.has_value());
  EXPECT_EQ(search.shortage().tasks, 9);
}

TEST(TreeSearch, PreferredGoesOutwardsAndThenSpreadsFullestFirst) {
  const TreeLayout layout = layout_of({2, 2, 1, 1}, 2);
  const TreeCounts counts = counts_of(layout, {2, 1, 2, 0, 3, 1});
  EXPECT_EQ(find(counts, {3, Reach::Preferred, 2, {}, -1}), "4x3");
  EXPECT_EQ(find(counts, {4, Reach::Preferred, 2, {}, -1}), "4x3 5") << "one spine, not two leaves";
  EXPECT_EQ(find(counts, {7, Reach::Preferred, 1, {}, -1}), "0x2 1 4x3 5")
      << "both spines; of their leaves the fullest, the rest in the tightest";
  EXPECT_EQ(find(counts, {6, Reach::Preferred, 1, {}, 0}), "no") << "a required level bounds it";
}

TEST(TreeSearch, AnywhereDoesNotAskForNearness) {
  const TreeLayout layout = layout_of({1, 1, 1, 1}, 2);
  const TreeCounts counts = counts_of(layout, {3, 1, 2, 4});
  EXPECT_EQ(find(counts, {2, Reach::Anywhere, 2, {}, -1}), "2x2");
  EXPECT_EQ(find(counts, {5, Reach::Anywhere, 2, {}, -1}), "1 3x4");
}

TEST(TreeSearch, EquallyGoodDomainsAreTakenAsNeighbours) {
  // Leaves of four nodes, one task each; leaf 1 is half full.
  std::vector<int> room(24, 1);
  room[4] = room[5] = 0;
  const TreeLayout layout = layout_of({4, 4, 4, 4, 4, 4}, 6);
  const TreeCounts counts = counts_of(layout, room);
  EXPECT_EQ(find(counts, {4, Reach::Preferred, 1, {}, -1}), "0 1 2 3") << "one complete leaf";
  EXPECT_EQ(find(counts, {8, Reach::Preferred, 1, {}, -1}), "8 9 10 11 12 13 14 15")
      << "two adjacent leaves, not 0 and 2";
  EXPECT_EQ(find(counts, {16, Reach::Preferred, 1, {}, -1}),
            "8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23");
  EXPECT_EQ(find(counts, {6, Reach::Preferred, 1, {}, -1}), "0 1 2 3 6 7")
      << "the rest where it fits tightest";
}

TEST(TreeSearch, SlicesAreCountedWhole) {
  const TreeLayout layout = layout_of({2, 2}, 1);
  // Spine 0 holds more tasks but fewer slices of 3 in one leaf.
  const TreeCounts counts = counts_of(layout, {2, 3, 3, 3}, {{1, 3}});
  EXPECT_EQ(find(counts, {6, Reach::Required, 0, {}, -1}), "2x3 3x3");
  EXPECT_EQ(find(counts, {9, Reach::Preferred, 0, {}, -1}), "1x3 2x3 3x3");
  EXPECT_EQ(find(counts, {12, Reach::Preferred, 0, {}, -1}), "no");
}

TEST(TreeSearch, NestedSlicesLieInsideEachOther) {
  const TreeLayout layout = layout_of({2, 2}, 2);
  // Leaf 0 has six places but only two pairs on one node each; leaf 1 has three pairs.
  const TreeCounts counts = counts_of(layout, {3, 3, 4, 2}, {{1, 4}, {2, 2}});
  EXPECT_EQ(find(counts, {8, Reach::Required, 0, {}, -1}), "0x2 1x2 2x4");
  const TreeCounts six = counts_of(layout, {3, 3, 4, 1}, {{1, 6}, {2, 2}});
  EXPECT_EQ(find(six, {6, Reach::Required, 0, {}, -1}), "no");
}

TEST(TreeSearch, HigherScoreGoesBeforeTightness) {
  const TreeLayout layout = layout_of({1, 1, 1}, 3);
  TreeCounts counts = counts_of(layout, {4, 2, 1});
  counts.set(0, {4, 4, false, 10});
  counts.settle();
  EXPECT_EQ(find(counts, {1, Reach::Required, 2, {}, -1}), "0");
  EXPECT_EQ(find(counts, {6, Reach::Anywhere, 2, {}, -1}), "0x4 1x2");
}

TEST(TreeSearch, ALeaderTakesTheSeatThatCostsTheWorkersLeast) {
  const TreeLayout layout = layout_of({3}, 1);
  TreeCounts counts(layout, {{2, 1}}, true);
  counts.set(0, {2, 1, true, 0});
  counts.set(1, {1, 1, true, 0});  // has room for the leader beside its worker
  counts.set(2, {1, 0, true, 0});
  counts.settle();
  EXPECT_EQ(find(counts, {4, Reach::Required, 1, {}, -1}), "0x2 1L 2");
  EXPECT_EQ(find(counts, {3, Reach::Required, 1, {}, -1}), "0L 1 2");
  EXPECT_EQ(find(counts, {5, Reach::Required, 1, {}, -1}), "no");
}

TEST(TreeSearch, ALeaderMaySitAlone) {
  const TreeLayout layout = layout_of({2}, 1);
  TreeCounts counts(layout, {{2, 1}}, true);
  counts.set(0, {0, 0, true, 0});
  counts.set(1, {3, 3, false, 0});
  counts.settle();
  EXPECT_EQ(find(counts, {3, Reach::Required, 1, {}, -1}), "0x0L 1x3");
  EXPECT_EQ(find(counts, {3, Reach::Required, 2, {}, -1}), "no");
}

TEST(TreeSearch, WithinBoundsEverything) {
  const TreeLayout layout = layout_of({2, 2, 2}, 3);
  const TreeCounts counts = counts_of(layout, {1, 2, 4, 4, 1, 1});
  EXPECT_EQ(find(counts, {2, Reach::Preferred, 2, Spot{1, 2}, -1}), "4 5");
  EXPECT_EQ(find(counts, {3, Reach::Preferred, 2, Spot{1, 2}, -1}), "no");
  EXPECT_EQ(find(counts, {3, Reach::Required, 0, Spot{1, 0}, -1}), "0 1x2");
}

TEST(TreeSearch, NodesWithoutAPathAreNearNobody) {
  TreeLayout layout({{0, 0}, {0, 1}, {0, 0, 1, 1}}, /*has_nowhere=*/true);
  const TreeCounts counts = counts_of(layout, {1, 1, 4, 4});
  EXPECT_EQ(find(counts, {3, Reach::Required, 1, {}, -1}), "no");
  EXPECT_EQ(find(counts, {3, Reach::Preferred, 1, {}, -1}), "2x3")
      << "better than nothing, once nearness is given up";
  EXPECT_EQ(find(counts, {3, Reach::Anywhere, 2, {}, -1}), "2x3");
  EXPECT_EQ(find(counts_of(layout, {1, 1, 4, 4}, {{1, 2}}), {4, Reach::Anywhere, 0, {}, -1}), "no")
      << "they form no slices of a leaf";
}

// ---------------------------------------------------------------- against trying everything

struct Random {
  TreeLayout layout;
  std::vector<LeafCount> leaves;
  std::vector<SliceLayer> slices;
  bool leader = false;
  SearchAsk ask;
};

Random random_case(Rng& rng) {
  Random r;
  std::vector<int> leaves(static_cast<std::size_t>(rng.between(1, 4)));
  for (int& nodes : leaves) nodes = static_cast<int>(rng.between(1, 3));
  r.layout = layout_of(leaves, static_cast<int>(rng.between(1, 3)));
  r.leader = rng.chance(0.4);
  for (std::uint32_t i = 0; i < r.layout.width(2); ++i) {
    LeafCount count;
    count.tasks = static_cast<std::int32_t>(rng.below(5));
    count.leader = r.leader && rng.chance(0.6);
    count.beside =
        count.leader ? std::max(0, count.tasks - static_cast<int>(rng.below(3))) : count.tasks;
    count.score = rng.chance(0.2) ? 5 : 0;
    r.leaves.push_back(count);
  }
  const int row = static_cast<int>(rng.below(3));
  const int size = static_cast<int>(rng.chance(0.5) ? 1 : rng.between(2, 4));
  r.slices = {{size == 1 ? 2 : row, size}};
  if (size == 4 && row < 2) r.slices.push_back({static_cast<int>(rng.between(row + 1, 2)), 2});
  r.ask.count = size * static_cast<int>(rng.between(1, 4));
  r.ask.row = static_cast<int>(rng.between(0, r.slices[0].row));
  r.ask.reach = static_cast<Reach>(rng.below(3));
  return r;
}

// Whole packs that fit below a domain, by the definition of nested slices.
int holds(const Random& r, int row, std::uint32_t i, std::uint32_t seat) {
  int sum = 0;
  if (row == 2) {
    sum = seat == i ? r.leaves[i].beside : r.leaves[i].tasks;
  } else {
    const SpotRange range = r.layout.children(row, i);
    for (std::uint32_t c = range.begin; c < range.end; ++c) sum += holds(r, row + 1, c, seat);
  }
  for (const SliceLayer& layer : r.slices)
    if (layer.row == row) sum -= sum % layer.size;
  return sum;
}

bool fits(const Random& r) {
  const std::uint32_t none = TreeLayout::kNone;
  for (std::uint32_t seat = 0; seat < (r.leader ? r.leaves.size() : 1); ++seat) {
    if (r.leader && !r.leaves[seat].leader) continue;
    int all = 0;
    for (std::uint32_t i = 0; i < r.layout.width(0); ++i)
      all += holds(r, 0, i, r.leader ? seat : none);
    if (r.ask.reach != Reach::Required && all >= r.ask.count) return true;
    for (std::uint32_t i = 0; i < r.layout.width(r.ask.row); ++i) {
      const bool together = !r.leader || r.layout.ancestor(2, seat, r.ask.row) == i;
      if (together && holds(r, r.ask.row, i, r.leader ? seat : none) >= r.ask.count) return true;
    }
  }
  return false;
}

void expect_legal(const Random& r, const std::vector<SearchPart>& parts) {
  int tasks = 0;
  int leaders = 0;
  std::map<std::uint32_t, int> domains;
  for (const SearchPart& part : parts) {
    tasks += part.tasks;
    leaders += part.leader;
    const LeafCount& leaf = r.leaves[part.leaf];
    EXPECT_LE(part.tasks, part.leader ? leaf.beside : leaf.tasks);
    EXPECT_TRUE(!part.leader || leaf.leader);
    ++domains[r.layout.ancestor(2, part.leaf, r.ask.row)];
  }
  EXPECT_EQ(tasks, r.ask.count);
  EXPECT_EQ(leaders, r.leader ? 1 : 0);
  EXPECT_TRUE(r.ask.reach != Reach::Required || domains.size() == 1);
  for (const SliceLayer& layer : r.slices) {
    std::map<std::uint32_t, int> packs;
    for (const SearchPart& part : parts)
      packs[r.layout.ancestor(2, part.leaf, layer.row)] += part.tasks;
    for (const auto& [domain, count] : packs) EXPECT_EQ(count % layer.size, 0);
  }
}

TEST(TreeSearch, FindsALegalAnswerExactlyWhenThereIsOne) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const Random r = random_case(rng);
    TreeCounts counts(r.layout, r.slices, r.leader);
    for (int round = 0; round < 2; ++round)  // other numbers first: the difference must tell
      for (std::uint32_t i = 0; i < r.leaves.size(); ++i) {
        LeafCount other = r.leaves[(i + 1) % r.leaves.size()];
        counts.set(i, round == 0 ? other : r.leaves[i]);
        if (rng.chance(0.3)) counts.settle();
      }
    counts.settle();
    counts.verify();
    TreeSearch search;
    const bool ok = search.find(counts, r.ask);
    ASSERT_EQ(ok, fits(r));
    if (ok) expect_legal(r, search.parts());
    if (::testing::Test::HasFailure()) return;
    found += ok;
  }
  EXPECT_GT(found, 4'000);
}

}  // namespace
}  // namespace gs
