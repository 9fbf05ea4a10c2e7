// What a machine has: GPUs as a source of them reports, and the rest from /proc and /sys.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "model/node.hpp"

namespace gs::agent {

struct GpuEntry {
  Gpu gpu;
  std::string compute_capability;        // "9.0"; empty: not known
  int cuda_cores = 0, tensor_cores = 0;  // 0: not known
  std::vector<std::string> mig_uuids;    // of gpu.mig, in that order
  std::string pci_address;               // "0000:3b:00.0"; empty: not known
  std::string rdma;                      // the nearest adapter, "mlx5_0"; empty: not known
};

struct Gpus {
  std::vector<GpuEntry> entries;         // index i at position i
  std::vector<int> peer_bandwidth_gbps;  // row by row; empty: not known
};

struct GpuProcess {
  std::int64_t pid = 0, memory_used_mb = 0;
};

// How one GPU is right now.
struct GpuSample {
  int index = 0;
  std::string uuid;
  double utilization = 0, temperature_c = 0, power_w = 0;  // utilization in percent
  std::int64_t memory_used_mb = 0, memory_free_mb = 0;
  bool thermal_throttle = false;
  std::int64_t error_count = 0;  // uncorrected memory errors since the driver was loaded
  Health health = Health::Healthy;
  std::string last_error;
  std::vector<GpuProcess> processes;
};

// Where GPUs come from: the driver, or a description of made-up ones. One thread at a time asks.
class GpuSource {
 public:
  GpuSource() = default;
  GpuSource(const GpuSource&) = delete;
  GpuSource& operator=(const GpuSource&) = delete;
  virtual ~GpuSource() = default;

  virtual Gpus list() = 0;
  virtual std::vector<GpuSample> sample() = 0;
  virtual bool simulated() const = 0;
  virtual std::string describe() const = 0;  // for people: which driver, which simulation
  // Forgets errors seen so far, because somebody asks to look anew.
  virtual void forget_errors() {}
  // The UUID of a MIG instance with this place, made first where it does not exist and `create`
  // says so.
  virtual Result<std::string> mig_uuid(int index, const std::string& profile, int start,
                                       bool create) = 0;
};

// A machine without GPUs.
std::unique_ptr<GpuSource> no_gpus(std::string why);

struct Machine {
  std::string hostname;
  std::int64_t cpu_milli = 0, memory_mb = 0;
  gs::Fabric fabric;
};

// `root`: "/" or, to look at a description of another machine, a directory with its proc and sys.
Machine machine_under(const std::string& root);
// The NUMA node of a PCI device "0000:3b:00.0"; -1: none, or not known.
int numa_node_of(const std::string& root, const std::string& pci_address);

// Fills `rdma` of the GPUs whose PCI address is known: the adapter with an active port that shares
// most of the way with the GPU, or at least the NUMA node. Equally near ones are shared out.
void add_nearest_rdma(const std::string& root, Gpus& gpus);

// How busy CPUs and memory are, in percent. CPU: since the call before this one.
class MachineLoad {
 public:
  double cpu_percent();
  static double memory_percent();

 private:
  std::int64_t busy_ = 0, total_ = 0;
};

const char* health_name(Health health);
std::string inventory_json(const Machine& machine, GpuSource& source);
std::string inventory_text(const Machine& machine, GpuSource& source);

}  // namespace gs::agent
