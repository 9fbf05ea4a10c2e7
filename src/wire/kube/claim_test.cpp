#include "wire/kube/claim.hpp"

#include <gtest/gtest.h>

#include "wire/kube/node_status.hpp"
#include "wire/yaml_json.hpp"

namespace gs::kube {
namespace {

Result<GpuClaim> from_yaml(const std::string& yaml) {
  return decode_claim(yaml_to_json(yaml).value().dump());
}

std::string error_of(const std::string& spec) {
  const Result<GpuClaim> claim = decode_claim(R"({"metadata":{"name":"c"},"spec":)" + spec + "}");
  return claim ? "" : claim.error().message;
}

TEST(GpuClaim, the_documented_examples_are_read) {
  const auto single = from_yaml(
      "apiVersion: gpu.scheduling/v1\nkind: GpuClaim\nmetadata: {name: single-gpu}\n"
      "spec:\n  devices:\n    count: 1\n    exclusivity: Exclusive\n");
  ASSERT_TRUE(single.ok()) << single.error().message;
  EXPECT_EQ(single->gpu.count, 1);
  EXPECT_EQ(single->gpu.sharing, Sharing::Exclusive);
  EXPECT_EQ(single->gpu.topology, TopologyMode::Ignore);

  const auto training = from_yaml(
      "metadata: {name: training-gpus, namespace: ml-workloads}\n"
      "spec:\n  devices: {count: 4, policy: contiguous, exclusivity: Exclusive}\n"
      "  topology: {mode: Preferred, minBandwidthGBps: 600}\n"
      "  selector:\n    matchLabels: {gpu-type: a100, nvlink: \"true\"}\n  gangRef: "
      "training-job-123\n");
  ASSERT_TRUE(training.ok()) << training.error().message;
  EXPECT_EQ(training->gpu.policy, DevicePolicy::Contiguous);
  EXPECT_EQ(training->gpu.topology, TopologyMode::Preferred);
  EXPECT_EQ(training->gpu.min_bandwidth_gbps, 600);
  EXPECT_EQ(training->gang, "training-job-123");
  EXPECT_TRUE(gs::matches(training->nodes, Labels{{"gpu-type", "a100"}, {"nvlink", "true"}}));
  EXPECT_FALSE(gs::matches(training->nodes, Labels{{"gpu-type", "a100"}}));

  const auto pinned = from_yaml(
      "metadata: {name: specific-gpus}\nspec:\n  devices: {count: 2, policy: preferIds, "
      "preferIds: [2, 3], exclusivity: Exclusive}\n");
  ASSERT_TRUE(pinned.ok()) << pinned.error().message;
  EXPECT_EQ(pinned->gpu.prefer_ids, (std::vector<int>{2, 3}));
}

TEST(GpuClaim, parts_of_gpus_and_fabric) {
  const auto part = decode_claim(
      R"({"spec":{"devices":{"count":1,"exclusivity":"Shared"},"fabric":{"rdma":"Required",
       "cufile":"Preferred","minNetworkGbps":200}}})");
  ASSERT_TRUE(part.ok()) << part.error().message;
  EXPECT_EQ(part->gpu.milli, kDefaultShareMilli);
  EXPECT_EQ(part->rdma, Wish::Required);
  EXPECT_TRUE(part->wants_fabric());
  const auto mig = decode_claim(
      R"({"spec":{"devices":{"count":2,"exclusivity":"MIG","migProfile":"nvidia.com/mig-1g.10gb"}}})");
  ASSERT_TRUE(mig.ok()) << mig.error().message;
  EXPECT_EQ(mig->gpu.count, 0);
  EXPECT_EQ(mig->gpu.mig, (std::vector<MigAsk>{{"1g.10gb", 2}}));
}

TEST(GpuClaim, is_refused_with_field_rule_and_valid_values) {
  EXPECT_EQ(error_of("{}"), "spec.devices is required, with at least devices.count");
  EXPECT_EQ(error_of("null"), "spec must be an object, got null");
  EXPECT_EQ(error_of(R"({"devices":{}})"), "spec.devices.count is required");
  EXPECT_EQ(error_of(R"({"devices":{"count":0}})"), "spec.devices.count must be 1..64, got 0");
  EXPECT_EQ(error_of(R"({"devices":{"count":1,"policy":"packed"}})"),
            "spec.devices.policy must be one of contiguous, spread, preferIds; got 'packed'");
  EXPECT_EQ(error_of(R"({"devices":{"count":1,"exclusivity":"shared"}})"),
            "spec.devices.exclusivity must be one of Exclusive, Shared, MIG; got 'shared'");
  EXPECT_EQ(error_of(R"({"devices":{"count":1,"preferIds":[1]}})"),
            "spec.devices.preferIds needs policy preferIds");
  EXPECT_EQ(error_of(R"({"devices":{"count":1,"policy":"preferIds"}})"),
            "spec.devices.preferIds must list at least one GPU id with policy preferIds");
  EXPECT_EQ(error_of(R"({"devices":{"count":2,"policy":"preferIds","preferIds":[1,1]}})"),
            "spec.devices.preferIds lists 1 twice");
  EXPECT_EQ(error_of(R"({"devices":{"count":2,"policy":"preferIds","preferIds":[64]}})"),
            "spec.devices.preferIds must be 0..63, got 64");
  EXPECT_EQ(
      error_of(
          R"({"devices":{"count":1,"exclusivity":"MIG","migProfile":"1g.10gb","policy":"spread"}})"),
      "spec.devices.policy is about whole or shared GPUs; leave it out with exclusivity MIG");
  EXPECT_EQ(error_of(R"({"devices":{"count":1,"exclusivity":"MIG","migProfile":"1g.10gb"},
                         "topology":{"mode":"Required"}})"),
            "spec.topology.mode must not be Required with exclusivity MIG: nothing connects "
            "instances");
  EXPECT_EQ(error_of(R"({"devices":{"count":1,"exclusivity":"MIG"}})"),
            "spec.devices.migProfile is required with exclusivity MIG, for example 1g.10gb");
  EXPECT_EQ(error_of(R"({"devices":{"count":1,"shareMilli":100}})"),
            "spec.devices.shareMilli needs exclusivity Shared");
  EXPECT_EQ(error_of(R"({"devices":{"count":1},"topology":{"mode":"Must"}})"),
            "spec.topology.mode must be one of Required, Preferred, Ignore; got 'Must'");
  EXPECT_EQ(error_of(R"({"devices":{"count":1},"topologi":{}})"),
            "unknown field 'spec.topologi'; did you mean 'topology'?");
}

TEST(GpuClaim, status_is_read_back) {
  const auto claim = decode_claim(R"({"spec":{"devices":{"count":1}},"status":{"phase":"Bound",
    "nodeName":"node-a","gpuIds":[0,1],"allocated":"node-a:0,1","message":"m",
    "allocations":[{"pod":"p","nodeName":"node-a","gpuIds":[0,1]}]}})");
  ASSERT_TRUE(claim.ok()) << claim.error().message;
  EXPECT_EQ(claim->status.phase, ClaimPhase::Bound);
  EXPECT_EQ(claim->status.allocations.front().gpus, (std::vector<int>{0, 1}));
}

TEST(GpuClaim, allocations_are_written_and_read) {
  EXPECT_EQ(allocated_text("node-b", {0, 1, 2}), "node-b:0,1,2");
  EXPECT_EQ(parse_allocated("node-b:0,1,2").value(), (Allocated{"node-b", {0, 1, 2}}));
  for (const char* bad : {"", "node", ":1", "n:1,", "n:,1", "n:x", "n:-1", "n:64", "n:1 2"})
    EXPECT_FALSE(parse_allocated(bad).ok()) << bad;
}

TEST(GpuNodeStatus, is_read_with_our_fields_and_without) {
  const auto node = decode_node_status(R"({"metadata":{"name":"node-a"},"status":{"total":2,
    "devices":[{"id":0,"health":"Healthy","bandwidthGBps":600,"island":"nvlink-group-0",
     "inUseBy":["pod-abc-123"]},
     {"id":1,"health":"Odd","uuid":"GPU-1","model":"H100","memoryMiB":81559,"temperatureC":60,
      "numaNode":1,"peers":[{"id":0,"bandwidthGBps":300}],"mig":{"enabled":true,"instances":
      [{"profile":"1g.10gb","start":2}]},"rdma":"mlx5_0","new":{}}],
    "fabric":{"rdmaPorts":2,"rdmaGbps":400,"gpudirectRdma":true,"cufile":true}}})");
  ASSERT_TRUE(node.ok()) << node.error().message;
  EXPECT_EQ(node->node_name, "node-a");
  ASSERT_EQ(node->devices.size(), 2U);
  EXPECT_EQ(node->devices[0].in_use_by, (std::vector<std::string>{"pod-abc-123"}));
  EXPECT_EQ(node->devices[1].gpu.health, Health::Unknown);
  EXPECT_EQ(node->devices[1].gpu.mig, (std::vector<MigInstance>{{"1g.10gb", 2}}));
  EXPECT_EQ(node->devices[1].rdma, "mlx5_0");
  EXPECT_TRUE(node->fabric.gpudirect_rdma);
}

}  // namespace
}  // namespace gs::kube
