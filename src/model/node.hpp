// A machine as its agent reports it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "model/resources.hpp"

namespace gs {

enum class Health : std::uint8_t { Healthy, Unhealthy, Unknown };

// A MIG instance that exists on the device. `start` is its first memory slot (0..7), or -1 where
// the reporter knows only that it exists; then it is usable but its GPU is never cut anew.
struct MigInstance {
  std::string profile;  // "1g.10gb"
  int start = -1;
  bool operator==(const MigInstance&) const = default;
};

struct Gpu {
  int index = 0;
  std::string uuid;
  std::string model;  // "H100-SXM5-80GB"
  std::int64_t memory_mib = 0;
  Health health = Health::Healthy;
  int temperature_c = 0;   // 0: not known
  std::string island;      // GPUs of one island reach each other by NVLink
  int bandwidth_gbps = 0;  // GB/s, both directions, to peers of the island; without a matrix
  int numa = -1;
  bool mig_enabled = false;  // cut into instances: not available as a whole
  bool mig_dynamic = false;  // may be cut anew on demand (as long as nothing runs on it)
  std::vector<MigInstance> mig;
  bool operator==(const Gpu&) const = default;
};

struct Fabric {
  int rdma_ports = 0;
  int rdma_gbps = 0;  // Gbit/s of one port
  bool gpudirect_rdma = false;
  bool cufile = false;  // GPUDirect Storage
  bool operator==(const Fabric&) const = default;
};

enum class TaintEffect : std::uint8_t { NoSchedule, PreferNoSchedule, NoExecute };

struct Taint {
  std::string key, value;
  TaintEffect effect = TaintEffect::NoSchedule;
  bool operator==(const Taint&) const = default;
};

using Labels = std::vector<std::pair<std::string, std::string>>;  // sorted by key, keys unique

struct Node {
  std::string name;
  Resources capacity;
  std::vector<Gpu> gpus;  // index i at position i
  // GB/s between GPUs i and j at [i * gpus.size() + j]; empty where not known.
  std::vector<int> peer_bandwidth_gbps;
  Labels labels;
  std::vector<Taint> taints;
  std::vector<std::string> domain;  // network path, outermost first, e.g. {"spine-1", "leaf-3"}
  Fabric fabric;
  bool ready = true;
  bool cordoned = false;
  bool operator==(const Node&) const = default;
};

// Names, sizes and index rules; the message names the field and the rule.
Status validate(const Node& node);

const std::string* find_label(const Labels& labels, const std::string& key);
void set_label(Labels& labels, std::string key, std::string value);

}  // namespace gs
