// `gpu-scheduler sim run FILE.scn|DIR`: plays scenarios and says which expectations hold.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario.hpp"

namespace CLI {
class App;
}

namespace gs::scenario {

struct RunOptions {
  std::vector<std::string> paths;
  std::string only;  // --case: only those whose title contains this
  bool json = false, csv = false, verbose = false;
};

struct RunRow {
  std::string file;
  std::string title;
  int line = 1;
  CaseOutcome outcome;
  std::vector<std::string> story;  // --verbose: what happened, line by line
};

// Files as they are named, folders with all *.scn below them, in order of their names.
Result<std::vector<std::string>> find_scenarios(const std::vector<std::string>& paths);
Result<std::vector<RunRow>> run_scenarios(const RunOptions& options);
// Prints; 0: all passed, 1: some failed, 2: bad input.
int run_and_print(const RunOptions& options);

void add_run(CLI::App& sim, int& exit_code);

}  // namespace gs::scenario
