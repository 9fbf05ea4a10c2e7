#include "agent/gpu_users.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "agent/fake_scheduler_test.hpp"

namespace gs::agent {
namespace {

constexpr const char* kUid = "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0";

Gpus three_gpus() {
  Gpus gpus;
  for (int index = 0; index < 3; ++index) {
    GpuEntry entry;
    entry.gpu.index = index;
    entry.gpu.uuid = "GPU-" + std::to_string(index);
    gpus.entries.push_back(entry);
  }
  gpus.entries[2].mig_uuids = {"MIG-a", "MIG-b"};
  return gpus;
}

PodDevices given(const std::string& pod, std::vector<std::string> ids,
                 const std::string& resource = "nvidia.com/gpu") {
  PodDevices out{"ml", pod, {}};
  for (std::string& id : ids) out.devices.push_back({resource, std::move(id)});
  return out;
}

TEST(GpuUsers, devices_are_known_by_uuid_instance_share_and_index) {
  const Gpus gpus = three_gpus();
  EXPECT_EQ(gpu_called(gpus, {"nvidia.com/gpu", "GPU-1"}), 1);
  EXPECT_EQ(gpu_called(gpus, {"nvidia.com/gpu.shared", "GPU-1::7"}), 1);
  EXPECT_EQ(gpu_called(gpus, {"nvidia.com/mig-1g.10gb", "MIG-b"}), 2);
  EXPECT_EQ(gpu_called(gpus, {"nvidia.com/gpu", "2"}), 2);
  EXPECT_EQ(gpu_called(gpus, {"nvidia.com/gpu", "3"}), std::nullopt);
  EXPECT_EQ(gpu_called(gpus, {"nvidia.com/gpu", "-1"}), std::nullopt);
  EXPECT_EQ(gpu_called(gpus, {"nvidia.com/gpu", ""}), std::nullopt);
  EXPECT_EQ(gpu_called(gpus, {"nvidia.com/gpu", "::1"}), std::nullopt);
  EXPECT_EQ(gpu_called(gpus, {"rdma/hca", "2"}), std::nullopt) << "not a GPU's index";
}

TEST(GpuUsers, what_the_kubelet_gave_counts_more_than_what_the_scheduler_wrote) {
  const std::vector<kube::NodePod> pods = {
      {"ml", "a", "u-a", {0}}, {"ml", "b", "u-b", {1, 2}}, {"ml", "c", "u-c", {}}};
  const std::vector<PodDevices> kubelet = {given("a", {"GPU-2"}), given("ended", {"GPU-1"}),
                                           given("c", {"eth0"}, "net/port")};
  EXPECT_EQ(gpu_users(three_gpus(), pods, &kubelet, {}), (GpuUsers{{}, {"u-b"}, {"u-a", "u-b"}}));
}

TEST(GpuUsers, without_a_kubelet_the_scheduler_is_believed) {
  const std::vector<kube::NodePod> pods = {{"ml", "a", "u-a", {0, 9}}, {"ml", "b", "u-b", {0}}};
  EXPECT_EQ(gpu_users(three_gpus(), pods, nullptr, {}), (GpuUsers{{"u-a", "u-b"}, {}, {}}));
}

TEST(GpuUsers, who_computes_on_a_gpu_uses_it) {
  const std::vector<kube::NodePod> pods = {{"ml", "a", "u-a", {0, 1}}};
  const std::vector<ProcessPod> processes = {{0, "u-a"}, {2, "u-x"}, {7, "u-y"}};
  EXPECT_EQ(gpu_users(three_gpus(), pods, nullptr, processes),
            (GpuUsers{{"u-a"}, {"u-a"}, {"u-x"}}));
}

TEST(GpuUsers, a_cgroup_names_its_pod) {
  const std::string uid = kUid;
  EXPECT_EQ(pod_uid_in("0::/kubepods/burstable/pod" + uid + "/4f2c\n"), uid);
  EXPECT_EQ(pod_uid_in("0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-"
                       "pod0b1c2d3e_4f50_6172_8394_a5b6c7d8e9f0.slice/cri-containerd-1.scope"),
            uid);
  EXPECT_EQ(pod_uid_in("12:pids:/system.slice\n11:memory:/kubepods/pod" + uid + "/x"), uid);
  EXPECT_EQ(pod_uid_in("0::/../../pod" + uid), uid) << "seen from another cgroup namespace";
  EXPECT_EQ(pod_uid_in("0::/machine.slice/libpod-0b1c2d3e4f50.scope"), "");
  EXPECT_EQ(pod_uid_in("0::/kubepods/pod0b1c2d3e-4f50-6172-8394"), "");
  EXPECT_EQ(pod_uid_in(""), "");
}

TEST(GpuUsers, processes_are_looked_up_in_proc) {
  const TemporaryDirectory root;
  std::filesystem::create_directories(root.path() + "/proc/4711");
  std::ofstream(root.path() + "/proc/4711/cgroup") << "0::/kubepods/pod" << kUid << "/c1\n";
  GpuSample sample;
  sample.index = 1;
  sample.processes = {{4711, 100}, {4712, 100}};  // the second one has ended meanwhile
  const auto found = pods_of_processes({sample}, root.path());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].gpu, 1);
  EXPECT_EQ(found[0].uid, kUid);
}

}  // namespace
}  // namespace gs::agent
