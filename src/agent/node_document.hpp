// What this machine has, as the GpuNodeStatus of its Kubernetes node.
#pragma once

#include <string>
#include <vector>

#include "agent/gpu_users.hpp"
#include "agent/inventory.hpp"

namespace gs::kube {
struct GpuNodeStatus;
}

namespace gs::agent {

struct NodeFacts {
  std::string node;  // its name
  Gpus gpus;
  std::vector<GpuSample> samples;  // how they are; a GPU without one is Unknown
  gs::Fabric fabric;
  GpuUsers users;
  std::string source;  // for people
};

// Without a heartbeat: that is for who sends it.
kube::GpuNodeStatus node_document(const NodeFacts& facts);

}  // namespace gs::agent
