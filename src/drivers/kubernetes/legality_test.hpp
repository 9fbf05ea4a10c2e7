// Whether a pod may stand on a node beside others, by brute force: Kubernetes' rules as they are
// written down, one pod and one node at a time, without any of the scheduler's own counting.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/node.hpp"
#include "wire/kube/pod.hpp"

namespace gs::kube {

// An annotation of pods that are told their devices, and may not stand beside pods with limits.
inline constexpr const char* kTestToldDevices = "test/told-devices";

struct Standing {
  const Pod* pod = nullptr;
  std::string node;
};

// The rule that is broken; empty: none. Namespaces have no labels here.
std::string broken_rule(const Pod& pod, const std::string& node, const std::vector<Standing>& all,
                        const std::map<std::string, gs::Node>& nodes);
// Only what a newcomer must not do to others, and others not to it; true whatever else has changed.
std::string conflict_with(const Pod& pod, const std::string& node, const std::vector<Standing>& all,
                          const std::map<std::string, gs::Node>& nodes);

}  // namespace gs::kube
