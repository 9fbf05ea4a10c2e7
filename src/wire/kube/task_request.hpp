// The engine's TaskRequest out of a pod, its claim, what made it, and its line of the scheduling
// map. Everything that the pod says about nodes and devices ends up in the request, or is refused.
// Rules about other pods (affinity, spreading), ports and volumes stay in the Pod.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/request.hpp"
#include "wire/kube/claim.hpp"
#include "wire/kube/scheduling_map.hpp"
#include "wire/kube/topology_ask.hpp"

namespace gs::kube {

struct RequestContext {
  const GpuClaim* claim = nullptr;  // the one that the pod names, where it is there
  Owners owners;
  const MapEntry* pin = nullptr;           // the pod's line of the map
  std::vector<std::string> known_domains;  // empty: preferred-domain is not checked
};

struct TaskReading {
  TaskRequest request;                // valid
  std::vector<std::string> warnings;  // what has no effect, or not the one that it seems to have
};

Result<TaskReading> task_request(const Pod& pod, const RequestContext& context);

// Required node affinity as the engine reads it: only_nodes where it is nothing but names.
void add_node_rules(const Pod& pod, TaskRequest& request);
// Terms that must hold besides all that is demanded already.
void require(const LabelTerms& terms, TaskRequest& request);
// Terms of nodes (of a volume, of a storage class) as alternatives of the engine.
std::vector<LabelTerms> node_alternatives(const std::vector<NodeTerm>& terms);

}  // namespace gs::kube
