// What a kubelet, a device plugin and the kernel tell the agent: any bytes become users of GPUs
// that exist, each once, or nobody.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "agent/gpu_users.hpp"
#include "base/check.hpp"

namespace {

gs::agent::Gpus some_gpus() {
  gs::agent::Gpus gpus;
  for (int index = 0; index < 3; ++index) {
    gs::agent::GpuEntry entry;
    entry.gpu.index = index;
    entry.gpu.uuid = "GPU-" + std::to_string(index);
    entry.mig_uuids = {"MIG-" + std::to_string(index)};
    gpus.entries.push_back(entry);
  }
  return gpus;
}

void check_users(const std::vector<gs::agent::PodDevices>& told) {
  static const gs::agent::Gpus gpus = some_gpus();
  std::vector<gs::kube::NodePod> pods = {{"default", "a", "u-a", {0}}};
  for (const gs::agent::PodDevices& pod : told) {
    CHECK(!pod.devices.empty());
    pods.push_back({pod.ns, pod.pod, pod.ns + "/" + pod.pod, {1, 99}});
  }
  const auto users = gs::agent::gpu_users(gpus, pods, &told, {});
  CHECK(users.size() == gpus.entries.size());
  for (const auto& of_one : users) {
    CHECK(std::is_sorted(of_one.begin(), of_one.end()));
    CHECK(std::adjacent_find(of_one.begin(), of_one.end()) == of_one.end());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  v1::ListPodResourcesResponse response;
  if (response.ParseFromArray(data, static_cast<int>(size)))
    check_users(gs::agent::pod_devices(response));
  const std::string uid =
      gs::agent::pod_uid_in({reinterpret_cast<const char*>(data), size});  // of /proc/*/cgroup
  CHECK(uid.empty() || uid.size() == 36);
  return 0;
}
