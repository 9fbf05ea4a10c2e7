#include "wire/kube/node_model.hpp"

#include <gtest/gtest.h>

#include "wire/kube/scheduling_map.hpp"

namespace gs::kube {
namespace {

Node plain() {
  return *decode_node(R"({"metadata":{"name":"n1","labels":{"topology.scheduler/leaf":"leaf-1",
    "nvidia.com/gpu.product":"NVIDIA-H100-80GB-HBM3","nvidia.com/gpu.memory":"81559"}},
    "spec":{"taints":[{"key":"gpu","value":"yes","effect":"NoExecute"}]},
    "status":{"allocatable":{"cpu":"63500m","memory":"500Gi","ephemeral-storage":"900Ti",
    "pods":"110","nvidia.com/gpu":"4","nvidia.com/mig-1g.10gb":"8","nvidia.com/mig-3g.40gb":"1"},
    "conditions":[{"type":"Ready","status":"True"}]}})");
}

TEST(NodeModel, without_a_report_takes_resources_and_labels) {
  const NodeReading reading = to_node(plain(), nullptr, SchedulerConfig());
  const gs::Node& node = reading.node;
  EXPECT_TRUE(validate(node).ok());
  EXPECT_TRUE(reading.problems.empty());
  EXPECT_EQ(node.capacity.cpu_milli, 63500);
  EXPECT_EQ(node.capacity.named,
            (std::vector<NamedAmount>{{"ephemeral-storage", kMaxAmount}, {"pods", 110}}));
  // Four whole GPUs; eight small instances fill one GPU and begin the next, which takes the big
  // one.
  ASSERT_EQ(node.gpus.size(), 6U);
  EXPECT_EQ(node.gpus[3].model, "NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(node.gpus[3].memory_mib, 81559);
  EXPECT_FALSE(node.gpus[3].mig_enabled);
  EXPECT_EQ(node.gpus[4].mig.size(), 7U);
  EXPECT_EQ(node.gpus[5].mig, (std::vector<MigInstance>{{"1g.10gb", -1}, {"3g.40gb", -1}}));
  EXPECT_EQ(node.domain, (std::vector<std::string>{"-", "leaf-1"}));
  EXPECT_EQ(*find_label(node.labels, kNodeNameKey), "n1");
  EXPECT_TRUE(node.ready);
  EXPECT_EQ(node.taints.front().effect, TaintEffect::NoExecute);
}

TEST(NodeModel, takes_the_report_where_there_is_one) {
  const auto report = decode_node_status(R"({"metadata":{"name":"n1"},"status":{"devices":[
    {"id":2,"health":"Healthy","island":"a","bandwidthGBps":600,"peers":[{"id":0,
     "bandwidthGBps":300}]},
    {"id":0,"health":"Unhealthy","island":"a","memoryMiB":-5},{"id":64},
    {"id":-1}],"fabric":{"rdmaPorts":4,"rdmaGbps":400}}})");
  ASSERT_TRUE(report.ok()) << report.error().message;
  const NodeReading reading = to_node(plain(), &*report, SchedulerConfig());
  const gs::Node& node = reading.node;
  EXPECT_TRUE(validate(node).ok()) << validate(node).error().message;
  ASSERT_EQ(node.gpus.size(), 3U);
  EXPECT_EQ(node.gpus[0].health, Health::Unhealthy);
  EXPECT_EQ(node.gpus[1].health, Health::Unhealthy) << "an id that is left out";
  EXPECT_EQ(node.gpus[2].health, Health::Healthy);
  EXPECT_EQ(node.peer_bandwidth_gbps[0 * 3 + 2], 300);
  EXPECT_EQ(node.fabric.rdma_ports, 4);
  EXPECT_EQ(reading.problems.size(), 3U);
}

TEST(NodeModel, instances_are_those_that_are_there) {
  const auto report = decode_node_status(R"({"metadata":{"name":"n1"},"status":{"devices":[
    {"id":0,"model":"H100","memoryMiB":81920,"mig":{"enabled":true,"dynamic":true,"instances":
     [{"profile":"1g.10gb","start":0}]}}]}})");
  ASSERT_TRUE(report.ok()) << report.error().message;
  const gs::Node node = to_node(plain(), &*report, SchedulerConfig()).node;
  EXPECT_TRUE(node.gpus[0].mig_enabled);
  EXPECT_EQ(node.gpus[0].mig, (std::vector<MigInstance>{{"1g.10gb", 0}}));
  EXPECT_FALSE(node.gpus[0].mig_dynamic) << "nobody would cut what the engine plans to cut";
}

TEST(NodeModel, an_agent_that_sees_no_gpu_hides_none) {
  GpuNodeStatus report;
  report.fabric.rdma_ports = 2;
  const gs::Node without = to_node(plain(), nullptr, SchedulerConfig()).node;
  const gs::Node with = to_node(plain(), &report, SchedulerConfig()).node;
  ASSERT_FALSE(without.gpus.empty());
  EXPECT_EQ(with.gpus, without.gpus);
  EXPECT_EQ(with.fabric.rdma_ports, 2);
}

TEST(NodeModel, cordons_and_conditions) {
  Node node = plain();
  node.unschedulable = true;
  node.ready = false;
  const NodeReading reading = to_node(node, nullptr, SchedulerConfig());
  EXPECT_TRUE(reading.node.cordoned);
  EXPECT_FALSE(reading.node.ready);
}

std::string map_error(std::string_view text) {
  const auto map = parse_scheduling_map(text);
  return map ? "" : map.error().message;
}

TEST(SchedulingMap, the_documented_example_is_read) {
  const auto map =
      parse_scheduling_map("0=node1:0,1\n1=node2:2\n2=node3:0,1,2\n3=node4:3\n4=node4:3\n");
  ASSERT_TRUE(map.ok()) << map.error().message;
  ASSERT_EQ(map->entries.size(), 5U);
  EXPECT_EQ(*map->find(2), (MapEntry{2, "node3", {0, 1, 2}, 3}));
  EXPECT_EQ(map->find(5), nullptr);
  EXPECT_TRUE(parse_scheduling_map("# two\n\n 1 = b : 3 , 4 \r\n0=a:0").ok());
}

TEST(SchedulingMap, an_error_names_the_line_and_the_rule) {
  EXPECT_EQ(map_error(""), "gpu-scheduling-map has no line; they look like 0=node1:0,1");
  EXPECT_EQ(map_error("0=node1:0\nnode2:1"),
            "gpu-scheduling-map line 2 ('node2:1'): must look like <index>=<node>:<gpu ids>, for "
            "example 0=node1:0,1");
  EXPECT_EQ(map_error("x=node1:0"),
            "gpu-scheduling-map line 1 ('x=node1:0'): 'x' is no pod index; they are 0..99999");
  EXPECT_EQ(map_error("0=Node 1:0"),
            "gpu-scheduling-map line 1 ('0=Node 1:0'): 'Node 1' is no name of a node");
  EXPECT_EQ(map_error("0=node1:"),
            "gpu-scheduling-map line 1 ('0=node1:'): no GPU ids after the ':'");
  EXPECT_EQ(map_error("0=node1:0,a"),
            "gpu-scheduling-map line 1 ('0=node1:0,a'): 'a' is no GPU id; ids are 0..63, separated "
            "by commas");
  EXPECT_EQ(map_error("0=node1:1,1"),
            "gpu-scheduling-map line 1 ('0=node1:1,1'): GPU 1 is listed twice");
  EXPECT_EQ(map_error("0=node1:0\n1=a:1\n0=node2:0"),
            "gpu-scheduling-map line 3: index 0 is given in line 1 already");
}

TEST(SchedulingMap, nodes_and_ids_are_checked) {
  const auto map = parse_scheduling_map("0=n1:0\n1=n1:9");
  const gs::Node node = to_node(plain(), nullptr, SchedulerConfig()).node;
  EXPECT_TRUE(check_entry(map->entries[0], &node).ok());
  EXPECT_EQ(check_entry(map->entries[0], nullptr).error().message,
            "gpu-scheduling-map line 1: there is no node 'n1'");
  EXPECT_EQ(check_entry(map->entries[1], &node).error().message,
            "gpu-scheduling-map line 2: node 'n1' has no GPU 9; its GPUs are 0..5");
}

TEST(SchedulingMap, the_index_of_a_pod) {
  Meta pod;
  pod.name = "gpu-workload-3";
  EXPECT_EQ(pod_index(pod), 3);
  pod.name = "gpu-workload";
  EXPECT_EQ(pod_index(pod), std::nullopt);
  pod.name = "web-1-24567";
  pod.owners = {{"apps/v1", "ReplicaSet", "web-1", "u", true}};
  EXPECT_EQ(pod_index(pod), std::nullopt) << "random letters may all be digits";
  pod.owners[0].kind = "StatefulSet";
  pod.name = "web-1-2";
  EXPECT_EQ(pod_index(pod), 2);
  pod.labels = {{"apps.kubernetes.io/pod-index", "7"}};
  EXPECT_EQ(pod_index(pod), 7);
  pod.annotations = {{"batch.kubernetes.io/job-completion-index", "5"}};
  EXPECT_EQ(pod_index(pod), 5);
}

TEST(SchedulingMap, pods_share_what_two_lines_of_their_map_name) {
  const SchedulingMap map = parse_scheduling_map("0=n1:0,1\n1=n1:2\n3=n4:3\n4=n4:3\n").value();
  EXPECT_EQ(share_group("ml", "", map, *map.find(0)), "");
  EXPECT_EQ(share_group("ml", "", map, *map.find(1)), "");
  const std::string bare = share_group("ml", "", map, *map.find(3));
  EXPECT_NE(bare, "");
  EXPECT_EQ(share_group("ml", "", map, *map.find(4)), bare);
  EXPECT_EQ(share_group("ml", "u-1", map, *map.find(3)), "ml/u-1");
  const SchedulingMap other = parse_scheduling_map("3=n4:3\n4=n4:3\n").value();
  EXPECT_NE(share_group("ml", "", other, *other.find(3)), bare) << "another map, other pods";
}

}  // namespace
}  // namespace gs::kube
