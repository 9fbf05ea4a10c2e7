// A pod of one node, as far as the node's agent asks: who it is, and what the scheduler gave it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gs::kube {

struct NodePod {
  std::string ns, name, uid;
  std::vector<int> gpus;  // by the annotation of the Binding; empty: none, or not by us
  bool operator==(const NodePod&) const = default;
};

// None: it has ended and uses nothing.
Result<std::optional<NodePod>> decode_node_pod(std::string_view text);

}  // namespace gs::kube
