#include "wire/kube/node_model.hpp"

#include <algorithm>
#include <charconv>

#include "base/gpu_mask.hpp"
#include "model/mig.hpp"
#include "wire/kube/pod_resources.hpp"

namespace gs::kube {
namespace {

constexpr int kComputeSlices = 7;  // of a GPU that is cut by MIG
using Problems = std::vector<std::string>;

std::int64_t number_label(const Meta& meta, const char* label) {
  const std::string* text = meta.label(label);
  std::int64_t number = 0;
  if (text == nullptr) return 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  const bool good = error == std::errc{} && end == text->data() + text->size();
  return good && is_amount(number) ? number : 0;
}

bool is_device(std::string_view name) {
  return name == kGpuResource || name.starts_with(kMigResourcePrefix);
}

// More than the engine counts is as good as the most that it counts.
Resources capacity_of(const ResourceList& allocatable) {
  Resources capacity;
  for (const NamedQuantity& item : allocatable) {
    if (item.name.empty() || is_device(item.name)) continue;
    const bool cpu = item.name == "cpu";
    const std::int64_t amount =
        std::min(cpu ? item.amount.milli() : item.amount.value(), kMaxAmount);
    if (cpu)
      capacity.cpu_milli = amount;
    else if (item.name == "memory")
      capacity.memory_bytes = amount;
    else
      capacity.named.push_back({item.name, amount});
  }
  return capacity;
}

// "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb" and "...-SHARED" speak of the same model.
std::string product_of(const Meta& meta) {
  const std::string* label = meta.label("nvidia.com/gpu.product");
  std::string product = label == nullptr ? "" : *label;
  for (const char* tail : {"-MIG-", "-SHARED"})
    if (const std::size_t at = product.find(tail); at != std::string::npos) product.resize(at);
  return product;
}

// Which GPU an instance lies on is not known: they fill GPUs one after the other, seven slices
// each.
void add_instances(gs::Node& out, const Gpu& like, const std::string& profile, std::int64_t count,
                   int& slices_left) {
  const int slices = mig_compute_slices(profile);
  if (slices == 0) return;
  for (std::int64_t i = 0; i < count; ++i) {
    if (slices_left < slices) {
      if (out.gpus.size() >= kMaxGpusPerNode) return;
      out.gpus.push_back(like);
      out.gpus.back().mig_enabled = true;
      slices_left = kComputeSlices;
    }
    out.gpus.back().mig.push_back({profile, -1});
    slices_left -= slices;
  }
}

void gpus_of_resources(const Node& node, gs::Node& out, Problems& problems) {
  Gpu like;
  like.model = product_of(node.meta);
  like.memory_mib = number_label(node.meta, "nvidia.com/gpu.memory");
  std::int64_t whole = 0;
  if (const Quantity* gpus = find(node.allocatable, kGpuResource)) whole = gpus->value();
  if (whole > kMaxGpusPerNode)
    problems.push_back("allocatable nvidia.com/gpu is " + std::to_string(whole) + "; only " +
                       std::to_string(kMaxGpusPerNode) + " are used");
  out.gpus.assign(static_cast<std::size_t>(std::min<std::int64_t>(whole, kMaxGpusPerNode)), like);
  int slices_left = 0;
  for (const NamedQuantity& item : node.allocatable)
    if (item.name.starts_with(kMigResourcePrefix))
      add_instances(out, like, canonical_mig_profile(item.name), item.amount.value(), slices_left);
  for (std::size_t i = 0; i < out.gpus.size(); ++i) out.gpus[i].index = static_cast<int>(i);
}

// What the report says of one device, as far as the engine takes it.
Gpu gpu_of(const Device& device, Problems& problems) {
  Gpu gpu = device.gpu;
  const std::string of = "device " + std::to_string(gpu.index) + ": ";
  if (!is_amount(gpu.memory_mib)) {
    problems.push_back(of + "memoryMiB" + kMustBeAmount);
    gpu.memory_mib = 0;
  }
  gpu.bandwidth_gbps = std::max(gpu.bandwidth_gbps, 0);
  gpu.mig_dynamic = false;  // nobody cuts instances for a pod: the device plugin counts those there
  for (MigInstance& instance : gpu.mig)
    if (instance.start < -1 || instance.start > 7) {
      problems.push_back(of + "mig start must be 0..7, got " + std::to_string(instance.start));
      instance.start = -1;
    }
  return gpu;
}

void read_peers(const GpuNodeStatus& report, gs::Node& out) {
  const std::size_t count = out.gpus.size();
  const bool known = std::any_of(report.devices.begin(), report.devices.end(),
                                 [](const Device& device) { return !device.peers.empty(); });
  if (!known) return;
  out.peer_bandwidth_gbps.assign(count * count, 0);
  for (const Device& device : report.devices)
    for (const Device::Peer& peer : device.peers) {
      const auto from = static_cast<std::size_t>(device.gpu.index);
      const auto to = static_cast<std::size_t>(peer.id);
      if (device.gpu.index < 0 || peer.id < 0 || from >= count || to >= count) continue;
      const int bandwidth = std::max(peer.bandwidth_gbps, 0);
      out.peer_bandwidth_gbps[from * count + to] = bandwidth;
      if (out.peer_bandwidth_gbps[to * count + from] == 0)
        out.peer_bandwidth_gbps[to * count + from] = bandwidth;
    }
}

// Ids that the report leaves out stand for devices that are not there: nothing is placed on them.
void gpus_of_report(const GpuNodeStatus& report, gs::Node& out, Problems& problems) {
  int most = -1;
  for (const Device& device : report.devices)
    if (device.gpu.index < kMaxGpusPerNode) most = std::max(most, device.gpu.index);
  Gpu missing;
  missing.health = Health::Unhealthy;
  out.gpus.assign(static_cast<std::size_t>(most + 1), missing);
  for (std::size_t i = 0; i < out.gpus.size(); ++i) out.gpus[i].index = static_cast<int>(i);
  for (const Device& device : report.devices) {
    const int id = device.gpu.index;
    if (id < 0 || id >= kMaxGpusPerNode)
      problems.push_back("device " + std::to_string(id) + ": id must be 0..63; it is not used");
    else
      out.gpus[static_cast<std::size_t>(id)] = gpu_of(device, problems);
  }
  read_peers(report, out);
}

Fabric fabric_of(Fabric fabric) {
  fabric.rdma_ports = std::clamp(fabric.rdma_ports, 0, 1024);
  fabric.rdma_gbps = std::clamp(fabric.rdma_gbps, 0, 1'000'000);
  return fabric;
}

}  // namespace

NodeReading to_node(const Node& node, const GpuNodeStatus* report, const SchedulerConfig& config) {
  NodeReading reading;
  gs::Node& out = reading.node;
  out.name = node.meta.name;
  out.capacity = capacity_of(node.allocatable);
  out.labels = node.meta.labels;
  set_label(out.labels, kNodeNameKey, node.meta.name);
  out.taints = node.taints;
  out.domain = network_path(node.meta, config);
  out.ready = node.ready && !node.meta.deleted;
  out.cordoned = node.unschedulable;
  if (report != nullptr) out.fabric = fabric_of(report->fabric);
  if (report != nullptr && !report->devices.empty())
    gpus_of_report(*report, out, reading.problems);
  else
    gpus_of_resources(node, out, reading.problems);
  return reading;
}

}  // namespace gs::kube
