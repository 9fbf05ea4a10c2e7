#include "agent/nvml_gpus.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "agent/nvml_api.hpp"
#include "agent/nvml_mig.hpp"

namespace gs::agent {
namespace {

using namespace nvml;

template <typename Function, typename... Arguments>
bool ask(Function function, Arguments... arguments) {
  return function != nullptr && function(arguments...) == kSuccess;
}

int cores_per_multiprocessor(int major, int minor) {
  if (major == 7 || (major == 8 && minor == 0)) return 64;
  return major >= 8 ? 128 : 0;
}

// As sysfs writes it: "0000:3b:00.0", while NVML has eight digits for the domain.
std::string pci_address(const Pci& pci) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
}

std::string same_bus_id(const char* bus_id) {
  std::string text(bus_id);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

class NvmlGpus final : public GpuSource {
 public:
  NvmlGpus(const Api& api, void* library, std::string driver)
      : api_(api), library_(library), driver_(std::move(driver)) {
    find_devices();
    watcher_ = std::thread([this] { watch_events(); });
  }
  ~NvmlGpus() override {
    leaving_ = true;
    watcher_.join();
    api_.nvmlShutdown();
    ::dlclose(library_);
  }

  Gpus list() override {
    Gpus gpus;
    for (std::size_t i = 0; i < devices_.size(); ++i) gpus.entries.push_back(entry(i));
    add_links(gpus);
    return gpus;
  }

  std::vector<GpuSample> sample() override {
    std::vector<GpuSample> samples;
    for (std::size_t i = 0; i < devices_.size(); ++i) samples.push_back(sample_of(i));
    return samples;
  }

  bool simulated() const override { return false; }
  std::string describe() const override {
    return fmt::format("{} GPU(s), NVIDIA driver {}", devices_.size(), driver_);
  }
  void forget_errors() override {
    const std::lock_guard lock(mutex_);
    errors_.clear();
  }
  Result<std::string> mig_uuid(int index, const std::string& profile, int start,
                               bool create) override {
    if (index < 0 || static_cast<std::size_t>(index) >= devices_.size())
      return not_found(fmt::format("there is no GPU {}", index));
    return find_or_cut_mig(api_, devices_[static_cast<std::size_t>(index)], profile, start, create);
  }

 private:
  void find_devices() {
    unsigned count = 0;
    if (!ask(api_.nvmlDeviceGetCount_v2, &count)) return;
    for (unsigned i = 0; i < count; ++i) {
      Device device = nullptr;
      if (!ask(api_.nvmlDeviceGetHandleByIndex_v2, i, &device)) continue;
      devices_.push_back(device);
      char uuid[96] = "";
      ask(api_.nvmlDeviceGetUUID, device, static_cast<char*>(uuid), 96U);
      uuids_.emplace_back(uuid);
    }
  }

  GpuEntry entry(std::size_t i) {
    const Device device = devices_[i];
    GpuEntry entry;
    Gpu& gpu = entry.gpu;
    gpu.index = static_cast<int>(i);
    gpu.uuid = uuids_[i];
    char name[96] = "";
    ask(api_.nvmlDeviceGetName, device, static_cast<char*>(name), 96U);
    gpu.model = canonical_gpu_model(name);
    Memory memory{};
    if (ask(api_.nvmlDeviceGetMemoryInfo, device, &memory))
      gpu.memory_mib = static_cast<std::int64_t>(memory.total / (1024 * 1024));
    unsigned celsius = 0;
    if (ask(api_.nvmlDeviceGetTemperature, device, kTemperatureGpu, &celsius))
      gpu.temperature_c = static_cast<int>(celsius);
    Pci pci{};
    if (ask(api_.nvmlDeviceGetPciInfo_v3, device, &pci)) {
      entry.pci_address = pci_address(pci);
      gpu.numa = numa_node_of("/", entry.pci_address);
    }
    gpu.health = error_of(i).empty() ? Health::Healthy : Health::Unhealthy;
    add_cores(device, entry);
    add_mig(api_, device, entry);
    return entry;
  }

  void add_cores(Device device, GpuEntry& entry) {
    int major = 0;
    int minor = 0;
    if (!ask(api_.nvmlDeviceGetCudaComputeCapability, device, &major, &minor)) return;
    entry.compute_capability = fmt::format("{}.{}", major, minor);
    unsigned cores = 0;
    if (!ask(api_.nvmlDeviceGetNumGpuCores, device, &cores)) return;
    entry.cuda_cores = static_cast<int>(cores);
    if (const int per = cores_per_multiprocessor(major, minor); per > 0)
      entry.tensor_cores = entry.cuda_cores / per * (major == 7 ? 8 : 4);
  }

  LinkFacts links_of(std::size_t i, const std::map<std::string, std::size_t>& by_bus_id) {
    LinkFacts facts;
    facts.peer_links.resize(devices_.size(), 0);
    int major = 0;
    int minor = 0;
    if (ask(api_.nvmlDeviceGetCudaComputeCapability, devices_[i], &major, &minor))
      facts.link_gbps = nvlink_gbps(major, minor);
    for (unsigned link = 0; link < kMaxLinks; ++link) {
      unsigned active = 0;
      if (!ask(api_.nvmlDeviceGetNvLinkState, devices_[i], link, &active) || active == 0) continue;
      Pci remote{};
      const bool known = ask(api_.nvmlDeviceGetNvLinkRemotePciInfo_v2, devices_[i], link, &remote);
      const auto peer = known ? by_bus_id.find(same_bus_id(remote.bus_id)) : by_bus_id.end();
      int kind = -1;
      ask(api_.nvmlDeviceGetNvLinkRemoteDeviceType, devices_[i], link, &kind);
      if (peer != by_bus_id.end())
        ++facts.peer_links[peer->second];
      else if (kind == kRemoteIsSwitch)
        ++facts.switch_links;
    }
    return facts;
  }

  void add_links(Gpus& gpus) {
    std::map<std::string, std::size_t> by_bus_id;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      Pci pci{};
      if (ask(api_.nvmlDeviceGetPciInfo_v3, devices_[i], &pci))
        by_bus_id[same_bus_id(pci.bus_id)] = i;
    }
    std::vector<LinkFacts> facts;
    for (std::size_t i = 0; i < devices_.size(); ++i) facts.push_back(links_of(i, by_bus_id));
    std::vector<int> matrix = nvlink_matrix(facts);
    const std::vector<std::string> names = islands(matrix, devices_.size());
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      Gpu& gpu = gpus.entries[i].gpu;
      gpu.island = names[i];
      const int direct = *std::max_element(facts[i].peer_links.begin(), facts[i].peer_links.end());
      gpu.bandwidth_gbps = std::max(facts[i].switch_links, direct) * facts[i].link_gbps;
      for (std::size_t j = 0; j < devices_.size(); ++j)
        if (i != j && matrix[i * devices_.size() + j] == 0)
          matrix[i * devices_.size() + j] = pcie_gbps(devices_[i], devices_[j]);
    }
    gpus.peer_bandwidth_gbps = std::move(matrix);
  }

  // By PCIe: the narrower of both, and half of it where the way leads through the processors.
  int pcie_gbps(Device a, Device b) {
    double least = 0;
    for (const Device device : {a, b}) {
      unsigned generation = 0;
      unsigned width = 0;
      if (!ask(api_.nvmlDeviceGetMaxPcieLinkGeneration, device, &generation) ||
          !ask(api_.nvmlDeviceGetMaxPcieLinkWidth, device, &width) || generation == 0)
        return 0;
      const double gbps = 0.5 * static_cast<double>(1U << (generation - 1)) * width;
      least = least == 0 ? gbps : std::min(least, gbps);
    }
    int ancestor = 0;
    constexpr int kHostBridge = 30;
    if (ask(api_.nvmlDeviceGetTopologyCommonAncestor, a, b, &ancestor) && ancestor > kHostBridge)
      least /= 2;
    return static_cast<int>(least);
  }

  GpuSample sample_of(std::size_t i) {
    const Device device = devices_[i];
    GpuSample sample;
    sample.index = static_cast<int>(i);
    sample.uuid = uuids_[i];
    unsigned number = 0;
    const Return answered = api_.nvmlDeviceGetTemperature == nullptr
                                ? kSuccess
                                : api_.nvmlDeviceGetTemperature(device, kTemperatureGpu, &number);
    if (answered == kSuccess) sample.temperature_c = number;
    if (answered == kGpuIsLost) note_error(i, "the GPU has fallen off the bus");
    if (ask(api_.nvmlDeviceGetPowerUsage, device, &number)) sample.power_w = number / 1000.0;
    Utilization utilization{};
    if (ask(api_.nvmlDeviceGetUtilizationRates, device, &utilization))
      sample.utilization = utilization.gpu;
    Memory memory{};
    if (ask(api_.nvmlDeviceGetMemoryInfo, device, &memory)) {
      sample.memory_used_mb = static_cast<std::int64_t>(memory.used / (1024 * 1024));
      sample.memory_free_mb = static_cast<std::int64_t>(memory.free / (1024 * 1024));
    }
    Large many = 0;
    if (ask(api_.nvmlDeviceGetTotalEccErrors, device, kEccUncorrected, kEccVolatile, &many))
      sample.error_count = static_cast<std::int64_t>(many);
    if (ask(api_.nvmlDeviceGetCurrentClocksThrottleReasons, device, &many))
      sample.thermal_throttle = (many & kThermalReasons) != 0;
    look_at_rows(i);
    add_processes(device, sample);
    sample.last_error = error_of(i);
    sample.health = sample.last_error.empty() ? Health::Healthy : Health::Unhealthy;
    return sample;
  }

  void look_at_rows(std::size_t i) {
    unsigned corrected = 0;
    unsigned uncorrected = 0;
    unsigned pending = 0;
    unsigned failed = 0;
    if (ask(api_.nvmlDeviceGetRemappedRows, devices_[i], &corrected, &uncorrected, &pending,
            &failed) &&
        failed != 0)
      note_error(i, "broken memory rows could not be remapped");
  }

  void add_processes(Device device, GpuSample& sample) {
    unsigned count = 64;
    std::vector<ProcessInfo> list(count);
    if (!ask(api_.nvmlDeviceGetComputeRunningProcesses_v3, device, &count, list.data())) return;
    list.resize(std::min<std::size_t>(count, list.size()));
    for (const ProcessInfo& process : list) {
      const bool known = process.used_memory != ~0ULL;
      sample.processes.push_back(
          {process.pid,
           known ? static_cast<std::int64_t>(process.used_memory / (1024 * 1024)) : 0});
    }
  }

  // Errors reach us as they happen; a GPU stays broken until somebody asks to look anew.
  void watch_events() {
    EventSet events = nullptr;
    if (!ask(api_.nvmlEventSetCreate, &events)) return;
    for (const Device device : devices_)
      ask(api_.nvmlDeviceRegisterEvents, device, kEventXid | kEventDoubleBitEcc, events);
    while (!leaving_) {
      EventData event{};
      constexpr unsigned kWaitMs = 500;
      const Return answer = api_.nvmlEventSetWait_v2 == nullptr
                                ? kTimeout
                                : api_.nvmlEventSetWait_v2(events, &event, kWaitMs);
      if (answer == kSuccess) take_event(event);
      // Without events the call returns at once; that must not become a busy loop.
      if (answer != kSuccess) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    ask(api_.nvmlEventSetFree, events);
  }

  void take_event(const EventData& event) {
    const auto device = std::find(devices_.begin(), devices_.end(), event.device);
    if (device == devices_.end()) return;
    const auto i = static_cast<std::size_t>(device - devices_.begin());
    if (event.type == kEventDoubleBitEcc) note_error(i, "an uncorrectable memory error");
    if (event.type == kEventXid && xid_breaks_gpu(event.data))
      note_error(i, fmt::format("XID {}", event.data));
  }

  void note_error(std::size_t i, std::string text) {
    const std::lock_guard lock(mutex_);
    errors_[i] = std::move(text);
  }
  std::string error_of(std::size_t i) {
    const std::lock_guard lock(mutex_);
    const auto found = errors_.find(i);
    return found == errors_.end() ? std::string() : found->second;
  }

  Api api_;
  void* library_;
  std::string driver_;
  std::vector<Device> devices_;
  std::vector<std::string> uuids_;
  std::mutex mutex_;
  std::map<std::size_t, std::string> errors_;  // what broke each; guarded by mutex_
  std::atomic<bool> leaving_ = false;
  std::thread watcher_;
};

}  // namespace

Result<std::unique_ptr<GpuSource>> nvml_gpus() {
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return not_found("no NVIDIA driver on this machine (libnvidia-ml.so.1 is not there)");
  Api api;
  api.load(library);
  const Return started = api.nvmlInit_v2 == nullptr ? -1 : api.nvmlInit_v2();
  if (started != kSuccess) {
    const char* why = api.nvmlErrorString == nullptr ? "?" : api.nvmlErrorString(started);
    Error error{ErrorCode::Unavailable, fmt::format("the NVIDIA driver does not answer: {}", why)};
    ::dlclose(library);
    return error;
  }
  char driver[96] = "";
  ask(api.nvmlSystemGetDriverVersion, static_cast<char*>(driver), 96U);
  return std::unique_ptr<GpuSource>(std::make_unique<NvmlGpus>(api, library, driver));
}

}  // namespace gs::agent
