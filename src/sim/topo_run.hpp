// Gangs of whole hosts through the engine, first come first served, nobody overtakes, nobody moves:
// how near together do they lie?
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/topo_trace.hpp"

namespace gs::topo {

// Means over the gangs of more than one host.
struct Row {
  std::string policy;
  double leaf_ratio = 0;   // leaves used / fewest that would do in an empty cluster
  double pod_ratio = 0;    // likewise
  double one_leaf = 0;     // %, on one leaf, of those that fit one
  double hops = 0;         // switch hops between two hosts: 2 in a leaf, 4 in a pod, else 6
  double mean_wait_s = 0;  // of all gangs
};

const std::vector<std::string>& policies();

// The engine is not told how long jobs run.
Result<Row> run(const Trace& trace, const std::string& policy,
                const std::function<void(double)>& progress);

}  // namespace gs::topo
