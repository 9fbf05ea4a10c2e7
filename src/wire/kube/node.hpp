// A Node as the API server keeps it.
#pragma once

#include "base/result.hpp"
#include "model/node.hpp"
#include "wire/kube/pod.hpp"

namespace gs::kube {

struct Node {
  Meta meta;
  bool unschedulable = false;
  std::vector<Taint> taints;  // those with an effect that is not known are left out
  ResourceList allocatable;
  bool ready = false;  // condition Ready is True
  std::string ready_reason, ready_message;
  bool operator==(const Node&) const = default;
};

Result<Node> decode_node(std::string_view text);

}  // namespace gs::kube
