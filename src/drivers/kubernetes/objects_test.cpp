// What pods ask for, out of everything that they refer to.
#include "drivers/kubernetes/objects.hpp"

#include <gtest/gtest.h>

#include "wire/kube/names.hpp"
#include "wire/kube/pod_resources.hpp"

namespace gs::kube {
namespace {

Pod pod(const std::string& name, int gpus = 1) {
  Pod pod;
  pod.meta.name = name;
  pod.meta.ns = "ml";
  pod.meta.uid = "uid-" + name;
  Container container;
  container.name = "main";
  if (gpus > 0) container.limits = {{std::string(kGpuResource), Quantity::units(gpus)}};
  container.requests = container.limits;
  pod.containers.push_back(container);
  return pod;
}

Workload workload(const std::string& kind, const std::string& name) {
  Workload made;
  made.kind = kind;
  made.meta.name = name;
  made.meta.ns = "ml";
  made.meta.uid = "uid-" + name;
  return made;
}

// A ReplicaSet, of a Deployment where one is named.
Workload replica_set(const std::string& name, const std::string& deployment = "") {
  Workload set = workload("ReplicaSet", name);
  if (!deployment.empty())
    set.meta.owners = {{"apps/v1", "Deployment", deployment, "uid-" + deployment, true}};
  return set;
}

Pod replica(const std::string& name, const std::string& map, const std::string& set = "web") {
  Pod one = pod(name, 0);
  one.meta.owners = {{"apps/v1", "ReplicaSet", set, "uid-" + set, true}};
  set_label(one.meta.annotations, kMapAnnotation, map);
  return one;
}

Node node(const std::string& name, int gpus) {
  Node node;
  node.meta.name = name;
  node.ready = true;
  node.allocatable = {{"cpu", Quantity::units(8)},
                      {"memory", Quantity::units(1 << 30)},
                      {"pods", Quantity::units(110)},
                      {std::string(kGpuResource), Quantity::units(gpus)}};
  return node;
}

TEST(Objects, a_pod_waits_for_its_claim_and_is_looked_at_again) {
  Objects objects{SchedulerConfig{}};
  Pod one = pod("a", 0);
  set_label(one.meta.annotations, kClaimAnnotation, "two");
  EXPECT_EQ(objects.ask(one).reason, "ClaimMissing");
  EXPECT_EQ(objects.put_broken_claim("ml", "two", "spec.devices is missing"), Uids{"uid-a"});
  EXPECT_EQ(objects.ask(one).waits_for, "GpuClaim ml/two: spec.devices is missing");
  const Result<GpuClaim> claim = decode_claim(
      R"({"metadata":{"name":"two","namespace":"ml"},"spec":{"devices":{"count":2}}})");
  ASSERT_TRUE(claim.ok());
  EXPECT_EQ(objects.put(*claim), Uids{"uid-a"});
  const PodAsk ask = objects.ask(one);
  EXPECT_EQ(ask.waits_for, "");
  EXPECT_EQ(ask.request->gpu.count, 2);
  objects.forget_pod("uid-a");
  EXPECT_TRUE(objects.remove_claim("ml", "two").empty());
}

TEST(Objects, a_claim_without_a_gang_serves_one_pod_at_a_time) {
  Objects objects{SchedulerConfig{}};
  GpuClaim claim;
  claim.meta.ns = "ml";
  claim.meta.name = "two";
  claim.count = claim.gpu.count = 1;
  (void)objects.put(claim);
  const auto user = [](const std::string& name) {
    Pod one = pod(name);
    set_label(one.meta.annotations, kClaimAnnotation, "two");
    return one;
  };
  EXPECT_EQ(objects.ask(user("a")).waits_for, "");
  EXPECT_EQ(objects.ask(user("b")).waits_for,
            "GpuClaim ml/two serves pod a already; without gangRef a claim serves one pod");
  Pod member = user("c");
  set_label(member.meta.annotations, kGangAnnotation, "ring");
  set_label(member.meta.annotations, kGangSizeAnnotation, "4");
  EXPECT_EQ(objects.ask(member).waits_for, "") << "all of a gang may use it";
  EXPECT_EQ(objects.forget_pod("uid-a"), (Uids{"uid-b", "uid-c"}));
  EXPECT_EQ(objects.ask(user("b")).waits_for, "");
  Pod running = user("d");
  running.node_name = "n1";
  EXPECT_EQ(objects.ask(running).waits_for, "") << "who runs with it has it";
}

TEST(Objects, a_gang_has_a_size_or_waits) {
  Objects objects{SchedulerConfig{}};
  Pod one = pod("a");
  set_label(one.meta.annotations, kGangAnnotation, "ring");
  EXPECT_EQ(objects.ask(one).reason, "GangSizeUnknown");
  EXPECT_EQ(objects.ask(one).waits_for,
            "the size of gang 'ring' is not known: create a PodGroup 'ring' with minMember, or set "
            "the annotation gpu.scheduling/gang-size on its pods");
  set_label(one.meta.annotations, kGangSizeAnnotation, "4");
  const PodAsk ask = objects.ask(one);
  EXPECT_EQ(ask.gang, "ml/ring");
  EXPECT_EQ(ask.gang_size, 4);
}

TEST(Objects, a_pod_runs_as_long_as_it_or_its_job_says) {
  Objects objects{SchedulerConfig{}};
  Pod one = pod("a");
  EXPECT_FALSE(objects.ask(one).expected_runtime.has_value());
  one.meta.owners = {{"batch/v1", "Job", "train", "uid-train", true}};
  Workload job = workload("Job", "train");
  (void)objects.put(job);
  EXPECT_FALSE(objects.ask(one).expected_runtime.has_value());
  job.deadline = hours(1);
  EXPECT_EQ(objects.put(job), Uids{"uid-a"}) << "the deadline counts";
  EXPECT_EQ(objects.ask(one).expected_runtime, hours(1));
  set_label(one.meta.annotations, kRuntimeAnnotation, "30m");
  EXPECT_EQ(objects.ask(one).expected_runtime, minutes(30));
  set_label(one.meta.annotations, kRuntimeAnnotation, "half an hour");
  const PodAsk wrong = objects.ask(one);
  EXPECT_EQ(wrong.reason, "InvalidRequest");
  EXPECT_NE(wrong.waits_for.find("got 'half an hour'"), std::string::npos) << wrong.waits_for;
  one.node_name = "n1";
  EXPECT_EQ(objects.ask(one).waits_for, "") << "it runs already";
}

TEST(Objects, replicas_get_the_lowest_free_line_of_their_map) {
  Objects objects{SchedulerConfig{}};
  objects.put(replica_set("web"));
  ASSERT_TRUE(objects.put(node("n1", 4)) != nullptr);
  const std::string map = "0=n1:0\n1=n1:1,2\n";
  EXPECT_EQ(objects.ask(replica("x", map)).request->gpu.pinned_ids, std::vector<int>{0});
  EXPECT_EQ(objects.ask(replica("y", map)).request->gpu.pinned_ids, (std::vector<int>{1, 2}));
  const PodAsk third = objects.ask(replica("z", map));
  EXPECT_EQ(third.reason, "BadSchedulingMap");
  EXPECT_NE(third.waits_for.find("no line for index 2"), std::string::npos) << third.waits_for;
  objects.forget_pod("uid-x");
  objects.forget_pod("uid-z");
  EXPECT_EQ(objects.ask(replica("z", map)).request->gpu.pinned_ids, std::vector<int>{0});
  EXPECT_EQ(objects.ask(replica("y", map)).index, 1) << "it keeps what it was given";
}

TEST(Objects, a_map_that_names_an_unknown_node_or_gpu_is_told) {
  Objects objects{SchedulerConfig{}};
  objects.put(replica_set("web"));
  EXPECT_NE(objects.ask(replica("x", "0=n1:0")).waits_for.find("n1"), std::string::npos);
  ASSERT_TRUE(objects.put(node("n1", 2)) != nullptr);
  EXPECT_EQ(objects.ask(replica("x", "0=n1:2")).reason, "BadSchedulingMap");
  EXPECT_EQ(objects.ask(replica("x", "0=n1:1")).waits_for, "");
}

TEST(Objects, a_replica_without_a_line_gets_that_of_a_sibling_that_goes) {
  Objects objects{SchedulerConfig{}};
  objects.put(replica_set("web"));
  ASSERT_TRUE(objects.put(node("n1", 4)) != nullptr);
  const std::string map = "0=n1:0\n1=n1:1\n";
  EXPECT_EQ(objects.ask(replica("x", map)).index, 0);
  EXPECT_EQ(objects.ask(replica("y", map)).index, 1);
  EXPECT_EQ(objects.ask(replica("z", map)).reason, "BadSchedulingMap");
  EXPECT_EQ(objects.forget_pod("uid-x"), (Uids{"uid-y", "uid-z"}));
  EXPECT_EQ(objects.ask(replica("z", map)).index, 0);
}

// A scheduler that begins asks of which gangs they were.
TEST(Objects, who_has_ended_has_no_claim_and_no_line_of_the_map) {
  Objects objects{SchedulerConfig{}};
  ASSERT_TRUE(objects.put(node("n1", 4)) != nullptr);
  objects.put(replica_set("web"));
  const Result<GpuClaim> claim = decode_claim(
      R"({"metadata":{"name":"two","namespace":"ml"},"spec":{"devices":{"count":1}}})");
  ASSERT_TRUE(claim.ok());
  objects.put(*claim);
  const auto claimed = [](Pod one) {
    set_label(one.meta.annotations, kClaimAnnotation, "two");
    return one;
  };
  Pod done = claimed(replica("done", "0=n1:0\n"));
  done.node_name = "n1";
  done.phase = PodPhase::Succeeded;
  (void)objects.ask(done);
  const PodAsk next = objects.ask(claimed(replica("next", "0=n1:0\n")));
  EXPECT_EQ(next.waits_for, "");
  EXPECT_EQ(next.index, 0);
}

// A Deployment that is being updated, with a node for its pods.
class Rollout : public testing::Test {
 protected:
  Rollout() {
    EXPECT_TRUE(objects.put(node("n1", 4)) != nullptr);
    objects.put(workload("Deployment", "app"));
    objects.put(replica_set("old", "app"));
    objects.put(replica_set("new", "app"));
  }
  Objects objects{SchedulerConfig{}};
};

TEST_F(Rollout, counts_the_lines_of_its_deployment) {
  const std::string map = "0=n1:0\n1=n1:1\n2=n1:2\n";
  EXPECT_EQ(objects.ask(replica("x", map, "old")).index, 0);
  EXPECT_EQ(objects.ask(replica("y", map, "old")).index, 1);
  EXPECT_EQ(objects.ask(replica("z", map, "new")).index, 2) << "what the old pods have is taken";
  EXPECT_EQ(objects.ask(replica("w", map, "new")).reason, "BadSchedulingMap");
  EXPECT_EQ(objects.forget_pod("uid-x"), (Uids{"uid-w", "uid-y", "uid-z"}));
  EXPECT_EQ(objects.ask(replica("w", map, "new")).index, 0);
}

TEST(Objects, a_map_on_what_made_a_pod_counts_unless_the_pod_has_its_own) {
  Objects objects{SchedulerConfig{}};
  ASSERT_TRUE(objects.put(node("n1", 4)) != nullptr);
  Workload deployment = workload("Deployment", "app");
  set_label(deployment.meta.annotations, kMapAnnotation, "0=n1:0\n1=n1:1\n");
  objects.put(deployment);
  objects.put(replica_set("web", "app"));
  Pod plain = replica("x", "");
  plain.meta.annotations.clear();
  EXPECT_EQ(objects.ask(plain).request->gpu.pinned_ids, std::vector<int>{0});
  EXPECT_EQ(objects.ask(replica("y", "1=n1:3\n")).request->gpu.pinned_ids, std::vector<int>{3});
  Pod ordinal = pod("db-1", 0);
  ordinal.meta.owners = {{"apps/v1", "StatefulSet", "db", "uid-db", true}};
  Workload set = workload("StatefulSet", "db");
  set_label(set.meta.annotations, kMapAnnotation, "0=n1:0\n1=n1:nonsense\n");
  objects.put(set);
  EXPECT_EQ(objects.ask(ordinal).reason, "BadSchedulingMap");
  set_label(set.meta.annotations, kMapAnnotation, "0=n1:0\n1=n1:2\n");
  EXPECT_EQ(objects.put(set), Uids{"uid-db-1"});
  EXPECT_EQ(objects.ask(ordinal).request->gpu.pinned_ids, std::vector<int>{2});
}

TEST_F(Rollout, pods_of_all_its_replica_sets_share_a_gpu_of_two_lines) {
  const std::string map = "0=n1:3\n1=n1:3\n";
  EXPECT_EQ(objects.ask(replica("x", map, "old")).request->gpu.pin_group, "ml/uid-app");
  EXPECT_EQ(objects.ask(replica("z", map, "new")).request->gpu.pin_group, "ml/uid-app");
}

TEST(Objects, after_a_restart_bound_replicas_have_the_index_that_they_were_given) {
  Objects objects{SchedulerConfig{}};
  ASSERT_TRUE(objects.put(node("n1", 4)) != nullptr);
  objects.put(workload("Deployment", "app"));
  objects.put(replica_set("old", "app"));
  objects.put(replica_set("new", "app"));
  const std::string map = "0=n1:0\n1=n1:1\n2=n1:2\n";
  Pod bound = replica("y", map, "old");
  bound.node_name = "n1";
  set_label(bound.meta.annotations, kIndexAnnotation, "1");
  EXPECT_EQ(objects.ask(bound).index, 1);
  EXPECT_EQ(objects.ask(replica("z", map, "new")).index, 0);
  Pod copy = replica("w", map, "new");
  set_label(copy.meta.annotations, kIndexAnnotation, "1");
  EXPECT_EQ(objects.ask(copy).index, 2) << "it was given to the pod that this one is a copy of";
}

TEST(Objects, a_pod_waits_until_what_made_it_has_been_seen) {
  Objects objects{SchedulerConfig{}};
  ASSERT_TRUE(objects.put(node("n1", 4)) != nullptr);
  const Pod early = replica("x", "0=n1:0", "old");
  EXPECT_EQ(objects.ask(early).reason, "OwnerUnseen");
  EXPECT_EQ(objects.ask(early).waits_for, "ReplicaSet old, which made it, has not been seen yet");
  EXPECT_EQ(objects.put(replica_set("old", "app")), Uids{"uid-x"});
  EXPECT_EQ(objects.ask(early).waits_for, "Deployment app, which made it, has not been seen yet");
  Workload deployment = workload("Deployment", "app");
  EXPECT_EQ(objects.put(deployment), Uids{"uid-x"});
  EXPECT_EQ(objects.ask(early).waits_for, "");
  deployment.meta.resource_version = "2";
  EXPECT_EQ(objects.put(deployment), Uids{}) << "nothing that its pods ask for has changed";
  deployment.pods = 3;
  EXPECT_EQ(objects.put(deployment), Uids{"uid-x"});
}

TEST(Objects, the_pods_of_all_jobs_of_a_job_set_are_one_gang_when_it_says_so) {
  Objects objects{SchedulerConfig{}};
  for (const char* name : {"leader", "workers"}) {
    Workload job = workload("Job", name);
    job.pods = 1;
    job.meta.owners = {{"jobset.x-k8s.io/v1alpha2", "JobSet", "train", "uid-train", true}};
    objects.put(job);
  }
  const auto worker = [](const std::string& name, const std::string& job) {
    Pod one = pod(name);
    one.meta.owners = {{"batch/v1", "Job", job, "uid-" + job, true}};
    return one;
  };
  EXPECT_EQ(objects.ask(worker("x", "leader")).waits_for,
            "JobSet train, which made it, has not been seen yet");
  Workload set = workload("JobSet", "train");
  set.pods = 5;
  set_label(set.meta.annotations, kGangAnnotation, "true");
  EXPECT_EQ(objects.put(set), Uids{"uid-x"});
  for (const char* job : {"leader", "workers"}) {
    const PodAsk ask = objects.ask(worker("x", job));
    EXPECT_EQ(ask.gang, "ml/JobSet/train");
    EXPECT_EQ(ask.gang_size, 5);
  }
}

TEST(Objects, who_runs_or_was_made_by_something_that_nobody_follows_does_not_wait_for_it) {
  Objects objects{SchedulerConfig{}};
  ASSERT_TRUE(objects.put(node("n1", 4)) != nullptr);
  Pod running = replica("x", "0=n1:0", "old");
  running.node_name = "n1";
  EXPECT_EQ(objects.ask(running).waits_for, "");
  Workload job = workload("Job", "nightly");
  job.meta.owners = {{"batch/v1", "CronJob", "cron", "uid-cron", true}};
  objects.put(job);
  Pod worker = pod("y");
  worker.meta.owners = {{"batch/v1", "Job", "nightly", "uid-nightly", true}};
  EXPECT_EQ(objects.ask(worker).waits_for, "");
}

// While its device plugin is restarted a node offers none; what runs there runs on.
TEST(Objects, devices_that_a_node_does_not_offer_any_more_are_kept_but_not_given_out) {
  Objects objects{SchedulerConfig{}};
  (void)objects.put(node("n1", 4));
  const SharedNode none = objects.put(node("n1", 0));
  ASSERT_EQ(none->gpus.size(), 4U);
  for (const Gpu& gpu : none->gpus) EXPECT_EQ(gpu.health, Health::Unknown);
  const SharedNode back = objects.put(node("n1", 4));
  for (const Gpu& gpu : back->gpus) EXPECT_EQ(gpu.health, Health::Healthy);
}

TEST(Objects, devices_that_an_agent_does_not_see_any_more_are_lost) {
  Objects objects{SchedulerConfig{}};
  (void)objects.put(node("n1", 4));
  GpuNodeStatus report;
  report.meta.name = "n1";
  report.devices.resize(4);
  for (int i = 0; i < 4; ++i) report.devices[static_cast<std::size_t>(i)].gpu.index = i;
  for (Device& device : report.devices)
    for (int peer = 0; peer < 3; ++peer) device.peers.push_back({peer, 300});
  (void)objects.put(report);
  report.devices.pop_back();
  const SharedNode left = objects.put(report);
  ASSERT_EQ(left->gpus.size(), 4U);
  EXPECT_EQ(left->gpus[2].health, Health::Healthy);
  EXPECT_EQ(left->gpus[3].health, Health::Unhealthy);
  ASSERT_EQ(left->peer_bandwidth_gbps.size(), 16U);
  EXPECT_EQ(left->peer_bandwidth_gbps[4 + 2], 300) << "between 1 and 2";
  EXPECT_EQ(left->peer_bandwidth_gbps[4 + 3], 0) << "between 1 and 3";
}

TEST(Objects, a_pod_is_looked_at_again_when_the_node_of_its_line_changes) {
  Objects objects{SchedulerConfig{}};
  objects.put(replica_set("web"));
  EXPECT_EQ(objects.ask(replica("x", "0=n1:0")).reason, "BadSchedulingMap");
  ASSERT_TRUE(objects.put(node("n2", 2)) != nullptr);
  EXPECT_EQ(objects.concerned_by("n2"), Uids{});
  ASSERT_TRUE(objects.put(node("n1", 2)) != nullptr);
  EXPECT_EQ(objects.concerned_by("n1"), Uids{"uid-x"});
  EXPECT_EQ(objects.ask(replica("x", "0=n1:0")).waits_for, "");
}

TEST(Objects, a_domain_that_nobody_knows_is_refused_until_a_node_lies_in_it) {
  Objects objects{SchedulerConfig{}};
  Node one = node("n1", 2);
  set_label(one.meta.labels, "topology.scheduler/leaf", "leaf-1");
  set_label(one.meta.labels, "topology.scheduler/spine", "spine-1");
  ASSERT_TRUE(objects.put(one) != nullptr);
  Pod picky = pod("a");
  set_label(picky.meta.annotations, kPreferredDomainAnnotation, "leaf-2");
  const PodAsk ask = objects.ask(picky);
  EXPECT_EQ(ask.reason, "InvalidRequest");
  EXPECT_EQ(ask.waits_for,
            "annotation topology.scheduler/preferred-domain must be one of leaf-1, spine-1; got "
            "'leaf-2'");
  EXPECT_EQ(objects.concerned_by("n1"), Uids{"uid-a"});
  EXPECT_EQ(objects.concerned_by("n1"), Uids{}) << "nothing has changed since";
  set_label(one.meta.labels, "topology.scheduler/leaf", "leaf-2");
  ASSERT_TRUE(objects.put(one) != nullptr);
  EXPECT_EQ(objects.concerned_by("n1"), Uids{"uid-a"});
  EXPECT_EQ(objects.ask(picky).waits_for, "");
}

TEST(Objects, rules_that_nobody_looks_at_make_a_pod_wait) {
  Objects objects{SchedulerConfig{}};
  Pod one = pod("a");
  one.device_claims = {"gpu"};
  EXPECT_EQ(objects.ask(one).reason, "NotSupported");
}

TEST(Objects, a_namespace_belongs_to_the_tenant_that_says_so) {
  Objects objects{SchedulerConfig{}};
  EXPECT_EQ(objects.ask(pod("a")).tenant, kUnassignedTenant);
  const Result<GpuTenant> tenant =
      decode_tenant(R"({"metadata":{"name":"research"},"spec":{"namespaces":["ml"]}})");
  ASSERT_TRUE(tenant.ok()) << tenant.error().message;
  EXPECT_EQ(objects.put(*tenant), Uids{"uid-a"});
  EXPECT_EQ(objects.ask(pod("a")).tenant, "research");
}

PodGroup group(const std::string& name, int members) {
  PodGroup made;
  made.meta.ns = "ml";
  made.meta.name = name;
  made.min_member = members;
  return made;
}

Pod member(const std::string& name, const std::string& group) {
  Pod one = pod(name);
  set_label(one.meta.annotations, "pod-group-name", group);
  return one;
}

TEST(Objects, a_queue_chooses_among_the_tenants_that_take_the_namespace) {
  Objects objects{SchedulerConfig{}};
  PodGroup ring = group("ring", 2);
  ring.queue = "night";
  objects.put(ring);
  EXPECT_EQ(objects.ask(member("a", "ring")).tenant, kUnassignedTenant)
      << "there is no such tenant";
  const auto tenant = [](const char* text) { return decode_tenant(text).value(); };
  objects.put(tenant(R"({"metadata":{"name":"day"},"spec":{"namespaces":["ml"]}})"));
  EXPECT_EQ(objects.ask(member("a", "ring")).tenant, "day");
  objects.put(tenant(R"({"metadata":{"name":"night"},"spec":{"namespaces":["ml"]}})"));
  EXPECT_EQ(objects.ask(member("a", "ring")).tenant, "night");
  objects.put(tenant(R"({"metadata":{"name":"night"},"spec":{"namespaces":["other"]}})"));
  const PodAsk refused = objects.ask(member("a", "ring"));
  EXPECT_EQ(refused.reason, "QueueRefused");
  EXPECT_EQ(refused.waits_for,
            "PodGroup ring names queue night, but GpuTenant night does not take namespace ml");
  Pod running = member("b", "ring");
  running.node_name = "n1";
  EXPECT_EQ(objects.ask(running).waits_for, "");
  EXPECT_EQ(objects.ask(running).tenant, "day");
  objects.put(tenant(R"({"metadata":{"name":"default"},"spec":{"namespaces":["other"]}})"));
  ring.queue = "default";
  objects.put(ring);
  EXPECT_EQ(objects.ask(member("a", "ring")).waits_for, "") << "nobody chose it";
  EXPECT_EQ(objects.ask(member("a", "ring")).tenant, "day");
}

TEST(Objects, a_pod_group_says_how_important_pods_without_a_class_are) {
  Objects objects{SchedulerConfig{}};
  PodGroup ring = group("ring", 2);
  ring.priority_class = "high";
  objects.put(ring);
  EXPECT_EQ(objects.ask(member("a", "ring")).waits_for,
            "PodGroup ring names PriorityClass high, which does not exist");
  PriorityClass high;
  high.meta.name = "high";
  high.value = 1000;
  high.may_preempt = false;
  EXPECT_EQ(objects.put(high), Uids{"uid-a"});
  EXPECT_EQ(objects.ask(member("a", "ring")).priority, engine_priority(1000));
  EXPECT_FALSE(objects.ask(member("a", "ring")).may_preempt);
  Pod own = member("b", "ring");
  own.priority = 5;
  own.priority_class = "low";
  EXPECT_EQ(objects.ask(own).priority, engine_priority(5));
  EXPECT_TRUE(objects.ask(own).may_preempt);
  EXPECT_EQ(objects.remove_priority_class("high"), Uids{"uid-a"});
  EXPECT_EQ(objects.ask(member("a", "ring")).reason, "PriorityClassMissing");
}

TEST(Objects, groups_within_a_pod_group_are_not_placed) {
  Objects objects{SchedulerConfig{}};
  PodGroup ring = group("ring", 2);
  ring.has_sub_groups = true;
  objects.put(ring);
  EXPECT_EQ(objects.ask(member("a", "ring")).reason, "NotSupported");
  EXPECT_EQ(objects.ask(member("a", "ring")).waits_for,
            "PodGroup ring has subGroups, which this scheduler does not know; make a PodGroup of "
            "each");
}

TEST(Objects, TheAdaptersNearAPodsDevicesAreNamedOnce) {
  Objects objects{SchedulerConfig{}};
  GpuNodeStatus report;
  report.meta.name = "n";
  for (int i = 0; i < 4; ++i) {
    Device device;
    device.gpu.index = i;
    device.rdma = i < 2 ? "mlx5_1" : i == 2 ? "mlx5_0" : "";
    report.devices.push_back(device);
  }
  (void)objects.put(report);
  PodPlace place;
  place.node = "n";
  place.gpus = {0, 1, 2};
  EXPECT_EQ(objects.adapters(place), "mlx5_0,mlx5_1");
  place.gpus = {3};
  EXPECT_EQ(objects.adapters(place), "");
  place.mig.push_back({2, "1g.10gb", 0});
  EXPECT_EQ(objects.adapters(place), "mlx5_0");
  place.node = "elsewhere";
  EXPECT_EQ(objects.adapters(place), "");
}

TEST(Objects, an_instance_is_named_by_its_uuid_where_that_is_known) {
  Objects objects{SchedulerConfig{}};
  GpuNodeStatus report;
  report.meta.name = "n";
  Device& device = report.devices.emplace_back();
  device.gpu.index = 1;
  device.gpu.mig = {{"1g.10gb", 0}, {"1g.10gb", 1}, {"2g.20gb", 2}};
  device.mig_uuids = {"MIG-a", "MIG-b", ""};
  (void)objects.put(report);
  PodPlace place;
  place.node = "n";
  place.mig = {{1, "1g.10gb", 1}, {1, "1g.10gb", 0}};
  EXPECT_EQ(objects.instances(place), (DeviceNames{"MIG-b,MIG-a", "MIG-b,MIG-a"}));
  place.mig = {{1, "2g.20gb", 2}};
  EXPECT_EQ(objects.instances(place).on_node, "1");
  place.node = "elsewhere";
  EXPECT_EQ(objects.instances(place).on_node, "1");
}

}  // namespace
}  // namespace gs::kube
