#include "agent/inventory.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "agent/cgroup.hpp"
#include "agent/fake_scheduler_test.hpp"
#include "agent/files.hpp"
#include "agent/nvml_gpus.hpp"
#include "agent/simulated_gpus.hpp"

namespace gs::agent {
namespace {

class FakeMachine : public testing::Test {
 protected:
  void put(const std::string& path, const std::string& content) {
    const std::string whole = root_.path() + path;
    std::filesystem::create_directories(std::filesystem::path(whole).parent_path());
    std::ofstream(whole) << content;
  }
  void SetUp() override {
    put("/proc/sys/kernel/hostname", "gpu-17\n");
    put("/proc/meminfo", "MemTotal:       1056563200 kB\nMemFree: 1 kB\n");
    put("/sys/devices/system/cpu/online", "0-95,128-223\n");
  }
  TemporaryDirectory root_;
};

TEST_F(FakeMachine, without_gpus_or_fabric_has_cpus_and_memory) {
  const Machine machine = machine_under(root_.path());
  EXPECT_EQ(machine.hostname, "gpu-17");
  EXPECT_EQ(machine.cpu_milli, 192'000);
  EXPECT_EQ(machine.memory_mb, 1'031'800);
  EXPECT_EQ(machine.fabric, gs::Fabric{});
  const auto none = no_gpus("no driver");
  EXPECT_NE(inventory_text(machine, *none).find("no GPU: no driver"), std::string::npos);
}

TEST_F(FakeMachine, a_container_gets_no_more_than_its_limits) {
  put("/proc/self/cgroup", "0::/kube/pod\n");
  put("/sys/fs/cgroup/kube/pod/cpu.max", "max 100000\n");
  put("/sys/fs/cgroup/kube/cpu.max", "350000 100000\n");
  put("/sys/fs/cgroup/kube/pod/memory.max", "2147483648\n");
  const Machine machine = machine_under(root_.path());
  EXPECT_EQ(machine.cpu_milli, 3500);
  EXPECT_EQ(machine.memory_mb, 2048);
}

TEST_F(FakeMachine, gpus_have_their_nearest_rdma_adapter) {
  const auto device = [&](const std::string& place, const std::string& link) {
    put("/sys/devices/" + place + "/numa_node", place.starts_with("pci0000:a0") ? "1\n" : "0\n");
    const std::filesystem::path at = root_.path() + link;
    std::filesystem::create_directories(at.parent_path());
    std::filesystem::create_directory_symlink(root_.path() + "/sys/devices/" + place, at);
  };
  const auto adapter = [&](const std::string& name, const std::string& place, bool active) {
    put("/sys/class/infiniband/" + name + "/ports/1/state", active ? "4: ACTIVE\n" : "1: DOWN\n");
    device(place, "/sys/class/infiniband/" + name + "/device");
  };
  Gpus gpus;
  const auto gpu = [&](const std::string& bus, const std::string& address, int numa) {
    device(bus + "/" + address, "/sys/bus/pci/devices/" + address);
    GpuEntry& entry = gpus.entries.emplace_back();
    entry.pci_address = address;
    entry.gpu.numa = numa;
  };
  adapter("mlx5_0", "pci0000:10/0000:10:00.0/0000:11:00.0", true);
  adapter("mlx5_1", "pci0000:10/0000:10:00.0/0000:12:00.0", true);
  adapter("mlx5_2", "pci0000:80/0000:80:00.0/0000:81:00.0", true);
  adapter("mlx5_3", "pci0000:a0/0000:a0:00.0/0000:a1:00.0", false);
  gpu("pci0000:10/0000:10:00.0", "0000:13:00.0", 0);
  gpu("pci0000:10/0000:10:00.0", "0000:14:00.0", 0);
  gpu("pci0000:80/0000:80:00.0", "0000:82:00.0", -1);
  gpu("pci0000:90", "0000:90:00.0", 0);
  gpu("pci0000:a0", "0000:a2:00.0", 1);
  gpus.entries.emplace_back().rdma = "as it was told";
  add_nearest_rdma(root_.path(), gpus);
  std::vector<std::string> names;
  for (const GpuEntry& entry : gpus.entries) names.push_back(entry.rdma);
  EXPECT_EQ(names, (std::vector<std::string>{"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_0", "",
                                             "as it was told"}));
}

TEST_F(FakeMachine, counts_active_rdma_ports_and_the_slowest_speed) {
  put("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  put("/sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
  put("/sys/class/infiniband/mlx5_1/ports/1/state", "4: ACTIVE\n");
  put("/sys/class/infiniband/mlx5_1/ports/1/rate", "200 Gb/sec (4X HDR)\n");
  put("/sys/class/infiniband/mlx5_2/ports/1/state", "1: DOWN\n");
  put("/sys/class/infiniband/mlx5_2/ports/1/rate", "10 Gb/sec\n");
  EXPECT_FALSE(machine_under(root_.path()).fabric.gpudirect_rdma);
  put("/sys/module/nvidia_peermem/refcnt", "0\n");
  put("/sys/module/nvidia_fs/refcnt", "0\n");
  put("/sys/bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
  const gs::Fabric fabric = machine_under(root_.path()).fabric;
  EXPECT_EQ(fabric.rdma_ports, 2);
  EXPECT_EQ(fabric.rdma_gbps, 200);
  EXPECT_TRUE(fabric.gpudirect_rdma);
  EXPECT_TRUE(fabric.cufile);
  EXPECT_EQ(numa_node_of(root_.path(), "0000:3b:00.0"), 1);
  EXPECT_EQ(numa_node_of(root_.path(), "0000:af:00.0"), -1);
}

TEST(Nvml, names_models_without_the_brand) {
  EXPECT_EQ(canonical_gpu_model("NVIDIA H200"), "H200");
  EXPECT_EQ(canonical_gpu_model("NVIDIA A100-SXM4-80GB"), "A100-SXM4-80GB");
  EXPECT_EQ(canonical_gpu_model("Tesla V100-SXM2-32GB"), "V100-SXM2-32GB");
  EXPECT_EQ(canonical_gpu_model("NVIDIA GeForce RTX 4090"), "RTX-4090");
}

TEST(Nvml, errors_of_programs_do_not_break_a_gpu) {
  for (const unsigned xid : {13U, 31U, 43U, 45U, 68U, 109U, 63U, 94U})
    EXPECT_FALSE(xid_breaks_gpu(xid)) << xid;
  for (const unsigned xid : {48U, 64U, 74U, 79U, 95U, 119U, 120U})
    EXPECT_TRUE(xid_breaks_gpu(xid)) << xid;
}

TEST(Nvml, all_gpus_behind_switches_are_one_island) {
  const std::vector<LinkFacts> gpus(8, LinkFacts{18, std::vector<int>(8, 0), nvlink_gbps(9, 0)});
  const std::vector<int> matrix = nvlink_matrix(gpus);
  EXPECT_EQ(matrix[0 * 8 + 7], 900);
  EXPECT_EQ(matrix[3 * 8 + 3], 0);
  EXPECT_EQ(islands(matrix, 8), std::vector<std::string>(8, "nvlink-0"));
}

TEST(Nvml, direct_links_make_islands_of_pairs) {
  std::vector<LinkFacts> gpus(5, LinkFacts{0, std::vector<int>(5, 0), nvlink_gbps(8, 0)});
  gpus[0].peer_links[2] = gpus[2].peer_links[0] = 4;
  gpus[1].peer_links[3] = gpus[3].peer_links[1] = 4;
  const std::vector<int> matrix = nvlink_matrix(gpus);
  EXPECT_EQ(matrix[0 * 5 + 2], 200);
  EXPECT_EQ(matrix[0 * 5 + 1], 0);
  const std::vector<std::string> want{"nvlink-0", "nvlink-1", "nvlink-0", "nvlink-1", ""};
  EXPECT_EQ(islands(matrix, 5), want);
}

TEST(Simulated, takes_a_count_and_a_model) {
  auto source = simulated_gpus("2xA100-SXM4-40GB", "");
  ASSERT_TRUE(source.ok());
  const Gpus gpus = source.value()->list();
  ASSERT_EQ(gpus.entries.size(), 2U);
  EXPECT_EQ(gpus.entries[1].gpu.index, 1);
  EXPECT_EQ(gpus.entries[1].gpu.memory_mib, 40'960);
  EXPECT_NE(gpus.entries[0].gpu.uuid, gpus.entries[1].gpu.uuid);
  auto unknown = simulated_gpus("3xZ900-SXM9-256GB", "");
  EXPECT_EQ(unknown.value()->list().entries[0].gpu.memory_mib, 256 * 1024);
  EXPECT_EQ(simulated_gpus("T4", "").value()->list().entries.size(), 1U);
  EXPECT_FALSE(simulated_gpus("99xT4", "").ok());
  EXPECT_FALSE(simulated_gpus("8x", "").ok());
}

TEST(Simulated, a_file_changes_single_gpus_while_they_run) {
  const TemporaryDirectory folder;
  const std::string file = folder.path() + "/gpus.json";
  auto source = simulated_gpus("2xL4", file);
  EXPECT_EQ(source.value()->sample()[1].health, Health::Healthy);
  std::ofstream(file) << R"({"gpus": {"1": {"health": "unhealthy", "mig_enabled": true,
                             "mig": [{"profile": "1g.10gb", "start": 2}]}}})";
  EXPECT_EQ(source.value()->sample()[1].health, Health::Unhealthy);
  EXPECT_EQ(source.value()->list().entries[1].gpu.mig.size(), 1U);
  std::ofstream(file) << R"({"gpus": {"1": {"hea)";  // half written: what was said still holds
  EXPECT_EQ(source.value()->sample()[1].health, Health::Unhealthy);
  std::ofstream(file) << R"({"gpus": {"1": {"health": 3, "utilization": "much"}, "0": 7}})";
  EXPECT_EQ(source.value()->sample().size(), 2U);
}

TEST(Cgroups, finds_the_hierarchies_of_hybrid_and_modern_machines) {
  const CgroupMounts modern =
      parse_cgroup_mounts("cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nsdelegate 0 0\n");
  EXPECT_EQ(modern.unified, "/sys/fs/cgroup");
  EXPECT_TRUE(modern.memory_v1.empty() && modern.cpu_v1.empty());
  const CgroupMounts hybrid = parse_cgroup_mounts(
      "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
      "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
      "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n"
      "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n");
  EXPECT_EQ(hybrid.unified, "/sys/fs/cgroup/unified");
  EXPECT_EQ(hybrid.cpu_v1, "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(hybrid.memory_v1, "/sys/fs/cgroup/memory");
}

}  // namespace
}  // namespace gs::agent
