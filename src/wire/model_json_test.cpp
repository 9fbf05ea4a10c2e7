#include <gtest/gtest.h>

#include "wire/node_json.hpp"
#include "wire/tenant_json.hpp"

namespace gs {
namespace {

Node full_node() {
  Node node;
  node.name = "n1";
  node.capacity = {128'000, 2048LL * 1024 * kMiB, {{"pods", 110}}};
  for (int i = 0; i < 2; ++i) {
    Gpu gpu;
    gpu.index = i;
    gpu.uuid = "GPU-" + std::to_string(i);
    gpu.model = "H100-SXM5-80GB";
    gpu.memory_mib = 81'559;
    gpu.health = i == 0 ? Health::Unhealthy : Health::Unknown;
    gpu.temperature_c = 40;
    gpu.island = "nvlink-0";
    gpu.bandwidth_gbps = 900;
    gpu.numa = 1;
    gpu.mig_enabled = true;
    gpu.mig_dynamic = true;
    gpu.mig = {{"1g.10gb", 3}, {"2g.20gb", -1}};
    node.gpus.push_back(gpu);
  }
  node.peer_bandwidth_gbps = {0, 900, 900, 0};
  node.labels = {{"rack", "r1"}, {"zone", "z \"quoted\""}};
  node.taints = {{"dedicated", "ml", TaintEffect::NoExecute},
                 {"maybe", "", TaintEffect::PreferNoSchedule}};
  node.domain = {"spine-1", "leaf-3"};
  node.fabric = {2, 400, true, true};
  node.ready = false;
  node.cordoned = true;
  return node;
}

TenantSpec full_tenant() {
  TenantSpec spec;
  spec.name = "team a";
  spec.email = "a@example.org";
  spec.organization = "org";
  spec.max_gpus = 16;
  spec.max_gpu_memory_mb = 1'000'000;
  spec.max_cpu_cores = 128;
  spec.max_memory_mb = 2'000'000;
  spec.max_concurrent_jobs = 20;
  spec.priority_tier = Tier::Critical;
  spec.fair_share_weight = 2.5;
  spec.guaranteed_gpus = 4;
  spec.max_gpus_by_model = {{"A100", 8}, {"H100", 4}};
  spec.max_queued_jobs = 1000;
  spec.allow_preemption = false;
  spec.can_preempt_others = false;
  spec.max_preemptions = 3;
  spec.cost_per_gpu_hour = 1.25;
  return spec;
}

std::string tenant_error(const Json& json) {
  const Result<TenantSpec> spec = read_tenant(json);
  return spec ? "" : spec.error().message;
}

TEST(NodeJson, what_was_written_is_read_back) {
  const Node node = full_node();
  const Result<Json> text = parse_json(node_json(node).dump());
  const Result<Node> back = read_node(*text);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back, node);
}

TEST(NodeJson, refuses_what_is_no_node) {
  Json json = node_json(full_node());
  json["gpus"][1]["index"] = 5;
  EXPECT_EQ(read_node(json).error().message, "node n1: gpus[1].index must be 1, got 5");
  json["gpus"][1]["index"] = "x";
  EXPECT_EQ(read_node(json).error().message, "gpus[1].index must be a whole number, got string");
  json = node_json(full_node());
  json["fabrik"] = 1;
  EXPECT_EQ(read_node(json).error().message, "unknown field 'fabrik'; did you mean 'fabric'?");
}

TEST(TenantJson, what_was_written_is_read_back) {
  const Result<Json> text = parse_json(tenant_json(full_tenant()).dump());
  const Result<TenantSpec> back = read_tenant(*text);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back, full_tenant());
}

TEST(TenantJson, requires_its_name_and_limits) {
  for (const char* field : {"name", "max_gpus", "max_gpu_memory_mb", "max_cpu_cores",
                            "max_memory_mb", "max_concurrent_jobs"}) {
    Json json = tenant_json(full_tenant());
    json.erase(field);
    EXPECT_EQ(tenant_error(json), std::string(field) + " is required");
  }
  Json json = tenant_json(full_tenant());
  json.erase("email");
  json.erase("fair_share_weight");
  EXPECT_EQ(tenant_error(json), "");
}

TEST(TenantJson, names_the_field_and_the_rule) {
  const auto with = [](const char* field, const Json& value) {
    Json json = tenant_json(full_tenant());
    json[field] = value;
    return tenant_error(json);
  };
  EXPECT_EQ(with("max_gpus", -1), "max_gpus must not be negative");
  EXPECT_EQ(with("max_gpus", 1e300), "max_gpus must be a whole number, got a fraction");
  EXPECT_EQ(with("name", ""), "name must not be empty");
  EXPECT_EQ(with("fair_share_weight", 0),
            "fair_share_weight must be above 0 and at most 1000000000");
  EXPECT_EQ(with("priority_tier", "top"),
            "priority_tier must be one of low, medium, high, critical; got 'top'");
  EXPECT_EQ(with("max_gpus_by_model", Json{{"H100", -2}}),
            "max_gpus_by_model.H100 must not be negative");
  EXPECT_EQ(with("max_gpu", 3), "unknown field 'max_gpu'; did you mean 'max_gpus'?");
}

TEST(TenantJson, an_update_replaces_what_is_given) {
  TenantSpec expected = full_tenant();
  expected.max_gpus = 99;
  expected.priority_tier = Tier::Low;
  const Result<TenantSpec> updated =
      update_tenant(full_tenant(), Json{{"max_gpus", 99}, {"priority_tier", "low"}});
  ASSERT_TRUE(updated.ok());
  EXPECT_EQ(*updated, expected);
  EXPECT_EQ(update_tenant(full_tenant(), Json{{"name", ""}}).error().message,
            "name must not be empty");
}

}  // namespace
}  // namespace gs
