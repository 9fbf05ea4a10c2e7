#include "agent/inventory.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gs::agent {
namespace {

using nlohmann::json;

class NoGpus final : public GpuSource {
 public:
  explicit NoGpus(std::string why) : why_(std::move(why)) {}
  Gpus list() override { return {}; }
  std::vector<GpuSample> sample() override { return {}; }
  bool simulated() const override { return false; }
  std::string describe() const override { return "no GPU: " + why_; }
  Result<std::string> mig_uuid(int, const std::string&, int, bool) override {
    return not_found(describe());
  }

 private:
  std::string why_;
};

json gpu_json(const GpuEntry& entry, const GpuSample& sample) {
  json mig = json::array();
  for (std::size_t i = 0; i < entry.gpu.mig.size(); ++i)
    mig.push_back({{"profile", entry.gpu.mig[i].profile},
                   {"start", entry.gpu.mig[i].start},
                   {"uuid", entry.mig_uuids[i]}});
  json processes = json::array();
  for (const GpuProcess& process : sample.processes)
    processes.push_back({{"pid", process.pid}, {"memory_used_mb", process.memory_used_mb}});
  const Gpu& gpu = entry.gpu;
  return {{"index", gpu.index},
          {"uuid", gpu.uuid},
          {"model", gpu.model},
          {"memory_mib", gpu.memory_mib},
          {"compute_capability", entry.compute_capability},
          {"cuda_cores", entry.cuda_cores},
          {"tensor_cores", entry.tensor_cores},
          {"health", health_name(sample.health)},
          {"last_error", sample.last_error},
          {"island", gpu.island},
          {"bandwidth_gbps", gpu.bandwidth_gbps},
          {"numa_node", gpu.numa},
          {"mig_enabled", gpu.mig_enabled},
          {"mig_dynamic", gpu.mig_dynamic},
          {"mig", mig},
          {"temperature_c", sample.temperature_c},
          {"utilization", sample.utilization},
          {"power_w", sample.power_w},
          {"memory_used_mb", sample.memory_used_mb},
          {"memory_free_mb", sample.memory_free_mb},
          {"thermal_throttle", sample.thermal_throttle},
          {"error_count", sample.error_count},
          {"processes", processes}};
}

}  // namespace

std::unique_ptr<GpuSource> no_gpus(std::string why) {
  return std::make_unique<NoGpus>(std::move(why));
}

const char* health_name(Health health) {
  switch (health) {
    case Health::Healthy:
      return "healthy";
    case Health::Unhealthy:
      return "unhealthy";
    case Health::Unknown:
      break;
  }
  return "unknown";
}

std::string inventory_json(const Machine& machine, GpuSource& source) {
  const Gpus gpus = source.list();
  const std::vector<GpuSample> samples = source.sample();
  json list = json::array();
  for (std::size_t i = 0; i < gpus.entries.size(); ++i)
    list.push_back(gpu_json(gpus.entries[i], samples[i]));
  const json all = {{"hostname", machine.hostname},
                    {"cpu_milli", machine.cpu_milli},
                    {"memory_mb", machine.memory_mb},
                    {"gpu_source", source.describe()},
                    {"simulated", source.simulated()},
                    {"gpus", list},
                    {"peer_bandwidth_gbps", gpus.peer_bandwidth_gbps},
                    {"fabric",
                     {{"rdma_ports", machine.fabric.rdma_ports},
                      {"rdma_gbps", machine.fabric.rdma_gbps},
                      {"gpudirect_rdma", machine.fabric.gpudirect_rdma},
                      {"cufile", machine.fabric.cufile}}}};
  return all.dump(2) + "\n";
}

std::string inventory_text(const Machine& machine, GpuSource& source) {
  std::string text = fmt::format("{}: {:.1f} CPUs, {} MiB of memory\nGPUs: {}\n", machine.hostname,
                                 static_cast<double>(machine.cpu_milli) / 1000.0, machine.memory_mb,
                                 source.describe());
  const Gpus gpus = source.list();
  const std::vector<GpuSample> samples = source.sample();
  for (std::size_t i = 0; i < gpus.entries.size(); ++i) {
    const Gpu& gpu = gpus.entries[i].gpu;
    text += fmt::format(
        "  {}  {:<18} {:>7} MiB  {:>3.0f} C  {:<9}  {:<9} {:>4} GB/s  numa {:>2}  {}\n", gpu.index,
        gpu.model, gpu.memory_mib, samples[i].temperature_c, health_name(samples[i].health),
        gpu.island.empty() ? "-" : gpu.island, gpu.bandwidth_gbps, gpu.numa, gpu.uuid);
    for (const MigInstance& instance : gpu.mig)
      text += fmt::format("     MIG {} at slot {}\n", instance.profile, instance.start);
  }
  const gs::Fabric& fabric = machine.fabric;
  text += fmt::format("RDMA: {} port(s) of {} Gbit/s; GPUDirect RDMA: {}; cuFile: {}\n",
                      fabric.rdma_ports, fabric.rdma_gbps, fabric.gpudirect_rdma ? "yes" : "no",
                      fabric.cufile ? "yes" : "no");
  return text;
}

}  // namespace gs::agent
