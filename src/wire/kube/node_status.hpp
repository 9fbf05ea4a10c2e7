// GpuNodeStatus (gpu.scheduling/v1): the GPUs of a node as its agent reports them.
//
// Of a device, id, inUseBy, health, bandwidthGBps and island are documented; message, uuid, model,
// memoryMiB, temperatureC, numaNode, peers, mig and rdma are ours beside them, as are fabric,
// source and heartbeatTime of the status.
#pragma once

#include "base/result.hpp"
#include "model/node.hpp"
#include "wire/kube/meta.hpp"

namespace gs::kube {

struct Device {
  Gpu gpu;                             // gpu.index is the id
  std::vector<std::string> in_use_by;  // UIDs of pods
  std::string message;                 // what is wrong with it
  struct Peer {
    int id = 0;
    int bandwidth_gbps = 0;
    bool operator==(const Peer&) const = default;
  };
  std::vector<Peer> peers;
  std::string rdma;                    // the nearest network adapter, "mlx5_0"
  std::vector<std::string> mig_uuids;  // "MIG-...", of gpu.mig in its order; "": not known
  bool operator==(const Device&) const = default;
};

struct GpuNodeStatus {
  Meta meta;
  std::string node_name;
  std::vector<Device> devices;
  int total = 0;
  Fabric fabric;
  std::string source;  // for people: which driver, which simulation
  std::optional<Instant> heartbeat;
};

// Tolerates fields that it does not know: agents of another version may run.
Result<GpuNodeStatus> decode_node_status(std::string_view text);

}  // namespace gs::kube
