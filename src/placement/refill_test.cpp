// Refill and copies against plain, slow versions of what they say.
#include "placement/refill.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/rng.hpp"

namespace gs {
namespace {

// One number per GPU, scanned anew for every task.
struct Machine {
  std::int64_t cpu = 0;
  std::vector<int> gpus;

  bool place(const Offer& task) {
    if (task.cpu_milli > cpu) return false;
    std::vector<std::size_t> fitting;
    for (std::size_t i = 0; i < gpus.size(); ++i)
      if (gpus[i] >= task.milli) fitting.push_back(i);
    if (static_cast<int>(fitting.size()) < task.gpus) return false;
    std::stable_sort(fitting.begin(), fitting.end(),
                     [&](std::size_t a, std::size_t b) { return gpus[a] < gpus[b]; });
    for (int i = 0; i < task.gpus; ++i) gpus[fitting[static_cast<std::size_t>(i)]] -= task.milli;
    cpu -= task.cpu_milli;
    return true;
  }
};

FreeState state_of(const Machine& machine) {
  FreeState state;
  state.cpu_milli = machine.cpu;
  for (const int milli : machine.gpus) {
    state.whole += milli == kWholeGpu ? 1 : 0;
    if (milli < kWholeGpu) state.add_part(milli);
  }
  return state;
}

Offer random_offer(Rng& rng) {
  Offer offer;
  offer.cpu_milli = rng.between(0, 16) * 1000;
  offer.gpus = rng.chance(0.7) ? 1 : static_cast<int>(rng.between(2, 4));
  offer.milli = rng.chance(0.4) ? kWholeGpu : static_cast<int>(rng.between(1, 99)) * 10;
  return offer;
}

Machine random_machine(Rng& rng) {
  Machine machine{rng.between(0, 96) * 1000, {}};
  for (std::int64_t i = rng.between(0, 8); i > 0; --i)
    machine.gpus.push_back(rng.chance(0.5) ? kWholeGpu : static_cast<int>(rng.between(0, 99)) * 10);
  return machine;
}

TEST(RefillTest, IsWhatTheBatchesWouldPlace) {
  Rng rng(1);
  for (int round = 0; round < 2000; ++round) {
    const Machine machine = random_machine(rng);
    std::vector<Batch> batches(3);
    std::int64_t expected = 0;
    for (Batch& batch : batches) {
      Machine filled = machine;
      for (int i = 0; i < 20; ++i) {
        batch.push_back(random_offer(rng));
        if (filled.place(batch.back())) expected += batch.back().gpu_milli();
      }
    }
    ASSERT_EQ(refill(state_of(machine), batches), expected) << "round " << round;
  }
}

TEST(RefillTest, ARestThatNobodyCanUseIsWorthNothing) {
  FreeState rest;
  rest.cpu_milli = 64'000;
  rest.add_part(190);
  EXPECT_EQ(refill(rest, std::vector<Batch>{{{4000, 1, 810}, {4000, 1, 200}}}), 0);
  EXPECT_EQ(refill(rest, std::vector<Batch>{{{4000, 1, 160}, {4000, 1, 160}}}), 160);
}

TEST(RefillTest, GpusWithoutCpuAreWorthWhatTheCpuAllows) {
  FreeState state;
  state.cpu_milli = 20'000;
  state.whole = 8;
  EXPECT_EQ(refill(state, std::vector<Batch>{Batch(10, {8000, 1, kWholeGpu})}), 2 * kWholeGpu);
  EXPECT_EQ(copies(state, {8000, 1, kWholeGpu}), 20 * kOneCopy / 8);
}

TEST(RefillTest, CopiesAreAsManyAsCanBePlaced) {
  Rng rng(2);
  for (int round = 0; round < 2000; ++round) {
    Machine machine = random_machine(rng);
    Offer offer = random_offer(rng);
    if (offer.milli < kWholeGpu) offer.gpus = 1;  // several parts: only an upper bound
    const std::int64_t promised = copies(state_of(machine), offer) / kOneCopy;
    std::int64_t placed = 0;
    while (placed < 1000 && machine.place(offer)) ++placed;
    ASSERT_EQ(promised, placed) << "round " << round;
  }
}

TEST(FreeStateTest, TakingAPartKeepsTheOrder) {
  FreeState state;
  state.whole = 1;
  for (const int part : {300, 700, 500}) state.add_part(part);
  state.use_part(700, 250);
  state.use_part(kWholeGpu, 100);
  EXPECT_EQ(state.whole, 0);
  ASSERT_EQ(state.parts, 4);
  EXPECT_EQ(state.part[0], 900);
  EXPECT_EQ(state.part[1], 500);
  EXPECT_EQ(state.part[2], 450);
  EXPECT_EQ(state.part[3], 300);
  state.use_part(300, 300);
  EXPECT_EQ(state.parts, 3);
  EXPECT_EQ(state.part[3], 0);  // equal states must be equal in every byte
  EXPECT_EQ(state.gpu_milli(), 1850);
}

TEST(FreeStateTest, OnlyTheLargestPartsAreKept) {
  FreeState state;
  for (int i = 1; i <= 2 * FreeState::kMaxParts; ++i) state.add_part(i);
  EXPECT_EQ(state.parts, FreeState::kMaxParts);
  EXPECT_EQ(state.part.front(), 2 * FreeState::kMaxParts);
  EXPECT_EQ(state.part.back(), FreeState::kMaxParts + 1);
}

TEST(FreeStatesTest, EqualStatesHaveOneNumber) {
  Rng rng(3);
  FreeStates states;
  std::vector<FreeState> seen;
  for (int i = 0; i < 3000; ++i) {
    const FreeState state = state_of(random_machine(rng));
    const auto known = std::find(seen.begin(), seen.end(), state);
    const std::uint32_t id = states.intern(state);
    ASSERT_EQ(id, static_cast<std::uint32_t>(known - seen.begin()));
    if (known == seen.end()) seen.push_back(state);
    ASSERT_EQ(states.at(id), state);
  }
}

}  // namespace
}  // namespace gs
