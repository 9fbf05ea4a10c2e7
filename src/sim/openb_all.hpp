// The runs of the openb benchmark that somebody asks for: all workloads, policies and seeds,
// several runs at a time. What comes out does not depend on how many.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/openb_run.hpp"

namespace gs::openb {

struct Selection {
  std::filesystem::path folder;
  std::vector<std::string> workloads;  // empty: all in the folder
  std::vector<std::string> policies;
  std::vector<int> seeds;  // empty: all in the folder
  int jobs = 0;            // runs at a time; 0: as many as there are processors
};

// By workload, then policy, then seed, as they were asked for.
Result<std::vector<Run>> run_all(const Selection& selection);

}  // namespace gs::openb
