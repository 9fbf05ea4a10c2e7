#include <algorithm>
#include <cstdlib>
#include <limits>
#include <sstream>

#include <sched.h>
#include <unistd.h>

#include "agent/files.hpp"
#include "agent/inventory.hpp"

namespace gs::agent {
namespace {

// "0-3,8" -> 5
std::int64_t count_list(const std::string& text) {
  std::int64_t count = 0;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    long first = 0;
    long last = 0;
    const int fields = std::sscanf(part.c_str(), "%ld-%ld", &first, &last);
    if (fields == 1) ++count;
    if (fields == 2 && last >= first) count += last - first + 1;
  }
  return count;
}

std::int64_t cpus_online(const std::string& root) {
  std::int64_t count = count_list(read_file(root + "/sys/devices/system/cpu/online").value_or(""));
  cpu_set_t allowed;
  if (root.empty() && ::sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    const std::int64_t ours = CPU_COUNT(&allowed);
    count = count == 0 ? ours : std::min(count, ours);
  }
  return std::max<std::int64_t>(count, 1);
}

// The directories of our own v2 cgroup, innermost first: each of them may limit us.
std::vector<std::string> own_cgroups(const std::string& root) {
  std::vector<std::string> folders;
  std::istringstream lines(read_file(root + "/proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("0::/")) continue;
    for (std::string path = line.substr(3); !path.empty(); path.resize(path.rfind('/')))
      folders.push_back(root + "/sys/fs/cgroup" + path);
  }
  folders.push_back(root + "/sys/fs/cgroup");
  return folders;
}

std::int64_t limited_cpu_milli(const std::string& root, std::int64_t cpu_milli) {
  for (const std::string& folder : own_cgroups(root)) {
    long long quota = 0;
    long long period = 0;
    const std::string text = read_file(folder + "/cpu.max").value_or("");
    if (std::sscanf(text.c_str(), "%lld %lld", &quota, &period) == 2 && period > 0)
      cpu_milli = std::min<std::int64_t>(cpu_milli, quota * 1000 / period);
  }
  return cpu_milli;
}

std::int64_t meminfo_kib(const std::string& root, const std::string& name) {
  std::istringstream lines(read_file(root + "/proc/meminfo").value_or(""));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(name + ":")) return std::atoll(line.c_str() + name.size() + 1);
  return 0;
}

std::int64_t limited_memory_mb(const std::string& root, std::int64_t memory_mb) {
  for (const std::string& folder : own_cgroups(root))
    if (const auto limit = read_number(folder + "/memory.max"))
      memory_mb = std::min(memory_mb, *limit / kMiB);
  return memory_mb;
}

gs::Fabric fabric_under(const std::string& root) {
  gs::Fabric fabric;
  const std::string devices = root + "/sys/class/infiniband";
  for (const std::string& device : list_directory(devices)) {
    const std::string ports = devices + "/" + device + "/ports";
    for (const std::string& port : list_directory(ports)) {
      const std::string state = read_file(ports + "/" + port + "/state").value_or("");
      if (state.find("ACTIVE") == std::string::npos) continue;
      const int gbps = std::atoi(read_file(ports + "/" + port + "/rate").value_or("0").c_str());
      // Of unlike ports the slowest counts: nobody gets less than he was told.
      fabric.rdma_gbps = fabric.rdma_ports == 0 ? gbps : std::min(fabric.rdma_gbps, gbps);
      ++fabric.rdma_ports;
    }
  }
  const bool peer_memory = file_exists(root + "/sys/module/nvidia_peermem") ||
                           file_exists(root + "/sys/module/nv_peer_mem");
  fabric.gpudirect_rdma = fabric.rdma_ports > 0 && peer_memory;
  fabric.cufile = file_exists(root + "/sys/module/nvidia_fs");
  for (const char* folder : {"/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64"})
    fabric.cufile = fabric.cufile || file_exists(root + folder + "/libcufile.so.0");
  return fabric;
}

}  // namespace

Machine machine_under(const std::string& root_path) {
  const std::string root = root_path == "/" ? "" : root_path;
  Machine machine;
  machine.hostname = trim(read_file(root + "/proc/sys/kernel/hostname").value_or("localhost"));
  machine.cpu_milli = limited_cpu_milli(root, cpus_online(root) * 1000);
  machine.memory_mb = limited_memory_mb(root, meminfo_kib(root, "MemTotal") / 1024);
  machine.fabric = fabric_under(root);
  return machine;
}

int numa_node_of(const std::string& root_path, const std::string& pci_address) {
  const std::string root = root_path == "/" ? "" : root_path;
  const auto node = read_number(root + "/sys/bus/pci/devices/" + pci_address + "/numa_node");
  return static_cast<int>(node.value_or(-1));
}

double MachineLoad::cpu_percent() {
  std::istringstream fields(read_file("/proc/stat").value_or(""));
  std::string name;
  fields >> name;
  std::int64_t total = 0;
  std::int64_t idle = 0;
  for (int i = 0; i < 8; ++i) {
    std::int64_t ticks = 0;
    fields >> ticks;
    total += ticks;
    if (i == 3 || i == 4) idle += ticks;
  }
  const std::int64_t busy = total - idle;
  const double passed = static_cast<double>(total - total_);
  const double percent = passed > 0 ? 100.0 * static_cast<double>(busy - busy_) / passed : 0;
  busy_ = busy;
  total_ = total;
  return percent;
}

double MachineLoad::memory_percent() {
  const auto total = static_cast<double>(meminfo_kib("", "MemTotal"));
  if (total <= 0) return 0;
  return 100.0 * (1.0 - static_cast<double>(meminfo_kib("", "MemAvailable")) / total);
}

}  // namespace gs::agent
