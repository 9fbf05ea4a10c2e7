#include "wire/kube/encode.hpp"

#include <gtest/gtest.h>

#include "wire/kube/pod.hpp"
#include "wire/kube/storage.hpp"

namespace gs::kube {
namespace {

constexpr Instant kNoon{1769860800123};

Json parsed(const std::string& text) { return parse_json(text).value(); }

TEST(KubeEncode, a_binding_carries_the_allocation) {
  Binding binding{
      "p", "ml", "u-1", "node-b", {2, 3}, {"2,3", "0,1"}, {{"gpu.scheduling/index", "3"}}};
  const Json json = parsed(encode_binding(binding));
  EXPECT_EQ(json, parsed(R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":"p",
    "namespace":"ml","uid":"u-1","annotations":{"gpu.scheduling/allocated":"node-b:2,3",
    "gpu.scheduling/visible-devices":"2,3","gpu.scheduling/container-devices":"0,1",
    "gpu.scheduling/index":"3"}},
    "target":{"apiVersion":"v1","kind":"Node","name":"node-b"}})"));
  binding.resource_version = "41";
  EXPECT_EQ(parsed(encode_binding(binding))["metadata"]["resourceVersion"], "41");
  EXPECT_FALSE(parsed(encode_binding({"p", "ml", "u", "n", {}, {}, {}}))["metadata"].contains(
      "annotations"));
}

TEST(KubeEncode, a_lease_is_read_back) {
  GpuLease lease{"gpu-scheduler", "node-a", 3, "ml/p", {{"u-1", 1000, 0, {}, {}, {}}}, kNoon, ""};
  const Json json = parsed(encode_gpu_lease(lease));
  EXPECT_EQ(json["metadata"]["name"], "gpu-node-a-3");
  EXPECT_EQ(json["metadata"]["labels"]["gpu.scheduling/managed"], "true");
  EXPECT_FALSE(json["metadata"]["annotations"].contains("gpu.scheduling/holders"));
  EXPECT_FALSE(json["metadata"]["annotations"].contains("gpu.scheduling/scheduler"));
  lease.scheduler = "me";
  EXPECT_EQ(parsed(encode_gpu_lease(lease))["metadata"]["annotations"]["gpu.scheduling/scheduler"],
            "me");
  EXPECT_EQ(json["spec"]["acquireTime"], "2026-01-31T12:00:00.123000Z");
  lease.holders = {{"u-1", 250, 2048, {}, {}, {}, 81920},
                   {"u-2", 100, 0, {"1g.10gb"}, {}, "me"},
                   {"u-3", 1000, 0, {}, "map", "me"}};
  lease.resource_version = "7";
  const Lease back = decode_lease(encode_gpu_lease(lease)).value();
  EXPECT_EQ(back.holder, "u-1");
  EXPECT_EQ(back.holders, lease.holders);
  EXPECT_EQ(back.node, "node-a");
  EXPECT_EQ(back.gpu, 3);
  EXPECT_EQ(back.meta.resource_version, "7");

  const Lease leader =
      decode_lease(encode_leader_lease({"ns", "leader", "me", 8, kNoon, kNoon, 2, "9"})).value();
  EXPECT_EQ(leader.holder, "me");
  EXPECT_EQ(leader.renewed, kNoon);
  EXPECT_EQ(leader.gpu, -1);
}

TEST(KubeEncode, events_and_conditions_stay_within_the_limits) {
  Event event;
  event.about = {"v1", "Pod", "ml", "p", "u-1", "5"};
  event.reason = "FailedScheduling";
  event.action = "Scheduling";
  event.note = std::string(1022, 'x') + "\xc3\xa9\xc3\xa9";
  event.name = event_name(event.about, event.reason, event.note);
  event.at = kNoon;
  event.warning = true;
  const Json json = parsed(encode_event(event));
  EXPECT_LE(json["note"].get<std::string>().size(), 1024U);
  EXPECT_EQ(json["regarding"]["uid"], "u-1");
  EXPECT_EQ(json["eventTime"], "2026-01-31T12:00:00.123000Z");
  EXPECT_FALSE(json.contains("series"));
  event.count = 3;
  event.note = "\xff";
  EXPECT_EQ(parsed(encode_event(event))["series"]["count"], 3);
  EXPECT_EQ(event_name(event.about, "a", "b"), event_name(event.about, "a", "b"));
  EXPECT_NE(event_name(event.about, "a", "b"), event_name(event.about, "a", "c"));

  const std::string patch = encode_unscheduled({"Unschedulable", "why", kNoon, "n1"});
  const Json status = parsed(patch)["status"];
  EXPECT_EQ(status["nominatedNodeName"], "n1");
  EXPECT_EQ(status["conditions"][0]["lastTransitionTime"], "2026-01-31T12:00:00Z");
  EXPECT_TRUE(
      parsed(encode_unscheduled({"r", "m", kNoon, ""}))["status"]["nominatedNodeName"].is_null());
  const Pod pod = decode_pod(R"({"metadata":{"name":"p"},)" + patch.substr(1)).value();
  EXPECT_EQ(pod.scheduled, false);
  EXPECT_EQ(pod.scheduled_message, "why");
}

TEST(KubeEncode, the_status_of_a_claim_is_read_back) {
  const ClaimStatus status = claim_status(
      ClaimPhase::Bound, {{"p0", "node-a", {0, 1}, {}}, {"p1", "node-b", {4, 5}, {}}}, "ok");
  EXPECT_EQ(status.allocated, "node-a:0,1 node-b:4,5");
  Json object = parsed(encode_claim_status("ml", "ring", status));
  EXPECT_EQ(object["apiVersion"], "gpu.scheduling/v1");
  EXPECT_EQ(object["metadata"], Json({{"name", "ring"}, {"namespace", "ml"}}));
  EXPECT_EQ(decode_claim_status(object.dump()).value(), status);
  object["spec"] = {{"devices", {{"count", 2}}}};
  EXPECT_EQ(decode_claim(object.dump())->status, status);
  const Json free = parsed(
      encode_claim_status("ml", "ring", claim_status(ClaimPhase::Pending, {}, "no pod uses it")));
  EXPECT_EQ(free["status"], Json({{"phase", "Pending"}, {"message", "no pod uses it"}}))
      << "what is not said is taken away";
}

TEST(KubeEncode, the_status_of_a_tenant_is_read_back) {
  const TenantStatus status{true, "in force", 2500, 3};
  Json object = parsed(encode_tenant_status("team", status));
  EXPECT_EQ(object["status"]["usedGPUs"], "2500m");
  object["spec"] = {{"maxGPUs", 4}};
  const GpuTenant back = decode_tenant(object.dump()).value();
  EXPECT_EQ(back.status, status);
  EXPECT_EQ(back.spec_text, R"({"maxGPUs":4})");
  EXPECT_EQ(parsed(encode_tenant_status("team", {true, "", 2000, 0}))["status"]["usedGPUs"], "2");
}

TEST(KubeEncode, a_configuration_is_told_how_it_stands) {
  const Json object = parsed(
      encode_config_status("SchedulerConfig", "topology-scheduler-config", {true, false, "why"}));
  EXPECT_EQ(object["apiVersion"], "topology.scheduler/v1alpha1");
  EXPECT_EQ(object["kind"], "SchedulerConfig");
  EXPECT_EQ(object["metadata"], Json({{"name", "topology-scheduler-config"}}));
  EXPECT_EQ(object["status"], Json({{"accepted", true}, {"inForce", false}, {"message", "why"}}));
}

TEST(KubeEncode, a_node_status_is_read_back) {
  GpuNodeStatus status;
  status.node_name = status.meta.name = "node-a";
  status.total = 1;
  Device& device = status.devices.emplace_back();
  device.gpu = {0,          "GPU-1", "H100", 81559, Health::Healthy, 50,
                "island-0", 600,     1,      true,  false,           {{"1g.10gb", 2}}};
  device.in_use_by = {"u-1"};
  device.peers = {{1, 300}};
  device.rdma = "mlx5_0";
  device.mig_uuids = {"MIG-1"};
  status.fabric = {2, 400, true, true};
  device.message = "XID 79";
  status.source = "1 GPU(s), NVIDIA driver 580";
  status.heartbeat = kNoon;
  status.meta.owners = {{"v1", "Node", "node-a", "u-9"}};
  const GpuNodeStatus back = decode_node_status(encode_node_status(status)).value();
  EXPECT_EQ(back.devices, status.devices);
  EXPECT_EQ(back.fabric, status.fabric);
  EXPECT_EQ(back.source, status.source);
  EXPECT_EQ(back.heartbeat, kNoon);
  EXPECT_EQ(back.meta.owners, status.meta.owners);
}

TEST(KubeEncode, evictions_deletions_and_volumes) {
  EXPECT_EQ(parsed(encode_eviction("ml", "p", "u-1", 5)),
            parsed(R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p",
      "namespace":"ml"},"deleteOptions":{"preconditions":{"uid":"u-1"},"gracePeriodSeconds":5}})"));
  EXPECT_EQ(parsed(encode_delete("u", "3"))["preconditions"],
            parsed(R"({"uid":"u","resourceVersion":"3"})"));
  EXPECT_EQ(*decode_volume_claim(encode_selected_node("n1"))->selected_node(), "n1");
}

}  // namespace
}  // namespace gs::kube
