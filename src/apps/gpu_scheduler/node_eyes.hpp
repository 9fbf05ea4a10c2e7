// NodeEyes: everything that can be seen of a Kubernetes node from the node itself, as its
// GpuNodeStatus.
//
// One thread looks. What is dear to find out is asked seldom: how GPUs are connected every ten
// seconds, the kubelet when pods changed or after five. A machine without a driver is looked at
// anew now and then, for the driver may be installed after the agent has started.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/gpu_users.hpp"
#include "agent/inventory.hpp"
#include "agent/options.hpp"
#include "agent/pod_devices.hpp"
#include "agent/sampler.hpp"
#include "base/result.hpp"

namespace gs {

namespace kube {
struct GpuNodeStatus;
}

class NodeEyes {
 public:
  // `news` is called, by another thread, when the health of a GPU has changed.
  NodeEyes(agent::Options options, std::function<void()> news);

  Status open();
  // `pods`: those of the node; `pods_changed`: since the last look.
  kube::GpuNodeStatus look(const std::vector<kube::NodePod>& pods, bool pods_changed);

 private:
  using Clock = std::chrono::steady_clock;
  void look_at_gpus();
  void ask_kubelet(bool now);

  const agent::Options options_;
  const std::function<void()> news_;
  std::unique_ptr<agent::GpuSource> source_;
  std::unique_ptr<agent::Sampler> sampler_;  // of source_
  agent::Gpus gpus_;
  Fabric fabric_;
  Clock::time_point look_at_gpus_, open_again_;
  agent::PodResources kubelet_;
  std::optional<std::vector<agent::PodDevices>> by_kubelet_;
  Clock::time_point ask_kubelet_, kubelet_answered_;
  std::string kubelet_problem_;
};

}  // namespace gs
