#include "wire/kube/pod.hpp"

#include <gtest/gtest.h>

#include "wire/kube/pod_resources.hpp"

namespace gs::kube {
namespace {

constexpr const char* kFull = R"({"apiVersion":"v1","kind":"Pod",
 "metadata":{"name":"train-0","namespace":"ml","uid":"u-1","resourceVersion":"77",
  "labels":{"app":"train","apps.kubernetes.io/pod-index":"0"},
  "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","gpu.scheduling/claim":"c"},
  "ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"x","uid":"o-0"},
   {"apiVersion":"apps/v1","kind":"StatefulSet","name":"train","uid":"o-1","controller":true}],
  "creationTimestamp":"2026-01-31T12:00:00Z","deletionTimestamp":null,
  "managedFields":[{"manager":"kubectl","fieldsV1":{"f:metadata":{"f:labels":{}}}}]},
 "spec":{"schedulerName":"gpu-scheduler","priority":1000,"priorityClassName":"high",
  "preemptionPolicy":"Never","terminationGracePeriodSeconds":5,"nodeSelector":{"zone":"a"},
  "initContainers":[{"name":"fetch","resources":{"requests":{"cpu":"3","memory":"1Gi"}}},
   {"name":"proxy","restartPolicy":"Always","resources":{"requests":{"cpu":"100m"}},
    "ports":[{"hostPort":9000,"containerPort":9000,"protocol":"UDP","hostIP":"10.0.0.1"}]},
   {"name":"warm","ports":[{"hostPort":1}],"resources":{"requests":{"cpu":"3"}}}],
  "containers":[{"name":"main","env":[{"name":"A","value":"b"}],"ports":[{"containerPort":80}],
    "resources":{"requests":{"cpu":1.5,"memory":"512Mi"},"limits":{"nvidia.com/gpu":"2"}}},
   {"name":"side","ports":[{"containerPort":80,"hostPort":8080}],
    "resources":{"requests":{"cpu":"500m","memory":"512Mi","ephemeral-storage":"1G"}}}],
  "overhead":{"cpu":"250m","memory":"64Mi"},
  "tolerations":[{"key":"gpu","operator":"Exists","effect":"NoSchedule"},
   {"key":"team","value":"ml"},{"operator":"Exists","tolerationSeconds":300}],
  "affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
     {"matchExpressions":[{"key":"gpu","operator":"In","values":["a100","h100"]}],
      "matchFields":[{"key":"metadata.name","operator":"NotIn","values":["n9"]}]}]},
    "preferredDuringSchedulingIgnoredDuringExecution":[{"weight":50,
     "preference":{"matchExpressions":[{"key":"gen","operator":"Gt","values":["3"]}]}}]},
   "podAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":7,"podAffinityTerm":
     {"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"db"}},"namespaceSelector":{}}}]},
   "podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
     {"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app":"train"},
      "matchExpressions":[{"key":"tier","operator":"DoesNotExist"}]}}]}},
  "topologySpreadConstraints":[{"maxSkew":2,"topologyKey":"zone","whenUnsatisfiable":
     "ScheduleAnyway","labelSelector":{"matchLabels":{"app":"train"}},"minDomains":3,
     "nodeTaintsPolicy":"Honor"}],
  "volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"data"}},{"name":"s","secret":{}},
   {"name":"scratch","ephemeral":{"volumeClaimTemplate":{}}}],
  "schedulingGates":[{"name":"wait"}],"resourceClaims":[{"name":"dra"}]},
 "status":{"phase":"Pending","nominatedNodeName":"n3","conditions":[{"type":"Ready","status":
   "False"},{"type":"PodScheduled","status":"False","reason":"SchedulingGated","message":"m"}]}})";

TEST(Pod, is_decoded_as_far_as_a_scheduler_looks) {
  const Result<Pod> read = decode_pod(kFull);
  ASSERT_TRUE(read.ok()) << read.error().message;
  const Pod& pod = *read;
  EXPECT_EQ(pod.meta.key(), "ml/train-0");
  EXPECT_EQ(pod.meta.annotations, (Labels{{"gpu.scheduling/claim", "c"}}));
  EXPECT_EQ(pod.meta.controller()->kind, "StatefulSet");
  EXPECT_EQ(pod.meta.created.ms, 1769860800000);
  EXPECT_FALSE(pod.meta.deleted.has_value());
  EXPECT_EQ(pod.scheduler_name, "gpu-scheduler");
  EXPECT_EQ(pod.priority, 1000);
  EXPECT_FALSE(pod.may_preempt);
  EXPECT_EQ(pod.grace_s, 5);
  EXPECT_EQ(pod.host_ports,
            (std::vector<HostPort>{{"10.0.0.1", 9000, "UDP"}, {"0.0.0.0", 8080, "TCP"}}));
  EXPECT_EQ(pod.volume_claims, (std::vector<std::string>{"data", "train-0-scratch"}));
  EXPECT_EQ(pod.gates, (std::vector<std::string>{"wait"}));
  EXPECT_EQ(pod.device_claims, (std::vector<std::string>{"dra"}));
  EXPECT_EQ(pod.nominated_node, "n3");
  EXPECT_EQ(pod.scheduled, false);
  EXPECT_EQ(pod.scheduled_reason, "SchedulingGated");
}

TEST(Pod, keeps_its_rules_about_nodes_and_other_pods) {
  const Pod pod = *decode_pod(kFull);
  ASSERT_EQ(pod.tolerations.size(), 3U);
  EXPECT_TRUE(pod.tolerations[0].exists);
  EXPECT_FALSE(pod.tolerations[0].any_effect);
  EXPECT_EQ(pod.tolerations[1].value, "ml");
  EXPECT_TRUE(tolerates(pod.tolerations, {"any", "x", TaintEffect::NoExecute}));
  ASSERT_TRUE(pod.node_affinity.required.has_value());
  EXPECT_EQ(pod.node_affinity.required->front().fields.front().op, LabelOp::NotIn);
  EXPECT_EQ(pod.node_affinity.preferred.front().weight, 50);
  EXPECT_EQ(pod.pod_affinity.preferred.front().weight, 7);
  ASSERT_EQ(pod.spread.size(), 1U);
  EXPECT_FALSE(pod.spread[0].required);
  EXPECT_TRUE(pod.spread[0].honor_taints);
  EXPECT_EQ(pod.spread[0].min_domains, 3);
}

TEST(Pod, terms_match_by_labels_and_namespace) {
  const Pod pod = *decode_pod(kFull);
  const PodTerm& apart = pod.pod_anti_affinity.required.front();
  Meta other;
  other.ns = "ml";
  other.labels = {{"app", "train"}};
  EXPECT_TRUE(matches(apart, pod.meta, other, {}));
  other.labels = {{"app", "train"}, {"tier", "x"}};
  EXPECT_FALSE(matches(apart, pod.meta, other, {}));
  other.labels = {{"app", "train"}};
  other.ns = "else";
  EXPECT_FALSE(matches(apart, pod.meta, other, {}));
  const PodTerm& near = pod.pod_affinity.preferred.front();
  other.labels = {{"app", "db"}};
  EXPECT_TRUE(matches(near, pod.meta, other, {})) << "an empty selector takes all namespaces";
  EXPECT_FALSE(matches(std::optional<LabelSelector>(), Labels{}));
  EXPECT_TRUE(matches(std::optional<LabelSelector>(LabelSelector{}), Labels{}));
}

TEST(Pod, host_ports_conflict_where_an_address_is_shared) {
  const HostPort any{"0.0.0.0", 80, "TCP"};
  EXPECT_TRUE(conflict(any, {"10.0.0.1", 80, "TCP"}));
  EXPECT_FALSE(conflict(any, {"10.0.0.1", 80, "UDP"}));
  EXPECT_FALSE(conflict({"10.0.0.2", 80, "TCP"}, {"10.0.0.1", 80, "TCP"}));
}

TEST(Pod, errors_name_the_field) {
  const auto error = [](const char* spec) {
    const std::string text = R"({"metadata":{"name":"p"},"spec":)" + std::string(spec) + "}";
    const Result<Pod> read = decode_pod(text);
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(decode_pod("{}").error().message, "metadata.name is required");
  EXPECT_EQ(error(R"({"containers":[{"name":"a","resources":{"requests":{"cpu":"1 core"}}}]})")
                .rfind("spec.containers[0].resources.requests.cpu '1 core' is no quantity;", 0),
            0U);
  EXPECT_EQ(error(R"({"containers":[{"resources":{"limits":{"memory":"-1"}}}]})"),
            "spec.containers[0].resources.limits.memory must not be negative");
  EXPECT_EQ(error(R"({"containers":[{"ports":[{"hostPort":"x"}]}]})"),
            "spec.containers[0] ports: [0].hostPort must be a whole number, got a string");
}

TEST(PodResources, are_the_most_that_it_needs_at_any_moment) {
  const Result<PodResources> need = pod_resources(*decode_pod(kFull));
  ASSERT_TRUE(need.ok());
  // warm (3) runs with proxy (0.1) beside it: more than main + side + proxy = 2.1. Overhead 0.25.
  EXPECT_EQ(need->resources.cpu_milli, 3350);
  EXPECT_EQ(need->resources.memory_bytes, (1024 + 64) * kMiB);
  EXPECT_EQ(need->gpus, 2);
  EXPECT_EQ(need->resources.named,
            (std::vector<NamedAmount>{{"ephemeral-storage", 1'000'000'000},
                                      {"pods", 1},
                                      {"addresses of host port 9000/UDP", 1},
                                      {"address 10.0.0.1 of host port 9000/UDP", 1},
                                      {"addresses of host port 8080/TCP", 64}}));
}

TEST(Pod, words_that_are_newer_than_this_program_take_nothing) {
  const Result<Pod> pod = decode_pod(R"({"metadata":{"name":"p"},"spec":{"tolerations":
    [{"key":"a","operator":"Gt","value":"1"},{"key":"b","operator":"Exists","effect":"New"}],
    "affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"labelSelector":
    {"matchExpressions":[{"key":"a","operator":"Like","values":["x"]}]}}]}}}})");
  ASSERT_TRUE(pod.ok()) << pod.error().message;
  EXPECT_TRUE(pod->tolerations.empty());
  EXPECT_FALSE(matches(pod->pod_affinity.required[0].selector, Labels{{"a", "x"}}));
}

TEST(PodResources, while_it_shrinks_are_what_the_node_still_keeps) {
  const Result<PodResources> need = pod_resources(*decode_pod(
      R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","resources":{"requests":
      {"cpu":"1","memory":"3Gi"}}}]},"status":{"containerStatuses":[{"name":"c",
      "allocatedResources":{"cpu":"2","memory":"1Gi"},"resources":{"requests":{"cpu":"1500m"}}}]}})"));
  ASSERT_TRUE(need.ok());
  EXPECT_EQ(need->resources.cpu_milli, 2000);
  EXPECT_EQ(need->resources.memory_bytes, 3072 * kMiB);
}

TEST(PodResources, of_the_whole_pod_replace_the_sum) {
  const Result<PodResources> need = pod_resources(*decode_pod(
      R"({"metadata":{"name":"p"},"spec":{"resources":{"requests":{"cpu":"8"},"limits":{"memory":
      "2Gi","nvidia.com/gpu":"9"}},"containers":[{"resources":{"requests":{"cpu":"1","memory":"1Gi",
      "rdma/hca":"1"},"limits":{"nvidia.com/gpu":"1"}}}],"overhead":{"cpu":"1"}}})"));
  ASSERT_TRUE(need.ok());
  EXPECT_EQ(need->resources.cpu_milli, 9000);
  EXPECT_EQ(need->resources.memory_bytes, 2048 * kMiB);
  EXPECT_EQ(need->gpus, 1);
  EXPECT_EQ(need->resources.named, (std::vector<NamedAmount>{{"rdma/hca", 1}, {"pods", 1}}));
}

TEST(PodResources, devices_are_whole_and_of_one_node) {
  const auto limit = [](const char* resource, const char* amount) {
    return pod_resources(*decode_pod(R"({"metadata":{"name":"p"},"spec":{"containers":[{"resources":
      {"limits":{")" + std::string(resource) +
                                     R"(":")" + amount + R"("}}}]}})"));
  };
  EXPECT_EQ(limit("nvidia.com/mig-1g.10gb", "2")->mig, (std::vector<MigAsk>{{"1g.10gb", 2}}));
  EXPECT_EQ(limit("nvidia.com/gpu", "500m").error().message,
            "the pod's nvidia.com/gpu, all containers together, must be a whole number");
  EXPECT_EQ(limit("nvidia.com/gpu", "100").error().message,
            "the pod's nvidia.com/gpu, all containers together, must be at most 64, got 100");
  EXPECT_EQ(limit("memory", "12E").error().message,
            "the pod's memory, all containers together, is more than any node has: at most "
            "100000000000000");
}

}  // namespace
}  // namespace gs::kube
