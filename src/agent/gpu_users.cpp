#include "agent/gpu_users.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include <fmt/format.h>

#include "agent/files.hpp"

namespace gs::agent {
namespace {

constexpr std::string_view kVendor = "nvidia.com/";

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

// A UUID at the beginning; the systemd driver writes '_' for '-'. Empty: there is none.
std::string uuid_at(std::string_view text) {
  constexpr std::size_t kLength = 36;
  if (text.size() < kLength) return {};
  std::string uid;
  for (std::size_t i = 0; i < kLength; ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' && text[i] != '_' : !is_hex(text[i])) return {};
    uid += dash ? '-' : text[i];
  }
  return uid;
}

}  // namespace

std::string pod_uid_in(std::string_view cgroups) {
  for (std::size_t at = cgroups.find("pod"); at != std::string_view::npos;
       at = cgroups.find("pod", at + 1))
    if (std::string uid = uuid_at(cgroups.substr(at + 3)); !uid.empty()) return uid;
  return {};
}

std::optional<int> gpu_called(const Gpus& gpus, const PodDevices::Device& device) {
  const std::string id = device.id.substr(0, device.id.find("::"));
  if (id.empty()) return std::nullopt;
  for (const GpuEntry& entry : gpus.entries) {
    const bool is_instance =
        std::find(entry.mig_uuids.begin(), entry.mig_uuids.end(), id) != entry.mig_uuids.end();
    if (entry.gpu.uuid == id || is_instance) return entry.gpu.index;
  }
  int index = -1;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), index);
  const bool is_index = error == std::errc{} && end == id.data() + id.size() && index >= 0 &&
                        static_cast<std::size_t>(index) < gpus.entries.size();
  if (is_index && device.resource.starts_with(kVendor)) return index;
  return std::nullopt;
}

std::vector<ProcessPod> pods_of_processes(const std::vector<GpuSample>& samples,
                                          const std::string& root) {
  const std::string proc = (root == "/" ? "" : root) + "/proc/";
  std::vector<ProcessPod> found;
  for (const GpuSample& sample : samples)
    for (const GpuProcess& process : sample.processes) {
      const auto cgroups = read_file(fmt::format("{}{}/cgroup", proc, process.pid));
      if (std::string uid = pod_uid_in(cgroups.value_or("")); !uid.empty())
        found.push_back({sample.index, std::move(uid)});
    }
  return found;
}

GpuUsers gpu_users(const Gpus& gpus, const std::vector<kube::NodePod>& pods,
                   const std::vector<PodDevices>* by_kubelet,
                   const std::vector<ProcessPod>& by_processes) {
  std::vector<std::set<std::string>> users(gpus.entries.size());
  std::set<std::string> given;  // pods that the kubelet gave a GPU to
  const auto add = [&](int gpu, const std::string& uid) {
    if (gpu >= 0 && static_cast<std::size_t>(gpu) < users.size())
      users[static_cast<std::size_t>(gpu)].insert(uid);
  };
  for (const ProcessPod& process : by_processes) add(process.gpu, process.uid);
  // The kubelet knows names only. A pod that has ended is not among `pods`, though an old kubelet
  // may still tell of it.
  std::map<std::pair<std::string, std::string>, std::string> uids;
  for (const kube::NodePod& pod : pods) uids[{pod.ns, pod.name}] = pod.uid;
  if (by_kubelet != nullptr)
    for (const PodDevices& pod : *by_kubelet) {
      const auto uid = uids.find({pod.ns, pod.pod});
      if (uid == uids.end()) continue;
      for (const PodDevices::Device& device : pod.devices)
        if (const auto gpu = gpu_called(gpus, device)) {
          add(*gpu, uid->second);
          given.insert(uid->second);
        }
    }
  for (const kube::NodePod& pod : pods)
    if (!given.contains(pod.uid))
      for (const int gpu : pod.gpus) add(gpu, pod.uid);
  GpuUsers out;
  for (const auto& one : users) out.emplace_back(one.begin(), one.end());
  return out;
}

}  // namespace gs::agent
