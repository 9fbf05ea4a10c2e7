// The engine's Node out of Kubernetes' one and the report of its agent.
#pragma once

#include <string>
#include <vector>

#include "model/node.hpp"
#include "wire/kube/node.hpp"
#include "wire/kube/node_status.hpp"
#include "wire/kube/scheduler_config.hpp"

namespace gs::kube {

// Stands among a node's labels for its name, so that terms about metadata.name are terms about
// labels. The colon keeps it apart from any label of a user.
inline constexpr const char* kNodeNameKey = "field:metadata.name";

struct NodeReading {
  gs::Node node;                      // always valid
  std::vector<std::string> problems;  // what could not be taken as it was said
};

// GPUs come from the report; without one, or where it has no device (an agent that finds no
// driver), from allocatable nvidia.com/gpu and nvidia.com/mig-* and the labels of GPU feature
// discovery.
NodeReading to_node(const Node& node, const GpuNodeStatus* report, const SchedulerConfig& config);

}  // namespace gs::kube
