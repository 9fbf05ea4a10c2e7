// `gpu-scheduler sim openb`: the openb benchmark through the engine, beside the published figures.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "sim/openb_all.hpp"

namespace gs::openb {

struct Options {
  Selection selection;
  bool json = false, csv = false;
};

// What a set of runs has to show: a line for people, and whether it holds.
struct Check {
  std::string text;
  bool holds = false;
};

// Published policies must come out as published, at every percent arrived, on every seed; our own
// must be better than fgd in the mean of the seeds, on every workload.
std::vector<Check> check(const std::vector<Run>& runs, const Published& published);

// 0: every check holds; 1: some does not; 2: the folder or an option is not right.
int run_openb(const Options& options);

}  // namespace gs::openb

namespace gs {

void add_openb(CLI::App& sim, int& exit_code);

}  // namespace gs
