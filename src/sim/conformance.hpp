// `gpu-scheduler sim conformance`: other schedulers' own test cases, run through our engine.
//
// A file is {"suite", "origin", "cases": [{"id", "expect": {"compare"}, ...}]}. The suite names the
// runner, which turns a case into a cluster and jobs, drives the engine as any user would, and
// compares the outcome at the case's own `compare` level. Cases in conformance_skips.hpp are run
// too, but a failure counts as skipped unless --strict.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace CLI {
class App;
}

namespace gs {

struct CaseResult {
  bool passed = false;
  std::string why;  // one line: what differs, or by which rule it passed
  // For --case, in the order shown; filled only if asked for.
  struct Section {
    std::string title;  // "cluster", "expected", "ours"
    std::vector<std::string> lines;
  };
  std::vector<Section> sections;
};

// Runners. `c` is one element of "cases". They may let nlohmann::json::exception pass: the command
// reports it as bad input, with the file and the case. `show`: fill the sections.
CaseResult run_kueue_case(const nlohmann::json& c, bool show);
CaseResult run_kai_case(const nlohmann::json& c, bool show);

struct ConformanceOptions {
  std::vector<std::string> files;
  std::string only;  // --case
  bool strict = false, json = false, csv = false;
};

// Prints the table and the closing line; 0: nothing failed, 1: something did, 2: bad input.
int run_conformance(const ConformanceOptions& options);

void add_conformance(CLI::App& sim, int& exit_code);

}  // namespace gs
