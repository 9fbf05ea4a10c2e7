#include <gtest/gtest.h>

#include "wire/kube/instances.hpp"
#include "wire/kube/lease.hpp"
#include "wire/kube/node.hpp"
#include "wire/kube/policy.hpp"
#include "wire/kube/storage.hpp"
#include "wire/kube/workload.hpp"

namespace gs::kube {
namespace {

TEST(KubeEnvelope, watch_events_and_lists_hand_out_the_objects) {
  const auto event = decode_watch_event(R"({"type":"MODIFIED","object":{"kind":"Pod"}})");
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(event->type, WatchType::Modified);
  EXPECT_EQ(event->object, R"({"kind":"Pod"})");
  EXPECT_EQ(decode_watch_event(R"({"type":"NEW","object":{}})").error().message,
            "a watch event of unknown type 'NEW'");
  EXPECT_FALSE(decode_watch_event(R"({"type":"ADDED"})").ok());

  std::vector<std::string> items;
  const auto list = decode_list(
      R"({"metadata":{"resourceVersion":"9","continue":"c"},"items":[{"a":1},{"b":[2]}]})",
      [&](std::string_view item) { items.emplace_back(item); });
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->resource_version, "9");
  EXPECT_EQ(list->continue_token, "c");
  EXPECT_EQ(items, (std::vector<std::string>{R"({"a":1})", R"({"b":[2]})"}));

  const auto status = decode_status(
      R"({"kind":"Status","code":410,"reason":"Expired","message":"too old","details":
      {"retryAfterSeconds":3}})");
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->code, 410);
  EXPECT_EQ(status->retry_after_s, 3);
}

TEST(KubeNode, is_decoded) {
  const auto node = decode_node(R"({"metadata":{"name":"n1","labels":{"zone":"a"}},
    "spec":{"unschedulable":true,"taints":[{"key":"gpu","effect":"NoSchedule"},
     {"key":"odd","effect":"New"}]},
    "status":{"capacity":{"cpu":"9"},"allocatable":{"cpu":"7500m","nvidia.com/gpu":"8"},
     "conditions":[{"type":"MemoryPressure","status":"True"},{"type":"Ready","status":"True"}]}})");
  ASSERT_TRUE(node.ok()) << node.error().message;
  EXPECT_TRUE(node->unschedulable);
  EXPECT_TRUE(node->ready);
  EXPECT_EQ(node->taints, (std::vector<Taint>{{"gpu", "", TaintEffect::NoSchedule}}));
  EXPECT_EQ(find(node->allocatable, "cpu")->milli(), 7500);
  EXPECT_FALSE(decode_node(R"({"metadata":{"name":"n1"}})")->ready);
}

TEST(KubeStorage, is_decoded) {
  const auto claim = decode_volume_claim(R"({"metadata":{"name":"data","namespace":"ml",
    "annotations":{"volume.kubernetes.io/selected-node":"n1"}},"spec":{"storageClassName":"",
    "volumeName":"pv-1","resources":{"requests":{"storage":"1Gi"}},"accessModes":["ReadWriteOnce"]},
    "status":{"phase":"Bound"}})");
  ASSERT_TRUE(claim.ok()) << claim.error().message;
  EXPECT_TRUE(claim->bound);
  EXPECT_TRUE(claim->has_class);
  EXPECT_EQ(*claim->selected_node(), "n1");
  EXPECT_EQ(claim->size.value(), 1 << 30);
  EXPECT_FALSE(decode_volume_claim(R"({"spec":{"storageClassName":null}})")->has_class);

  const auto volume = decode_volume(R"({"metadata":{"name":"pv-1"},"spec":{"capacity":{"storage":
    "2Gi"},"claimRef":{"namespace":"ml","name":"data"},"nodeAffinity":{"required":
    {"nodeSelectorTerms":[{"matchExpressions":[{"key":"h","operator":"In","values":["n1"]}]}]}}}})");
  ASSERT_TRUE(volume.ok()) << volume.error().message;
  EXPECT_EQ(volume->nodes->front().labels.front().values.front(), "n1");
  EXPECT_EQ(volume->claim_name, "data");

  const auto klass = decode_storage_class(R"({"metadata":{"name":"local","annotations":
    {"storageclass.kubernetes.io/is-default-class":"true"}},"provisioner":"p",
    "volumeBindingMode":"WaitForFirstConsumer","allowedTopologies":[{"matchLabelExpressions":
    [{"key":"zone","values":["a"]}]}]})");
  ASSERT_TRUE(klass.ok()) << klass.error().message;
  EXPECT_TRUE(klass->wait_for_pod);
  EXPECT_TRUE(klass->is_default);
  EXPECT_EQ(klass->allowed.front().labels.front().op, LabelOp::In);
}

TEST(KubeStorage, is_a_file_system_unless_its_mode_says_otherwise) {
  for (const char* spec : {"{}", R"({"volumeMode":null})", R"({"volumeMode":""})"}) {
    const std::string text = R"({"spec":)" + std::string(spec) + "}";
    EXPECT_EQ(decode_volume_claim(text)->volume_mode, "Filesystem") << spec;
    EXPECT_EQ(decode_volume(text)->volume_mode, "Filesystem") << spec;
  }
  const std::string block = R"({"spec":{"volumeMode":"Block"}})";
  EXPECT_EQ(decode_volume_claim(block)->volume_mode, "Block");
  EXPECT_EQ(decode_volume(block)->volume_mode, "Block");
}

TEST(KubeLease, knows_its_gpu_and_its_holders) {
  const auto lease = decode_lease(R"({"metadata":{"name":"gpu-n-1-0","annotations":
    {"gpu.scheduling/node":"n-1","gpu.scheduling/gpu":"0"}},"spec":{"holderIdentity":"u-1",
    "renewTime":"2026-01-31T12:00:00.123456Z"}})");
  ASSERT_TRUE(lease.ok()) << lease.error().message;
  EXPECT_EQ(lease->node, "n-1");
  EXPECT_EQ(lease->gpu, 0);
  EXPECT_EQ(lease->holders, (std::vector<GpuHolder>{{"u-1", 1000, 0, {}, {}, {}}}));
  EXPECT_EQ(lease->renewed->ms, 1769860800123);
  const auto shared = decode_lease(R"({"metadata":{"name":"gpu-n-1-0","namespace":"gpu-scheduler",
    "annotations":{"gpu.scheduling/holders":"[{\"uid\":\"a\",\"milli\":250},{\"uid\":\"b\"}]"}}})");
  ASSERT_TRUE(shared.ok()) << shared.error().message;
  EXPECT_EQ(shared->holders.size(), 2U);
  EXPECT_EQ(shared->holders[0].milli, 250);
  EXPECT_EQ(shared->gpu, -1);
  EXPECT_EQ(
      decode_lease(R"({"metadata":{"name":"l","annotations":{"gpu.scheduling/holders":"[{}]"}}})")
          .error()
          .message,
      "lease l: annotation gpu.scheduling/holders: uid is required");
}

TEST(KubeLease, a_gpu_that_no_node_can_have_is_none) {
  const auto gpu_of = [](const std::string& id) {
    return decode_lease(R"({"metadata":{"name":"l","annotations":{"gpu.scheduling/node":"n",)"
                        R"("gpu.scheduling/gpu":")" +
                        id + R"("}}})")
        ->gpu;
  };
  EXPECT_EQ(gpu_of("63"), 63);
  EXPECT_EQ(gpu_of("64"), -1);
  EXPECT_EQ(gpu_of("2147483584"), -1);
}

TEST(KubeInstances, are_of_a_gpu_and_a_profile_that_can_be) {
  EXPECT_EQ(instances_text(*parse_instances("0:1g.10gb:4 63:3g.40gb:0")),
            "0:1g.10gb:4 63:3g.40gb:0");
  EXPECT_TRUE(parse_instances("")->empty());
  for (const char* text : {"64:1g.10gb:0", "-1:1g.10gb:0", "0::0", "0:big:0", "0:1g.10gb", "x"})
    EXPECT_FALSE(parse_instances(text)) << text;
}

TEST(KubeLease, a_pod_joins_as_long_as_compute_and_memory_are_left) {
  const auto part = [](int milli, std::int64_t memory_mib, std::int64_t gpu_memory_mib) {
    GpuHolder holder;
    holder.milli = milli;
    holder.memory_mib = memory_mib;
    holder.gpu_memory_mib = gpu_memory_mib;
    return holder;
  };
  Lease lease;
  lease.holders = {part(100, 50'000, 80'000)};
  EXPECT_TRUE(may_join(lease, part(100, 30'000, 80'000)));
  EXPECT_FALSE(may_join(lease, part(100, 30'001, 80'000)));
  EXPECT_FALSE(may_join(lease, part(901, 0, 80'000)));
  EXPECT_FALSE(may_join(lease, part(400, 0, 0))) << "memory as much as compute: 40 %";
  EXPECT_TRUE(may_join(lease, part(300, 0, 0)));
  lease.holders = {part(100, 50'000, 0)};
  EXPECT_TRUE(may_join(lease, part(900, 50'000, 0))) << "nobody knows how much there is";
  EXPECT_FALSE(may_join(lease, part(900, 50'000, 80'000)));
  EXPECT_FALSE(may_join(lease, GpuHolder{})) << "a whole GPU";
}

TEST(KubeLease, names_of_long_nodes_stay_different_and_short_enough) {
  EXPECT_EQ(gpu_lease_name("node-a", 3), "gpu-node-a-3");
  const std::string a = gpu_lease_name(std::string(253, 'a'), 3);
  const std::string b = gpu_lease_name(std::string(252, 'a') + "b", 3);
  EXPECT_EQ(a.size(), 253U);
  EXPECT_NE(a, b);
}

TEST(KubePolicy, is_decoded) {
  const auto klass =
      decode_priority_class(R"({"metadata":{"name":"high"},"value":1000000,"globalDefault":true})");
  EXPECT_EQ(klass->value, 1'000'000);
  EXPECT_TRUE(klass->is_default && klass->may_preempt);
  const auto budget = decode_disruption_budget(R"({"metadata":{"name":"b","generation":2},
    "spec":{"selector":{"matchLabels":{"app":"x"}}},"status":{"disruptionsAllowed":1,
    "observedGeneration":2}})");
  EXPECT_TRUE(budget->current);
  EXPECT_EQ(budget->disruptions_allowed, 1);
  EXPECT_TRUE(matches(budget->selector, Labels{{"app", "x"}}));
  EXPECT_FALSE(decode_disruption_budget(R"({"metadata":{"generation":1}})")->current);
  EXPECT_TRUE(decode_namespace(R"({"status":{"phase":"Terminating"}})")->terminating);
}

TEST(KubePolicy, priorities_keep_their_order) {
  int before = -1;
  for (const int priority : {-2'147'483'647 - 1, -9'000, 0, 1, 1000, 900'000, 900'001, 1'000'000,
                             1'000'000'000, 2'000'000'000, 2'000'001'000, 2'147'483'647}) {
    const int mapped = engine_priority(priority);
    EXPECT_GE(mapped, before) << priority;
    EXPECT_LE(mapped, 1'000'000);
    before = mapped;
  }
  EXPECT_EQ(engine_priority(1000) - engine_priority(0), 1000);
  EXPECT_GT(engine_priority(2'000'000'000), engine_priority(1'000'000'000));
}

TEST(KubeWorkload, says_how_many_pods_run_together) {
  const auto pods = [](const char* text) {
    const auto workload = decode_workload(text);
    return workload ? workload->pods.value_or(-1) : -2;
  };
  EXPECT_EQ(pods(R"({"kind":"Job","spec":{"parallelism":4,"completions":8}})"), 4);
  EXPECT_EQ(pods(R"({"kind":"Job","spec":{"parallelism":4,"completions":3}})"), 3);
  EXPECT_EQ(pods(R"({"kind":"Job","spec":{}})"), 1);
  EXPECT_EQ(pods(R"({"kind":"Deployment","spec":{"replicas":3}})"), 3);
  EXPECT_EQ(pods(R"({"kind":"StatefulSet","spec":{}})"), 1);
  EXPECT_EQ(pods(R"({"kind":"JobSet","spec":{"replicatedJobs":[{"name":"a","replicas":2,"template":
     {"spec":{"parallelism":4}}},{"name":"b","template":{"spec":{}}}]}})"),
            9);
  EXPECT_EQ(pods(R"({"kind":"PyTorchJob","spec":{"pytorchReplicaSpecs":{"Master":{"replicas":1},
     "Worker":{"replicas":7}}}})"),
            8);
  EXPECT_EQ(pods(R"({"kind":"RayCluster","spec":{"headGroupSpec":{},"workerGroupSpecs":[
     {"replicas":3,"numOfHosts":2},{"replicas":1,"minReplicas":2},{"replicas":9,"maxReplicas":4},
     {"replicas":5,"suspend":true}]}})"),
            1 + 6 + 2 + 4);
  EXPECT_EQ(pods(R"({"kind":"RayCluster","spec":{"enableInTreeAutoscaling":true,"headGroupSpec":{},
     "workerGroupSpecs":[{"replicas":3}]}})"),
            -1)
      << "as many as its autoscaler says";
  EXPECT_EQ(pods(R"({"kind":"Other","spec":{}})"), -1);
}

TEST(KubeWorkload, knows_who_makes_pods_by_version_and_kind) {
  const auto makes = [](const char* api, const char* kind) {
    return makes_pods({api, kind, "name", "uid", true});
  };
  EXPECT_TRUE(makes("batch/v1", "Job") && makes("jobset.x-k8s.io/v1alpha2", "JobSet"));
  EXPECT_TRUE(makes("kubeflow.org/v1", "MPIJob") && makes("ray.io/v1", "RayCluster"));
  EXPECT_FALSE(makes("kubeflow.org/v2beta1", "MPIJob")) << "of another project";
  EXPECT_FALSE(makes("batch/v1", "CronJob") || makes("v1", "Pod"));
}

TEST(KubeWorkload, pod_groups_of_three_styles) {
  const auto group = [](const char* text) { return decode_pod_group(text).value(); };
  EXPECT_EQ(group(R"({"apiVersion":"scheduling.x-k8s.io/v1alpha1","spec":{"minMember":3,
    "scheduleTimeoutSeconds":10}})")
                .min_member,
            3);
  const PodGroup volcano = group(R"({"apiVersion":"scheduling.volcano.sh/v1beta1","spec":
    {"minMember":4,"queue":"q","priorityClassName":"high"}})");
  EXPECT_EQ(volcano.queue, "q");
  EXPECT_EQ(volcano.priority_class, "high");
  EXPECT_EQ(volcano.min_member, 4);
  EXPECT_FALSE(volcano.has_sub_groups);
  const PodGroup kai = group(R"({"apiVersion":"scheduling.run.ai/v2alpha2","spec":{"minMember":2,
    "topologyConstraint":{"requiredTopologyLevel":"rack"},"subGroups":[{"name":"a","minMember":1}]}})");
  EXPECT_TRUE(kai.has_sub_groups);
  EXPECT_EQ(kai.topology.required_level, "rack");
  EXPECT_FALSE(decode_pod_group(R"({"spec":{"minMember":-1}})").ok());

  Meta pod;
  EXPECT_EQ(pod_group_name(pod), nullptr);
  pod.annotations = {{"pod-group-name", "g1"}};
  EXPECT_EQ(*pod_group_name(pod), "g1");
  pod.labels = {{"scheduling.x-k8s.io/pod-group", "g2"}};
  EXPECT_EQ(*pod_group_name(pod), "g2");
}

}  // namespace
}  // namespace gs::kube
