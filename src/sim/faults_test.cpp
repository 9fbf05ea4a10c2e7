#include "sim/faults.hpp"

#include <gtest/gtest.h>

namespace gs {
namespace {

TEST(Faults, a_seed_comes_out_the_same_each_time) {
  const SeedResult first = run_seed(5, 200, nullptr);
  const SeedResult again = run_seed(5, 200, nullptr);
  EXPECT_GT(first.starts, 0U);
  EXPECT_EQ(first.effects_hash, again.effects_hash);
  EXPECT_NE(first.effects_hash, run_seed(6, 200, nullptr).effects_hash);
}

TEST(Faults, a_recorded_seed_is_the_seed) {
  for (const std::uint64_t seed : {5, 8}) {
    const SeedResult result = run_seed(seed, 150, nullptr);
    const Script script = record_seed(seed, 150, result.actions);
    EXPECT_EQ(script.actions.size(), result.actions);
    Hash effects;
    const auto finding =
        play(script, [&](World&, const LogEntry& entry) { add_effects(effects, entry.effects); });
    EXPECT_EQ(finding.has_value(), result.finding.has_value());
    EXPECT_EQ(effects.value(), result.effects_hash);
  }
}

TEST(Faults, seeds_differ_in_what_they_contain) {
  int calm = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) calm += FaultsSource(seed).calm() ? 1 : 0;
  EXPECT_GT(calm, 2);
  EXPECT_LT(calm, 30);
}

TEST(Faults, some_seeds_have_no_finding) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const SeedResult result = run_seed(seed, 200, nullptr);
    EXPECT_FALSE(result.finding.has_value())
        << "seed " << seed << ": " << (result.finding ? result.finding->text : "");
  }
}

// Seeds that had a finding once, with as many steps as that took.
TEST(Faults, seeds_that_had_a_finding_have_none) {
  const std::pair<std::uint64_t, std::uint64_t> seeds[] = {
      {2, 400},    {47, 3100},   {407, 300},   {2482, 300}, {5067, 1000}, {5190, 1000},
      {5557, 900}, {5603, 1000}, {5611, 1000}, {30, 1900},  {656, 4200},  {928, 3901},
  };
  for (const auto& [seed, steps] : seeds) {
    const SeedResult result = run_seed(seed, steps, nullptr);
    EXPECT_FALSE(result.finding.has_value())
        << "seed " << seed << ": " << (result.finding ? result.finding->text : "");
  }
}

}  // namespace
}  // namespace gs
