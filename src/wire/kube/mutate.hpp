// What the webhook puts into the containers of a new pod. A pod's environment can't change later,
// so it refers to annotations that the scheduler's Binding writes before the pod starts; where the
// devices are known at creation already, it is the literal value.
//
// CUDA_VISIBLE_DEVICES speaks of what the container sees. Where it is narrowed to the pod's devices
// by NVIDIA_VISIBLE_DEVICES, they are named as in there; where a device plugin chooses, it is left
// out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "wire/json_reader.hpp"
#include "wire/kube/admission.hpp"
#include "wire/kube/claim.hpp"
#include "wire/kube/device_names.hpp"
#include "wire/kube/pod.hpp"

namespace gs::kube {

struct MutateOptions {
  std::vector<std::string> scheduler_names = {"gpu-scheduler", "topology-aware-scheduler"};
  const GpuClaim* claim = nullptr;  // the pod's, where it is there
  // Also NVIDIA_VISIBLE_DEVICES, for the NVIDIA container runtime without a device plugin; only for
  // containers without a limit of nvidia.com/gpu, whose device plugin sets it itself.
  bool nvidia_visible_devices = false;
  // A container with such a limit sees what the kubelet's device plugin chose, and nothing else.
  bool kubelet_chooses = false;
  // The scheduler's. A map's ids are literal values only where devices are named by index.
  DeviceNaming naming = DeviceNaming::Index;
  std::string cufile_path = "/etc/cufile.json";
};

struct Mutation {
  Json patch = Json::array();  // empty: nothing to change
  std::vector<std::string> warnings;
};

// All containers, init containers too, of a pod that one of our schedulers takes. A value that the
// user has set is kept, and a warning says so. Doing it twice changes nothing more.
Result<Mutation> mutate_pod(std::string_view pod, const MutateOptions& options);

// The answer to a review: pods that are created are changed, everything else is let through as it
// is.
AdmissionResponse mutate(const AdmissionRequest& request, const MutateOptions& options);

bool is_ours(const Pod& pod, const std::vector<std::string>& scheduler_names);

// A pod that is about to be created may have no name yet.
Result<Pod> decode_new_pod(std::string_view text);

}  // namespace gs::kube
