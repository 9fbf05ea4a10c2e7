#include "wire/kube/node_status.hpp"

namespace gs::kube {
namespace {

void read_health(Cursor& in, Health& health) {
  std::string word;
  in.read(word);
  health = word == "Healthy"     ? Health::Healthy
           : word == "Unhealthy" ? Health::Unhealthy
                                 : Health::Unknown;
}

void read_mig(Cursor& in, Device& device) {
  Gpu& gpu = device.gpu;
  in.object([&](std::string_view field) {
    if (field == "enabled") in.read(gpu.mig_enabled);
    if (field == "dynamic") in.read(gpu.mig_dynamic);
    if (field == "instances")
      in.array([&] {
        MigInstance& instance = gpu.mig.emplace_back();
        std::string& uuid = device.mig_uuids.emplace_back();
        in.object([&](std::string_view inner) {
          if (inner == "profile") in.read(instance.profile);
          if (inner == "start") in.read(instance.start);
          if (inner == "uuid") in.read(uuid);
        });
      });
  });
}

void read_peer(Cursor& in, Device::Peer& peer) {
  in.object([&](std::string_view field) {
    if (field == "id") in.read(peer.id);
    if (field == "bandwidthGBps") in.read(peer.bandwidth_gbps);
  });
}

void read_device(Cursor& in, Device& device) {
  Gpu& gpu = device.gpu;
  in.object([&](std::string_view field) {
    if (field == "id")
      in.read(gpu.index);
    else if (field == "inUseBy")
      in.read(device.in_use_by);
    else if (field == "health")
      read_health(in, gpu.health);
    else if (field == "message")
      in.read(device.message);
    else if (field == "bandwidthGBps")
      in.read(gpu.bandwidth_gbps);
    else if (field == "island")
      in.read(gpu.island);
    else if (field == "uuid")
      in.read(gpu.uuid);
    else if (field == "model")
      in.read(gpu.model);
    else if (field == "memoryMiB")
      in.read(gpu.memory_mib);
    else if (field == "temperatureC")
      in.read(gpu.temperature_c);
    else if (field == "numaNode")
      in.read(gpu.numa);
    else if (field == "peers")
      in.array([&] { read_peer(in, device.peers.emplace_back()); });
    else if (field == "mig")
      read_mig(in, device);
    else if (field == "rdma")
      in.read(device.rdma);
  });
}

void read_fabric(Cursor& in, Fabric& fabric) {
  in.object([&](std::string_view field) {
    if (field == "rdmaPorts") in.read(fabric.rdma_ports);
    if (field == "rdmaGbps") in.read(fabric.rdma_gbps);
    if (field == "gpudirectRdma") in.read(fabric.gpudirect_rdma);
    if (field == "cufile") in.read(fabric.cufile);
  });
}

void read_status(Cursor& in, GpuNodeStatus& node) {
  in.object([&](std::string_view field) {
    if (field == "total") in.read(node.total);
    if (field == "devices") in.array([&] { read_device(in, node.devices.emplace_back()); });
    if (field == "fabric") read_fabric(in, node.fabric);
    if (field == "source") in.read(node.source);
    if (field == "heartbeatTime") read(in, node.heartbeat);
  });
}

}  // namespace

Result<GpuNodeStatus> decode_node_status(std::string_view text) {
  GpuNodeStatus node;
  Cursor in(text);
  in.object([&](std::string_view field) {
    if (field == "metadata") read(in, node.meta);
    if (field == "spec")
      in.object([&](std::string_view inner) {
        if (inner == "nodeName") in.read(node.node_name);
      });
    if (field == "status") read_status(in, node);
  });
  if (const Status status = in.finish(); !status) return status.error();
  if (node.node_name.empty()) node.node_name = node.meta.name;
  return node;
}

}  // namespace gs::kube
