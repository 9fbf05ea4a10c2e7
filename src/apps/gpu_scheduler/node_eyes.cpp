#include "apps/gpu_scheduler/node_eyes.hpp"

#include <utility>

#include "agent/agent.hpp"
#include "agent/node_document.hpp"
#include "base/log.hpp"
#include "wire/kube/node_status.hpp"

namespace gs {
namespace {

using std::chrono::seconds;

constexpr std::int64_t kSampleMs = 1000;
constexpr seconds kGpusEvery{10}, kKubeletEvery{5}, kOpenEvery{30};
// A kubelet that is restarted does not take devices from its pods.
constexpr seconds kKubeletMayBeSilent{60};

}  // namespace

NodeEyes::NodeEyes(agent::Options options, std::function<void()> news)
    : options_(std::move(options)),
      news_(std::move(news)),
      kubelet_(options_.kube.pod_resources_socket) {}

Status NodeEyes::open() {
  Result<std::unique_ptr<agent::GpuSource>> source = agent::choose_gpus(options_);
  if (!source) return source.error();
  const bool is_other = !source_ || source_->describe() != (*source)->describe();
  sampler_.reset();
  source_ = agent::locked(std::move(*source));
  sampler_ = std::make_unique<agent::Sampler>(*source_, kSampleMs, news_);
  look_at_gpus_ = {};
  open_again_ = Clock::now() + kOpenEvery;
  if (is_other) log_info("GPUs of this node", {{"source", source_->describe()}});
  return ok_status();
}

void NodeEyes::look_at_gpus() {
  const Clock::time_point now = Clock::now();
  if (gpus_.entries.empty() && !source_->simulated() && now >= open_again_) (void)open();
  if (now < look_at_gpus_) return;
  look_at_gpus_ = now + kGpusEvery;
  gpus_ = source_->list();
  agent::add_nearest_rdma(options_.sysfs_root, gpus_);
  fabric_ = agent::machine_under(options_.sysfs_root).fabric;
}

void NodeEyes::ask_kubelet(bool now) {
  const Clock::time_point time = Clock::now();
  if (!now && time < ask_kubelet_) return;
  ask_kubelet_ = time + kKubeletEvery;
  Result<std::vector<agent::PodDevices>> devices = kubelet_.list();
  if (devices) {
    by_kubelet_ = std::move(*devices);
    kubelet_answered_ = time;
    if (!std::exchange(kubelet_problem_, {}).empty()) log_info("the kubelet tells who has what");
    return;
  }
  if (time > kubelet_answered_ + kKubeletMayBeSilent) by_kubelet_.reset();
  if (std::exchange(kubelet_problem_, devices.error().message) != devices.error().message)
    log_warn("the kubelet does not tell which pod has which device; processes and allocations do",
             {{"why", devices.error().message}});
}

kube::GpuNodeStatus NodeEyes::look(const std::vector<kube::NodePod>& pods, bool pods_changed) {
  look_at_gpus();
  ask_kubelet(pods_changed);
  agent::NodeFacts facts;
  facts.node = options_.kube.node_name;
  facts.gpus = gpus_;
  facts.samples = sampler_->latest();
  facts.fabric = fabric_;
  facts.users = agent::gpu_users(gpus_, pods, by_kubelet_ ? &*by_kubelet_ : nullptr,
                                 agent::pods_of_processes(facts.samples, options_.sysfs_root));
  facts.source = source_->describe();
  return agent::node_document(facts);
}

}  // namespace gs
