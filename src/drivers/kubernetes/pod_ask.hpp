// What a pod asks for, once everything that it refers to is known.
#pragma once

#include <string>
#include <vector>

#include "model/job.hpp"

namespace gs::kube {

struct PodAsk {
  TaskRequest request;
  std::string tenant;
  int priority = 0;  // the engine's
  std::string gang;  // "namespace/name"; empty: the pod goes by itself
  int gang_size = 0;
  TopologyWish topology;  // of the whole gang
  int index = -1;     // among its siblings: completion index, ordinal, line of its map; -1: none
  std::string claim;  // name of its GpuClaim; empty: none
  // Why it can't be placed yet: something that it refers to is missing or wrong.
  std::string waits_for;
  std::string reason;  // one word for that: "ClaimMissing"
};

}  // namespace gs::kube
