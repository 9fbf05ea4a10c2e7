#include "agent/simulated_gpus.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "agent/files.hpp"

namespace gs::agent {
namespace {

using nlohmann::json;

struct ModelFacts {
  const char* name;
  std::int64_t memory_mib;
  int bandwidth_gbps;  // NVLink, both directions; 0: none
  const char* compute_capability;
  int cuda_cores, tensor_cores;
};

constexpr ModelFacts kModels[] = {
    {"B200", 183'359, 1800, "10.0", 18'944, 592},
    {"H200", 143'771, 900, "9.0", 16'896, 528},
    {"H100-SXM5-80GB", 81'559, 900, "9.0", 16'896, 528},
    {"H100-PCIe", 81'559, 0, "9.0", 14'592, 456},
    {"A100-SXM4-80GB", 81'920, 600, "8.0", 6912, 432},
    {"A100-SXM4-40GB", 40'960, 600, "8.0", 6912, 432},
    {"V100-SXM2-32GB", 32'768, 300, "7.0", 5120, 640},
    {"L40S", 46'068, 0, "8.9", 18'176, 568},
    {"L4", 23'034, 0, "8.9", 7424, 232},
    {"T4", 15'360, 0, "7.5", 2560, 320},
};

// What its name tells of a model that we don't know.
std::int64_t memory_in_name(const std::string& model) {
  const std::size_t end = model.rfind("GB");
  if (end == std::string::npos) return 16 * 1024;
  std::size_t begin = end;
  while (begin > 0 && model[begin - 1] >= '0' && model[begin - 1] <= '9') --begin;
  std::int64_t gigabytes = 0;
  std::from_chars(model.data() + begin, model.data() + end, gigabytes);
  return gigabytes > 0 ? gigabytes * 1024 : 16 * 1024;
}

GpuEntry make_gpu(const std::string& model, int index) {
  GpuEntry entry;
  entry.gpu.index = index;
  entry.gpu.model = model;
  entry.gpu.uuid = fmt::format("GPU-51300000-0000-4000-8000-{:012x}", index);
  entry.gpu.temperature_c = 35 + index % 4;
  const auto* known = std::find_if(std::begin(kModels), std::end(kModels),
                                   [&](const ModelFacts& facts) { return model == facts.name; });
  if (known == std::end(kModels)) {
    entry.gpu.memory_mib = memory_in_name(model);
    entry.gpu.bandwidth_gbps = model.find("SXM") != std::string::npos ? 600 : 0;
  } else {
    entry.gpu.memory_mib = known->memory_mib;
    entry.gpu.bandwidth_gbps = known->bandwidth_gbps;
    entry.compute_capability = known->compute_capability;
    entry.cuda_cores = known->cuda_cores;
    entry.tensor_cores = known->tensor_cores;
  }
  if (entry.gpu.bandwidth_gbps > 0) entry.gpu.island = "nvlink-0";
  return entry;
}

Health health_from(const std::string& name) {
  if (name == "unhealthy") return Health::Unhealthy;
  return name == "unknown" ? Health::Unknown : Health::Healthy;
}

std::string mig_uuid_for(const Gpu& gpu, const std::string& profile, int start) {
  return fmt::format("MIG-{}/{}/{}", gpu.uuid.substr(4), profile, start);
}

// What the file says of one GPU, on top of its model.
void apply(const json& said, GpuEntry& entry) {
  Gpu& gpu = entry.gpu;
  gpu.temperature_c = said.value("temperature_c", gpu.temperature_c);
  gpu.health = health_from(said.value("health", "healthy"));
  gpu.memory_mib = said.value("memory_mib", gpu.memory_mib);
  gpu.island = said.value("island", gpu.island);
  gpu.bandwidth_gbps = said.value("bandwidth_gbps", gpu.bandwidth_gbps);
  gpu.numa = said.value("numa", gpu.numa);
  entry.rdma = said.value("rdma", entry.rdma);
  gpu.mig_enabled = said.value("mig_enabled", gpu.mig_enabled);
  gpu.mig_dynamic = said.value("mig_dynamic", gpu.mig_dynamic);
  for (const json& instance : said.value("mig", json::array())) {
    gpu.mig.push_back({instance.value("profile", ""), instance.value("start", -1)});
    entry.mig_uuids.push_back(mig_uuid_for(gpu, gpu.mig.back().profile, gpu.mig.back().start));
  }
}

class SimulatedGpus final : public GpuSource {
 public:
  SimulatedGpus(int count, std::string model, std::string file)
      : count_(count), model_(std::move(model)), file_(std::move(file)) {}

  Gpus list() override {
    Gpus gpus;
    const json said = read();
    for (int index = 0; index < count_; ++index) {
      gpus.entries.push_back(make_gpu(model_, index));
      const json one = said.value(std::to_string(index), json::object());
      try {
        apply(one, gpus.entries.back());
      } catch (const json::exception&) {
        // A value of the wrong kind: the file is being written by hand. The model's values hold.
      }
    }
    return gpus;
  }

  std::vector<GpuSample> sample() override {
    std::vector<GpuSample> samples;
    const json said = read();
    for (const GpuEntry& entry : list().entries) {
      GpuSample sample;
      const json one = said.value(std::to_string(entry.gpu.index), json::object());
      sample.index = entry.gpu.index;
      sample.uuid = entry.gpu.uuid;
      sample.temperature_c = entry.gpu.temperature_c;
      sample.power_w = 70;
      sample.memory_free_mb = entry.gpu.memory_mib;
      sample.health = entry.gpu.health;
      try {
        sample.utilization = one.value("utilization", 0.0);
        sample.last_error = one.value("last_error", "");
        sample.thermal_throttle = one.value("thermal_throttle", false);
      } catch (const json::exception&) {
        sample.last_error = file_ + " has a value of the wrong kind";
      }
      samples.push_back(std::move(sample));
    }
    return samples;
  }

  bool simulated() const override { return true; }
  std::string describe() const override {
    return fmt::format("{} simulated {} (no such GPU is in this machine)", count_, model_);
  }

  Result<std::string> mig_uuid(int index, const std::string& profile, int start, bool) override {
    if (index < 0 || index >= count_) return not_found(fmt::format("there is no GPU {}", index));
    return mig_uuid_for(make_gpu(model_, index).gpu, profile, start);
  }

 private:
  // The last good content: a reader may come while the file is being written.
  json read() {
    if (file_.empty()) return json::object();
    json now = json::parse(read_file(file_).value_or("{}"), nullptr, false);
    if (now.is_object()) last_ = now.value("gpus", json::object());
    if (!last_.is_object()) last_ = json::object();
    return last_;
  }

  int count_;
  std::string model_, file_;
  json last_ = json::object();
};

}  // namespace

Result<std::unique_ptr<GpuSource>> simulated_gpus(const std::string& spec,
                                                  const std::string& file) {
  int count = 1;
  std::string model = spec;
  const auto parsed = std::from_chars(spec.data(), spec.data() + spec.size(), count);
  const bool counted =
      parsed.ec == std::errc{} && parsed.ptr != spec.data() + spec.size() && *parsed.ptr == 'x';
  if (counted) model.assign(parsed.ptr + 1, spec.data() + spec.size());
  if (!counted) count = 1;
  if (model.empty() || count < 0 || count > 64)
    return invalid(
        fmt::format("--simulate {:?}: want for example 8xH100-SXM5-80GB, at most 64", spec));
  return std::unique_ptr<GpuSource>(std::make_unique<SimulatedGpus>(count, model, file));
}

}  // namespace gs::agent
