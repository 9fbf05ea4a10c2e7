#include "wire/kube/scheduler_config.hpp"

#include <gtest/gtest.h>

#include "wire/kube/tenant.hpp"

namespace gs::kube {
namespace {

constexpr const char* kDocumented = R"(apiVersion: topology.scheduler/v1alpha1
kind: SchedulerConfig
metadata:
  name: topology-scheduler-config
spec:
  scoringWeights:
    resourceAvailability: 0.5
    topologyAlignment: 0.3
    domainUtilization: 0.2
    historicalPerformance: 0
  topologyConstraints:
    maxNodesPerLeaf: 4
    maxGPUsPerLeaf: 32
)";

std::string error_of(const std::string& spec) {
  const auto config = scheduler_config_of_yaml(
      "apiVersion: topology.scheduler/v1alpha1\nkind: SchedulerConfig\nspec: " + spec);
  return config ? "" : config.error().message;
}

TEST(SchedulerConfig, the_documented_examples_are_read) {
  const auto config = scheduler_config_of_yaml(kDocumented);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->engine.weights.resource_availability, 0.5);
  EXPECT_EQ(config->engine.max_nodes_per_leaf, 4);
  EXPECT_EQ(config->engine.max_gpus_per_leaf, 32);
  EXPECT_EQ(config->scheduler_names,
            (std::vector<std::string>{"gpu-scheduler", "topology-aware-scheduler"}));

  const Json map = {{"kind", "ConfigMap"}, {"data", {{"config.yaml", kDocumented}}}};
  const auto of_map = scheduler_config_of_map(map.dump());
  ASSERT_TRUE(of_map.ok()) << of_map.error().message;
  EXPECT_EQ(of_map->engine.max_gpus_per_leaf, 32);

  const auto resource = decode_scheduler_config(
      R"({"apiVersion":"topology.scheduler/v1alpha1","kind":"TopologySchedulerConfig","metadata":
      {"name":"x","managedFields":[]},"spec":{"scoringWeights":{"domainUtilization":1}}})");
  ASSERT_TRUE(resource.ok()) << resource.error().message;
  EXPECT_EQ(resource->engine.weights.domain_utilization, 1.0);
}

TEST(SchedulerConfig, says_how_devices_are_named) {
  const std::string head = "apiVersion: topology.scheduler/v1alpha1\nkind: SchedulerConfig\n";
  EXPECT_EQ(scheduler_config_of_yaml(head + "spec: {}\n")->device_naming, DeviceNaming::Index);
  EXPECT_EQ(scheduler_config_of_yaml(head + "spec: {deviceNaming: uuid}\n")->device_naming,
            DeviceNaming::Uuid);
}

TEST(SchedulerConfig, of_a_stock_scheduler_names_the_profiles) {
  const std::string head =
      "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
  const auto config = scheduler_config_of_yaml(
      head +
      "profiles:\n  - schedulerName: gpu-scheduler\n    plugins:\n      score:\n        enabled:\n"
      "          - name: GpuClaimPlugin\n  - schedulerName: other\n");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->scheduler_names, (std::vector<std::string>{"gpu-scheduler", "other"}));
  const auto empty = scheduler_config_of_yaml(head + "profiles: []\n");
  ASSERT_FALSE(empty.ok());
  EXPECT_EQ(empty.error().message, "profiles must name at least one scheduler, in schedulerName");
}

TEST(SchedulerConfig, is_refused_with_field_and_rule) {
  EXPECT_EQ(error_of("{scoringWeights: {resourceAvailability: 2}}"),
            "spec.scoringWeights.resourceAvailability must be 0..1");
  EXPECT_EQ(error_of("{scoringWeights: {topologyAlignement: 1}}"),
            "unknown field 'spec.scoringWeights.topologyAlignement'; did you mean "
            "'topologyAlignment'?");
  EXPECT_EQ(error_of("{placementStrategy: tight}"),
            "spec.placementStrategy must be one of balanced, consolidated, distributed; got "
            "'tight'");
  EXPECT_EQ(error_of("{deviceNaming: name}"),
            "spec.deviceNaming must be one of index, uuid; got 'name'");
  EXPECT_EQ(error_of("{topology: {domains: [{name: leaf-1, parent: spine-1}]}}"),
            "spec.topology.domains 'leaf-1' has the parent 'spine-1', which must be listed before "
            "it");
  EXPECT_EQ(scheduler_config_of_yaml("kind: Pod\napiVersion: v1\n").error().message,
            "apiVersion must be topology.scheduler/v1alpha1, got 'v1'");
  EXPECT_NE(scheduler_config_of_yaml("a: [1\nb").error().message.find("line"), std::string::npos);
  EXPECT_EQ(scheduler_config_of_map(R"({"data":{"a":"","b":""}})").error().message,
            "the ConfigMap must have an entry config.yaml with a SchedulerConfig");
}

std::string lease_of(const std::string& spec) {
  const auto config = scheduler_config_of_yaml(
      "apiVersion: topology.scheduler/v1alpha1\nkind: SchedulerConfig\nspec: " + spec);
  if (!config) return config.error().message;
  const auto lease = leader_lease_of(*config);
  return lease ? *lease : lease.error().message;
}

TEST(LeaderLease, is_called_like_the_first_name_unless_another_is_given) {
  EXPECT_EQ(lease_of("{}"), "gpu-scheduler");
  EXPECT_EQ(lease_of("{schedulerNames: [team-b, team-c]}"), "team-b");
  EXPECT_EQ(lease_of("{schedulerNames: [team-b], leaderElectLease: both.teams}"), "both.teams");
  EXPECT_EQ(lease_of("{schedulerNames: [Team_B]}"),
            "a Lease can't be called like the scheduler, 'Team_B': name one with "
            "--leader-elect-lease");
  EXPECT_EQ(lease_of("{schedulerNames: [Team_B], leaderElectLease: team-b}"), "team-b");
}

TEST(LeaderLease, is_one_for_all_who_may_serve_the_same_pods_or_give_out_gpus_without_leases) {
  EXPECT_EQ(lease_of("{schedulerNames: [topology-aware-scheduler]}"), "gpu-scheduler");
  EXPECT_EQ(lease_of("{schedulerNames: [team-b, gpu-scheduler]}"), "gpu-scheduler");
  EXPECT_EQ(lease_of("{schedulerNames: [team-b], leases: false}"), "gpu-scheduler");
}

TEST(LeaderLease, is_never_called_like_that_of_a_gpu) {
  EXPECT_EQ(lease_of("{schedulerNames: [gpu-scheduler-2]}"), "gpu-scheduler-2.leader");
  EXPECT_EQ(lease_of("{schedulerNames: [gpu-2]}"), "gpu-2");
  EXPECT_EQ(lease_of("{schedulerNames: [gpu-scheduler-v2]}"), "gpu-scheduler-v2");
  EXPECT_EQ(lease_of("{schedulerNames: [team-2]}"), "team-2");
  EXPECT_EQ(error_of("{leaderElectLease: gpu-node-a-0}"),
            "spec.leaderElectLease must not look like the lease of a GPU, gpu-NODE-ID, got "
            "'gpu-node-a-0'");
}

TEST(LeaderLease, is_the_name_of_an_object) {
  for (const char* name : {"a", "a-b.c", "0", "a--b"})
    EXPECT_TRUE(check_leader_lease(name).ok()) << name;
  const std::string longest(253, 'a');
  EXPECT_TRUE(check_leader_lease(longest).ok());
  for (const std::string& name :
       {std::string(), longest + "a", std::string("A"), std::string("-a"), std::string("a-"),
        std::string("a..b"), std::string("a.-b"), std::string("a-.b"), std::string("a/b")})
    EXPECT_FALSE(check_leader_lease(name).ok()) << name;
  EXPECT_EQ(error_of("{leaderElectLease: ''}"),
            "spec.leaderElectLease must be lower-case letters, digits, '-' and '.', got ''");
}

TEST(LeaderLease, of_a_stock_scheduler_is_its_resource) {
  const std::string head =
      "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
      "profiles: [{schedulerName: mine}]\nleaderElection: ";
  const auto config = scheduler_config_of_yaml(
      head + "{leaderElect: true, resourceName: ours, resourceNamespace: kube-system}\n");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(*leader_lease_of(*config), "ours");
  EXPECT_EQ(config->lease_namespace, "gpu-scheduler");
  EXPECT_EQ(*leader_lease_of(*scheduler_config_of_yaml(head + "{}\n")), "mine");
  EXPECT_EQ(scheduler_config_of_yaml(head + "{resourceName: Ours}\n").error().message,
            "leaderElection.resourceName must be lower-case letters, digits, '-' and '.', got "
            "'Ours'");
}

TEST(NetworkPath, comes_from_labels) {
  const SchedulerConfig config;
  Meta node;
  node.name = "n1";
  EXPECT_TRUE(network_path(node, config).empty());
  node.labels = {{"topology.scheduler/leaf", "leaf-1"}, {"topology.scheduler/spine", "spine-1"}};
  EXPECT_EQ(network_path(node, config), (std::vector<std::string>{"spine-1", "leaf-1"}));
  node.labels = {{"topology.kubernetes.io/zone", "a"}};
  EXPECT_EQ(network_path(node, config), (std::vector<std::string>{"a", "n1"}));
  node.labels = {{"network.topology.nvidia.com/leaf", "leaf-1"}};
  EXPECT_EQ(network_path(node, config), (std::vector<std::string>{"-", "leaf-1"}));
}

TEST(NetworkPath, of_domains_that_are_written_down_counts_more) {
  const auto config = scheduler_config_of_yaml(R"(apiVersion: topology.scheduler/v1alpha1
kind: SchedulerConfig
spec:
  topology:
    domains:
    - {name: spine-1}
    - {name: leaf-1, parent: spine-1, nodes: [n1, n2]}
    - {name: leaf-9, nodes: [n3]}
)");
  ASSERT_TRUE(config.ok()) << config.error().message;
  Meta node;
  node.labels = {{"topology.scheduler/leaf", "other"}};
  node.name = "n1";
  EXPECT_EQ(network_path(node, *config), (std::vector<std::string>{"spine-1", "leaf-1"}));
  node.name = "n3";
  EXPECT_EQ(network_path(node, *config), (std::vector<std::string>{"-", "leaf-9"}));
}

TEST(GpuTenant, is_read_strictly) {
  const auto tenant = decode_tenant(R"({"metadata":{"name":"ml"},"spec":{"maxGPUs":16,
    "guaranteedGPUs":8,"maxCPU":"64","maxMemory":"1Ti","weight":3,"tier":"high",
    "namespaces":["ml-a"],"namespaceSelector":{"matchLabels":{"team":"ml"}},
    "maxGPUsByModel":{"H100":4},"allowPreemption":false}})");
  ASSERT_TRUE(tenant.ok()) << tenant.error().message;
  EXPECT_EQ(tenant->tenant.id, "ml");
  EXPECT_EQ(tenant->tenant.limit.gpu_milli, 16000);
  EXPECT_EQ(tenant->tenant.guaranteed.gpu_milli, 8000);
  EXPECT_EQ(tenant->tenant.limit.cpu_milli, 64000);
  EXPECT_EQ(tenant->tenant.limit.memory_bytes, std::int64_t{1} << 40);
  EXPECT_EQ(tenant->tenant.tier, Tier::High);
  EXPECT_FALSE(tenant->tenant.allow_preemption);
  const auto error = [](const char* spec) {
    return decode_tenant(R"({"metadata":{"name":"t"},"spec":)" + std::string(spec) + "}")
        .error()
        .message;
  };
  EXPECT_EQ(error(R"({"maxGPUs":-1})"), "spec.maxGPUs must be 0..1000000000, got -1");
  EXPECT_EQ(error(R"({"maxGpus":1})"), "unknown field 'spec.maxGpus'; did you mean 'maxGPUs'?");
  EXPECT_EQ(error(R"({"tier":"top"})"),
            "spec.tier must be one of low, medium, high, critical; got 'top'");
  EXPECT_EQ(error(R"({"parent":"t"})"), "tenant t: must not be its own parent");
}

TEST(GpuTenant, of_a_namespace) {
  std::vector<GpuTenant> tenants(2);
  tenants[0].meta.name = "by-label";
  tenants[0].namespace_terms = {{"team", LabelOp::In, {"ml"}}};
  tenants[1].meta.name = "by-name";
  tenants[1].namespaces = {"ns-1"};
  Meta ns;
  ns.name = "ns-1";
  ns.labels = {{"team", "ml"}};
  EXPECT_EQ(tenant_of(ns, tenants), "by-name");
  ns.name = "ns-2";
  EXPECT_EQ(tenant_of(ns, tenants), "by-label");
  ns.labels = {{"gpu.scheduling/tenant", "given"}};
  EXPECT_EQ(tenant_of(ns, tenants), "given");
  ns.labels = {};
  EXPECT_EQ(tenant_of(ns, tenants), kUnassignedTenant);
  ns.name = "by-label";
  EXPECT_EQ(tenant_of(ns, tenants), "by-label") << "it has the tenant's name";
}

}  // namespace
}  // namespace gs::kube
