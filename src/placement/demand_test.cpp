#include "placement/demand.hpp"

#include <numeric>

#include <gtest/gtest.h>

#include "base/rng.hpp"

namespace gs {
namespace {

struct Stream {
  ShapeTable shapes;
  Demand demand;

  void submit(int gpus, int milli, std::int64_t cpu, int tasks = 1) {
    TaskRequest request;
    request.gpu.count = gpus;
    if (milli < kWholeGpu) request.gpu.sharing = Sharing::Shared, request.gpu.milli = milli;
    request.resources.cpu_milli = cpu;
    const ShapeId id = shapes.intern(request);
    demand.observe(shapes.at(id), id, tasks);
    if (demand.learn_due()) demand.learn(0);
  }
  void submit_any(Rng& rng) {
    const int gpus = static_cast<int>(rng.between(0, 3));
    submit(gpus,
           gpus == 1 && rng.chance(0.5) ? static_cast<int>(rng.between(1, 9)) * 100 : kWholeGpu,
           rng.between(1, 8) * 1000);
  }
};

TEST(DemandTest, TheSameSubmissionsGiveTheSamePicture) {
  Stream a, b;
  Rng one(7), two(7);
  for (int i = 0; i < 5000; ++i) {
    a.submit_any(one);
    b.submit_any(two);
    ASSERT_EQ(a.demand.state().learn_at, b.demand.state().learn_at);
  }
  EXPECT_EQ(a.demand.hash(), b.demand.hash());
  b.submit(8, kWholeGpu, 64'000);
  EXPECT_NE(a.demand.hash(), b.demand.hash());
}

TEST(DemandTest, ARestoredStateGoesOnTheSameWay) {
  Stream original;
  Rng rng(8);
  for (int i = 0; i < 3100; ++i) original.submit_any(rng);
  Stream restored;
  restored.demand.set_state(original.demand.state());
  Rng one(9), two(9);
  for (int i = 0; i < 3000; ++i) {
    original.submit_any(one);
    restored.submit_any(two);  // its shapes have other numbers
  }
  EXPECT_EQ(original.demand.hash(), restored.demand.hash());
}

TEST(DemandTest, WeightsAreSharesOfTheGpusAskedFor) {
  Stream stream;
  for (int i = 0; i < 3000; ++i) stream.submit(1, i % 4 == 0 ? 250 : kWholeGpu, 4000);
  const DemandState& state = stream.demand.state();
  double sum = 0;
  double small = 0;
  for (const DemandShare& share : state.shares) {
    sum += share.weight;
    if (share.kind.milli == 250) small = share.weight;
  }
  EXPECT_NEAR(sum, 1.0, 1e-9);
  EXPECT_NEAR(small, 0.25 / 3.25, 0.01);
  ASSERT_EQ(state.batches.size(), static_cast<std::size_t>(Demand::kWindow));
  const auto few = std::count_if(state.batches.begin(), state.batches.end(), [&](std::uint32_t n) {
    return state.shares[n].kind.milli == 250;
  });
  EXPECT_EQ(few, Demand::kWindow / 4);
}

TEST(DemandTest, LargeTasksAreSupposedToComeBeforeAnyHas) {
  Stream stream;
  stream.submit(1, 500, 4000);
  bool eight = false;
  for (const DemandShare& share : stream.demand.state().shares) eight |= share.kind.gpus == 8;
  EXPECT_TRUE(eight);
}

TEST(DemandTest, AGangDoesNotPushEverythingElseOut) {
  Stream stream;
  for (int i = 0; i < Demand::kWindow; ++i) stream.submit(1, 500, 4000);
  stream.submit(8, kWholeGpu, 64'000, 100'000);
  stream.demand.learn(0);
  const DemandState& state = stream.demand.state();
  const auto gang = std::count_if(state.batches.begin(), state.batches.end(),
                                  [&](std::uint32_t n) { return state.shares[n].kind.gpus == 8; });
  EXPECT_EQ(gang, Demand::kOfOneGroup);
}

TEST(DemandTest, WhatWasAskedForLongAgoFades) {
  Stream stream;
  for (int i = 0; i < 1000; ++i) stream.submit(4, kWholeGpu, 32'000);
  for (int i = 0; i < 200'000; ++i) stream.submit(1, kWholeGpu, 4000 + i % 50);
  for (const DemandShare& share : stream.demand.state().shares)
    EXPECT_TRUE(share.kind.gpus != 4 || share.weight < 0.02) << share.weight;
  EXPECT_LE(stream.demand.state().counts.size(), 52U);
  EXPECT_LT(stream.demand.state().recent.size(), 2U * Demand::kWindow);
}

TEST(DemandTest, PricesThatHardlyMoveStay) {
  Stream stream;
  stream.submit(1, kWholeGpu, 4000);
  std::vector<double> prices(stream.demand.state().shares.size(), 100.0);
  EXPECT_TRUE(stream.demand.set_prices(prices, 10));
  EXPECT_FALSE(stream.demand.price_due());
  prices[0] = 101.0;
  EXPECT_FALSE(stream.demand.set_prices(prices, 10));
  EXPECT_EQ(stream.demand.state().shares[0].price, 100.0);
  prices[0] = 103.0;
  EXPECT_TRUE(stream.demand.set_prices(prices, 10));
  EXPECT_EQ(stream.demand.state().shares[0].price, 103.0);
}

}  // namespace
}  // namespace gs
