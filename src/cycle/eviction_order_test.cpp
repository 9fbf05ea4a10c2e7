#include "cycle/eviction_order.hpp"

#include <gtest/gtest.h>

#include "base/rng.hpp"

namespace gs {
namespace {

TEST(EvictionOrder, remembers_directly_and_through_others) {
  EvictionOrder order;
  order.note(2, 1);  // 2 was evicted for 1
  order.note(3, 2);
  EXPECT_EQ(order.above(3), (std::set<EvictionOrder::Seq>{1, 2}));
  EXPECT_EQ(order.above(2), (std::set<EvictionOrder::Seq>{1}));
  EXPECT_TRUE(order.above(1).empty());
  EXPECT_EQ(order.evicted_for(3), (std::vector<EvictionOrder::Seq>{2}));
}

TEST(EvictionOrder, forgets_who_has_ended) {
  EvictionOrder order;
  order.note(2, 1);
  order.note(3, 2);
  order.forget(2);
  EXPECT_TRUE(order.above(3).empty());
  EXPECT_TRUE(order.above(2).empty());
  order.note(1, 3);
  EXPECT_EQ(order.above(1), (std::set<EvictionOrder::Seq>{3}));
}

// Whoever keeps to above() never makes a cycle, whatever else it wants.
TEST(EvictionOrder, has_no_cycle_if_it_is_obeyed) {
  Rng rng(7);
  EvictionOrder order;
  for (int step = 0; step < 5000; ++step) {
    const EvictionOrder::Seq taker = rng.below(20), victim = rng.below(20);
    if (rng.chance(0.02)) order.forget(victim);
    if (taker == victim || order.above(taker).contains(victim)) continue;
    order.note(victim, taker);
    for (EvictionOrder::Seq job = 0; job < 20; ++job)
      ASSERT_FALSE(order.above(job).contains(job)) << "step " << step;
  }
}

}  // namespace
}  // namespace gs
