// Which RDMA adapter is nearest to which GPU, by their places in the tree of PCI devices.
#include <algorithm>
#include <filesystem>
#include <map>

#include "agent/files.hpp"
#include "agent/inventory.hpp"

namespace gs::agent {
namespace {

namespace fs = std::filesystem;

struct Adapter {
  std::string name;
  fs::path place;  // in /sys/devices
  std::int64_t numa = -1;
};

fs::path place_of(const std::string& link) {
  std::error_code error;
  fs::path place = fs::canonical(link, error);
  return error ? fs::path() : place;
}

bool has_active_port(const std::string& device) {
  const auto ports = list_directory(device + "/ports");
  return std::any_of(ports.begin(), ports.end(), [&](const std::string& port) {
    const std::string state = read_file(device + "/ports/" + port + "/state").value_or("");
    return state.find("ACTIVE") != std::string::npos;
  });
}

std::vector<Adapter> adapters_under(const std::string& root) {
  std::vector<Adapter> adapters;
  const std::string base = root + "/sys/class/infiniband/";
  for (const std::string& name : list_directory(base)) {
    if (!has_active_port(base + name)) continue;
    const std::string device = base + name + "/device";
    adapters.push_back({name, place_of(device), read_number(device + "/numa_node").value_or(-1)});
  }
  return adapters;
}

// How many steps of the tree both share below /sys/devices, and then whether the NUMA node is the
// same; 0: nothing.
int nearness(const fs::path& gpu, int numa, const Adapter& adapter, const fs::path& devices) {
  const auto above = std::distance(devices.begin(), devices.end());
  int shared = 0;
  auto a = gpu.begin();
  auto b = adapter.place.begin();
  for (std::ptrdiff_t depth = 0; a != gpu.end() && b != adapter.place.end() && *a == *b;
       ++a, ++b, ++depth)
    if (depth >= above) ++shared;
  return 2 * shared + static_cast<int>(numa >= 0 && numa == adapter.numa);
}

}  // namespace

void add_nearest_rdma(const std::string& root_path, Gpus& gpus) {
  const std::string root = root_path == "/" ? "" : root_path;
  const std::vector<Adapter> adapters = adapters_under(root);
  const fs::path devices = place_of(root + "/sys/devices");
  std::map<std::string, int> given;
  for (GpuEntry& entry : gpus.entries) {
    if (entry.pci_address.empty()) continue;
    const fs::path gpu = place_of(root + "/sys/bus/pci/devices/" + entry.pci_address);
    const Adapter* best = nullptr;
    int most = 0;
    for (const Adapter& adapter : adapters) {
      const int near = nearness(gpu, entry.gpu.numa, adapter, devices);
      // Of equally near ones that which serves fewest GPUs so far; of those the first by name.
      const bool better = near > most || (best != nullptr && near == most &&
                                          given[adapter.name] < given[best->name]);
      if (near == 0 || !better) continue;
      best = &adapter;
      most = near;
    }
    if (best == nullptr) continue;
    entry.rdma = best->name;
    ++given[best->name];
  }
}

}  // namespace gs::agent
