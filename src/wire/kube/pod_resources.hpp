// What a pod takes of its node: Kubernetes' own rule for containers, init containers, sidecars,
// resources of the whole pod and overhead.
#pragma once

#include "base/result.hpp"
#include "model/request.hpp"
#include "model/resources.hpp"
#include "wire/kube/pod.hpp"

namespace gs::kube {

inline constexpr std::string_view kGpuResource = "nvidia.com/gpu";
inline constexpr std::string_view kMigResourcePrefix = "nvidia.com/mig-";

// By resource, sorted by name. At any moment the pod needs at most this: the running containers
// together, or one init container with the sidecars before it; then the overhead.
ResourceList effective_requests(const Pod& pod);

struct PodResources {
  Resources resources;      // with "pods": 1 and host ports; without GPUs
  int gpus = 0;             // nvidia.com/gpu
  std::vector<MigAsk> mig;  // nvidia.com/mig-*, by profile
  bool operator==(const PodResources&) const = default;
};

// Refuses amounts that no node has and fractions of a device.
Result<PodResources> pod_resources(const Pod& pod);

}  // namespace gs::kube
