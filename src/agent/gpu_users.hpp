// Who uses which GPU of a Kubernetes node: pods, by their UIDs.
//
// Three witnesses: devices that the kubelet gave to a pod's containers; for pods of which it knows
// none, what the scheduler wrote onto them when it bound them, because they get their devices
// without a device plugin, by their environment; and whoever computes on a GPU uses it, whatever
// the others say: its processes' cgroups name the pod.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/inventory.hpp"
#include "agent/pod_devices.hpp"
#include "wire/kube/node_pod.hpp"

namespace gs::agent {

// The UIDs of the pods on GPU i at position i; sorted, each once.
using GpuUsers = std::vector<std::vector<std::string>>;

struct ProcessPod {
  int gpu = 0;
  std::string uid;
};

// `by_kubelet`: null where no kubelet tells it.
GpuUsers gpu_users(const Gpus& gpus, const std::vector<kube::NodePod>& pods,
                   const std::vector<PodDevices>* by_kubelet,
                   const std::vector<ProcessPod>& by_processes);

// The pods of the processes on the GPUs, as `root`/proc tells their cgroups.
std::vector<ProcessPod> pods_of_processes(const std::vector<GpuSample>& samples,
                                          const std::string& root);

// ".../kubepods-burstable-pod0b1c..._.slice/cri-containerd-..." -> the pod's UID; empty: no pod.
std::string pod_uid_in(std::string_view cgroups);

// The GPU that a device plugin means by this id: its UUID, that of one of its MIG instances, either
// with the "::2" of a shared one, or, of NVIDIA's own resources, its index.
std::optional<int> gpu_called(const Gpus& gpus, const PodDevices::Device& device);

}  // namespace gs::agent
