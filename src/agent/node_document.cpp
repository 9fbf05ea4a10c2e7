#include "agent/node_document.hpp"

#include <algorithm>
#include <cmath>

#include "wire/kube/node_status.hpp"

namespace gs::agent {
namespace {

void add_sample(const std::vector<GpuSample>& samples, kube::Device& device) {
  const auto sample = std::find_if(samples.begin(), samples.end(), [&](const GpuSample& one) {
    return one.index == device.gpu.index;
  });
  if (sample == samples.end()) {
    device.gpu.health = Health::Unknown;
    device.message = "the driver tells nothing of it";
    return;
  }
  device.gpu.health = sample->health;
  device.gpu.temperature_c = static_cast<int>(std::lround(sample->temperature_c));
  if (sample->health != Health::Healthy) device.message = sample->last_error;
}

void add_peers(const Gpus& gpus, std::size_t i, kube::Device& device) {
  const std::size_t count = gpus.entries.size();
  if (gpus.peer_bandwidth_gbps.size() != count * count) return;
  for (std::size_t j = 0; j < count; ++j)
    if (const int gbps = gpus.peer_bandwidth_gbps[i * count + j]; i != j && gbps > 0)
      device.peers.push_back({gpus.entries[j].gpu.index, gbps});
}

}  // namespace

kube::GpuNodeStatus node_document(const NodeFacts& facts) {
  kube::GpuNodeStatus status;
  status.node_name = status.meta.name = facts.node;
  status.total = static_cast<int>(facts.gpus.entries.size());
  status.fabric = facts.fabric;
  status.source = facts.source;
  for (std::size_t i = 0; i < facts.gpus.entries.size(); ++i) {
    const GpuEntry& entry = facts.gpus.entries[i];
    kube::Device& device = status.devices.emplace_back();
    device.gpu = entry.gpu;
    device.rdma = entry.rdma;
    device.mig_uuids = entry.mig_uuids;
    if (i < facts.users.size()) device.in_use_by = facts.users[i];
    add_sample(facts.samples, device);
    add_peers(facts.gpus, i, device);
  }
  return status;
}

}  // namespace gs::agent
