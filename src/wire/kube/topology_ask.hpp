// The annotations topology.scheduler/*, of a pod or of what made it. Values that are not valid are
// refused with those that are.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/request.hpp"
#include "wire/kube/workload.hpp"

namespace gs::kube {

// What made a pod, nearest first: {Job}, {ReplicaSet, Deployment}, {Job, JobSet}.
using Owners = std::vector<const Workload*>;

struct TopologyAsk {
  std::optional<int> gpu_count;          // of all pods together
  const Workload* counted_on = nullptr;  // who carries gpu-count; nullptr: the pod itself
  std::string preferred_domain;
  int network_gbps = 0;
  std::optional<bool> latency_sensitive;
  Strategy strategy = Strategy::Default;
  std::vector<std::string> unknown;  // annotations with our prefix that nobody reads, and hints
};

// The pod's own annotation counts more than its owner's, a near owner's more than a far one's.
Result<TopologyAsk> read_topology_ask(const Meta& pod, const Owners& owners);

// "100Gb", "100Gbps" and "12.5GB/s" are 100 Gbit/s.
Result<int> parse_bandwidth_gbps(std::string_view text);

// The value of an annotation of the pod, else of the nearest owner that has it.
struct Found {
  const std::string* value = nullptr;
  const Workload* on = nullptr;  // nullptr: on the pod
};
Found find_annotation(const Meta& pod, const Owners& owners, const std::string& name);

// Whose pods an annotation of the pod itself speaks of: its nearest owner, but the Deployment
// above a ReplicaSet. nullptr: nobody made the pod.
const Workload* whole_of(const Owners& owners);

}  // namespace gs::kube
