#include <utility>

#include "wire/clock_json.hpp"
#include "wire/kube/encode.hpp"
#include "wire/kube/names.hpp"

namespace gs::kube {
namespace {

const char* health_word(Health health) {
  return health == Health::Healthy     ? "Healthy"
         : health == Health::Unhealthy ? "Unhealthy"
                                       : "Unknown";
}

Json mig_json(const Device& device) {
  const Gpu& gpu = device.gpu;
  Json instances = Json::array();
  for (std::size_t i = 0; i < gpu.mig.size(); ++i) {
    Json one = {{"profile", gpu.mig[i].profile}, {"start", gpu.mig[i].start}};
    if (i < device.mig_uuids.size() && !device.mig_uuids[i].empty())
      one["uuid"] = device.mig_uuids[i];
    instances.push_back(std::move(one));
  }
  return {{"enabled", gpu.mig_enabled},
          {"dynamic", gpu.mig_dynamic},
          {"instances", std::move(instances)}};
}

// The documented fields always; ours where they are known.
Json device_json(const Device& device) {
  const Gpu& gpu = device.gpu;
  Json json = {{"id", gpu.index},
               {"health", health_word(gpu.health)},
               {"bandwidthGBps", gpu.bandwidth_gbps},
               {"island", gpu.island},
               {"inUseBy", device.in_use_by}};
  if (!device.message.empty()) json["message"] = device.message;
  if (!gpu.uuid.empty()) json["uuid"] = gpu.uuid;
  if (!gpu.model.empty()) json["model"] = gpu.model;
  if (gpu.memory_mib > 0) json["memoryMiB"] = gpu.memory_mib;
  if (gpu.temperature_c != 0) json["temperatureC"] = gpu.temperature_c;
  if (gpu.numa >= 0) json["numaNode"] = gpu.numa;
  if (!device.rdma.empty()) json["rdma"] = device.rdma;
  if (gpu.mig_enabled || gpu.mig_dynamic || !gpu.mig.empty()) json["mig"] = mig_json(device);
  for (const Device::Peer& peer : device.peers)
    json["peers"].push_back({{"id", peer.id}, {"bandwidthGBps", peer.bandwidth_gbps}});
  return json;
}

}  // namespace

std::string encode_node_status(const GpuNodeStatus& status) {
  Json devices = Json::array();
  for (const Device& device : status.devices) devices.push_back(device_json(device));
  Json body = {{"total", status.total}, {"devices", std::move(devices)}};
  if (status.fabric != Fabric{})
    body["fabric"] = {{"rdmaPorts", status.fabric.rdma_ports},
                      {"rdmaGbps", status.fabric.rdma_gbps},
                      {"gpudirectRdma", status.fabric.gpudirect_rdma},
                      {"cufile", status.fabric.cufile}};
  if (!status.source.empty()) body["source"] = status.source;
  if (status.heartbeat) body["heartbeatTime"] = time_text(*status.heartbeat);
  Json metadata = {{"name", status.node_name}};
  for (const OwnerReference& owner : status.meta.owners)
    metadata["ownerReferences"].push_back({{"apiVersion", owner.api_version},
                                           {"kind", owner.kind},
                                           {"name", owner.name},
                                           {"uid", owner.uid}});
  const Json json = {{"apiVersion", kGpuApi},
                     {"kind", "GpuNodeStatus"},
                     {"metadata", std::move(metadata)},
                     {"spec", {{"nodeName", status.node_name}}},
                     {"status", std::move(body)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gs::kube
