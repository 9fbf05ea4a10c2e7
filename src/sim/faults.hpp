// `gpu-scheduler sim faults`: random clusters, load and failures from seeds, watched by the
// checkers. docs/faults.md is the manual.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "sim/faults_run.hpp"

namespace gs {

struct FaultsOptions {
  std::uint64_t seed = 1;
  std::uint64_t seeds = 1;
  std::uint64_t steps = 1000;
  int jobs = 0;  // seeds at a time; 0: as many as there are processors
  bool shrink = false;
  int shrink_s = 120;  // for each failing seed
  bool json = false;
};

struct SeedResult {
  std::uint64_t seed = 0;
  std::optional<Finding> finding;
  std::uint64_t actions = 0, starts = 0, evictions = 0;
  std::uint64_t effects_hash = 0;
};

// Plays one seed in this process. `playing` is set to the number of the action under way, so that
// somebody else can tell where a run has died.
SeedResult run_seed(std::uint64_t seed, std::uint64_t steps, volatile std::uint64_t* playing);
// The actions of a seed up to and including number `last`.
Script record_seed(std::uint64_t seed, std::uint64_t steps, std::uint64_t last);

int run_faults(FaultsOptions options);
void add_faults(CLI::App& sim, int& exit_code);

}  // namespace gs
