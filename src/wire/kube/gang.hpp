// Which pods start all or none, and how many they are.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "wire/kube/claim.hpp"
#include "wire/kube/topology_ask.hpp"

namespace gs::kube {

struct GangAsk {
  std::string name;         // unique in its namespace
  std::optional<int> size;  // nullopt: nobody says it, so the pods wait
  std::string size_from;    // "PodGroup train", "annotation ...", "Job train"; or why there is none
};

// nullopt: the pod is no part of a gang. In this order: the claim's gangRef, the PodGroup that the
// pod names, the annotation gpu.scheduling/gang of the pod or its owner ("true": all pods of that
// owner, of the topmost one where the pod itself says so, or the pod's group of a LeaderWorkerSet;
// "false": none; else the gang's name).
Result<std::optional<std::string>> gang_name(const Meta& pod, const GpuClaim* claim,
                                             const Owners& owners);

// The size: of the PodGroup of that name (nullptr: there is none), else the annotation
// gpu.scheduling/gang-size, else what the owner says.
Result<GangAsk> gang_ask(std::string name, const PodGroup* group, const Meta& pod,
                         const Owners& owners);

}  // namespace gs::kube
