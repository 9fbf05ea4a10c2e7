// One run of the openb benchmark: pods arrive one by one, each is placed by the engine at once or
// dropped; nothing ever leaves, nothing is moved.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/openb_trace.hpp"

namespace gs::openb {

struct Run {
  std::string workload;
  std::string policy;
  int seed = 0;
  Curve allocation{};     // % of all GPUs
  Curve fragmentation{};  // % of all GPUs
  int failed = 0;
  int failed_8gpu = 0;
};

Result<Run> run(const std::vector<TraceNode>& nodes, const Workload& workload,
                const std::string& policy, int seed, const std::function<void(double)>& progress);

}  // namespace gs::openb
