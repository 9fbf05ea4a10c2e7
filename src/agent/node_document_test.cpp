#include "agent/node_document.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include "agent/fake_scheduler_test.hpp"
#include "agent/simulated_gpus.hpp"
#include "wire/kube/encode.hpp"
#include "wire/kube/node_status.hpp"

namespace gs::agent {
namespace {

NodeFacts facts_of(GpuSource& source) {
  NodeFacts facts;
  facts.node = "node-a";
  facts.gpus = source.list();
  facts.samples = source.sample();
  facts.fabric = {2, 400, true, true};
  facts.users = {{"u-1"}, {}};
  facts.source = source.describe();
  return facts;
}

TEST(NodeDocument, says_what_the_inventory_says) {
  const TemporaryDirectory folder;
  const std::string file = folder.path() + "/gpus.json";
  std::ofstream(file) << R"({"gpus": {"1": {"health": "unhealthy", "last_error": "XID 79",
    "temperature_c": 91, "island": "nvlink-1", "bandwidth_gbps": 64, "numa": 1, "rdma": "mlx5_3",
    "mig_enabled": true, "mig": [{"profile": "1g.10gb", "start": 2}]}}})";
  const auto source = std::move(simulated_gpus("2xH100-SXM5-80GB", file).value());
  NodeFacts facts = facts_of(*source);
  facts.gpus.peer_bandwidth_gbps = {0, 25, 25, 0};
  const kube::GpuNodeStatus status =
      kube::decode_node_status(kube::encode_node_status(node_document(facts))).value();
  EXPECT_EQ(status.node_name, "node-a");
  EXPECT_EQ(status.total, 2);
  EXPECT_EQ(status.fabric, facts.fabric);
  EXPECT_EQ(status.source, "2 simulated H100-SXM5-80GB (no such GPU is in this machine)");
  ASSERT_EQ(status.devices.size(), 2U);
  const kube::Device& good = status.devices[0];
  EXPECT_EQ(good.gpu, facts.gpus.entries[0].gpu);
  EXPECT_EQ(good.gpu.model, "H100-SXM5-80GB");
  EXPECT_EQ(good.gpu.memory_mib, 81'559);
  EXPECT_EQ(good.in_use_by, std::vector<std::string>{"u-1"});
  EXPECT_EQ(good.peers, (std::vector<kube::Device::Peer>{{1, 25}}));
  EXPECT_EQ(good.message, "");
  const kube::Device& broken = status.devices[1];
  EXPECT_EQ(broken.gpu.health, Health::Unhealthy);
  EXPECT_EQ(broken.message, "XID 79");
  EXPECT_EQ(broken.gpu.temperature_c, 91);
  EXPECT_EQ(broken.gpu.island, "nvlink-1");
  EXPECT_EQ(broken.gpu.bandwidth_gbps, 64);
  EXPECT_EQ(broken.gpu.numa, 1);
  EXPECT_EQ(broken.rdma, "mlx5_3");
  EXPECT_EQ(broken.gpu.mig, (std::vector<MigInstance>{{"1g.10gb", 2}}));
  EXPECT_EQ(broken.mig_uuids, facts.gpus.entries[1].mig_uuids);
  EXPECT_TRUE(broken.in_use_by.empty());
}

TEST(NodeDocument, a_gpu_that_nobody_tells_of_is_not_healthy) {
  const auto source = std::move(simulated_gpus("2xT4", "").value());
  NodeFacts facts = facts_of(*source);
  facts.samples.resize(1);
  const kube::GpuNodeStatus status = node_document(facts);
  EXPECT_EQ(status.devices[0].gpu.health, Health::Healthy);
  EXPECT_EQ(status.devices[1].gpu.health, Health::Unknown);
  EXPECT_NE(status.devices[1].message, "");
}

TEST(NodeDocument, a_machine_without_gpus_says_so) {
  const auto source = no_gpus("no driver");
  const kube::GpuNodeStatus status = node_document(facts_of(*source));
  EXPECT_EQ(status.total, 0);
  EXPECT_EQ(status.source, "no GPU: no driver");
}

}  // namespace
}  // namespace gs::agent
