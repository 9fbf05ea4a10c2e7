#include "wire/kube/task_request.hpp"

#include <gtest/gtest.h>

#include "wire/kube/gang.hpp"
#include "wire/kube/node_model.hpp"

namespace gs::kube {
namespace {

Pod pod_of(const std::string& spec, Labels annotations = {}) {
  Pod pod = decode_pod(R"({"metadata":{"name":"p"},"spec":)" + spec + "}").value();
  pod.meta.annotations = std::move(annotations);
  return pod;
}
Pod with_gpus(int count, Labels annotations = {}) {
  return pod_of(R"({"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":")" +
                    std::to_string(count) + R"("}}}]})",
                std::move(annotations));
}
GpuClaim claim_of(const std::string& spec) {
  return decode_claim(R"({"metadata":{"name":"c"},"spec":)" + spec + "}").value();
}
Workload workload(const char* kind, int pods, Labels annotations = {}) {
  Workload owner;
  owner.kind = kind;
  owner.meta.name = "train";
  owner.meta.annotations = std::move(annotations);
  owner.pods = pods;
  return owner;
}
std::string error_of(const Pod& pod, const RequestContext& context = {}) {
  const auto reading = task_request(pod, context);
  return reading ? "" : reading.error().message;
}

TEST(TaskRequest, of_a_plain_pod) {
  const auto reading = task_request(
      pod_of(R"({"nodeSelector":{"zone":"a"},"tolerations":[{"operator":"Exists"}],"containers":
       [{"resources":{"requests":{"cpu":"2","memory":"1Gi"},"limits":{"nvidia.com/gpu":2}}}]})"),
      {});
  ASSERT_TRUE(reading.ok()) << reading.error().message;
  const TaskRequest& request = reading->request;
  EXPECT_EQ(request.gpu.count, 2);
  EXPECT_EQ(request.gpu.sharing, Sharing::Exclusive);
  EXPECT_EQ(request.resources.cpu_milli, 2000);
  EXPECT_EQ(request.selector, (Labels{{"zone", "a"}}));
  EXPECT_EQ(request.tolerations.size(), 1U);
  EXPECT_TRUE(reading->warnings.empty());

  const auto mig = task_request(
      pod_of(R"({"containers":[{"resources":{"limits":{"nvidia.com/mig-1g.10gb":2}}}]})"), {});
  ASSERT_TRUE(mig.ok());
  EXPECT_EQ(mig->request.gpu.sharing, Sharing::Mig);
  EXPECT_EQ(mig->request.gpu.count, 0);
}

TEST(TaskRequest, node_affinity_of_names_alone_becomes_a_list_of_nodes) {
  constexpr const char* kAffinity = R"({"affinity":{"nodeAffinity":{
    "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[%]}}}})";
  const auto request = [&](const std::string& terms) {
    std::string text = kAffinity;
    text.replace(text.find('%'), 1, terms);
    return task_request(pod_of(text), {}).value().request;
  };
  const std::string name =
      R"({"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]})";
  const std::string label = R"({"matchExpressions":[{"key":"gpu","operator":"Exists"}]})";
  EXPECT_EQ(request(name).only_nodes, (std::vector<std::string>{"n1"}));
  EXPECT_TRUE(request(name).affinity.empty());

  const TaskRequest either = request(name + "," + label);
  EXPECT_TRUE(either.only_nodes.empty());
  ASSERT_EQ(either.affinity.size(), 2U);
  Labels n1;
  set_label(n1, kNodeNameKey, "n1");
  EXPECT_TRUE(gs::matches(either.affinity[0], n1));
  EXPECT_FALSE(gs::matches(either.affinity[1], n1));

  for (const std::string& nothing : {std::string("{}"), std::string()}) {
    const TaskRequest none = request(nothing);
    ASSERT_EQ(none.affinity.size(), 1U);
    EXPECT_FALSE(gs::matches(none.affinity[0], n1)) << "a term without a condition takes no node";
  }
}

TEST(TaskRequest, claim_and_limit_must_agree) {
  const GpuClaim two = claim_of(R"({"devices":{"count":2,"policy":"spread"},
    "selector":{"matchLabels":{"gpu-type":"a100"}},"fabric":{"rdma":"Required"}})");
  RequestContext context;
  context.claim = &two;
  const auto reading = task_request(with_gpus(2), context);
  ASSERT_TRUE(reading.ok()) << reading.error().message;
  EXPECT_EQ(reading->request.gpu.policy, DevicePolicy::Spread);
  EXPECT_EQ(reading->request.rdma, Wish::Required);
  ASSERT_EQ(reading->request.affinity.size(), 1U);
  EXPECT_TRUE(gs::matches(reading->request.affinity[0], Labels{{"gpu-type", "a100"}}));
  EXPECT_TRUE(task_request(with_gpus(0), context).ok()) << "no limit is no disagreement";
  EXPECT_EQ(error_of(with_gpus(1), context),
            "GpuClaim 'c' asks for 2 GPUs but the containers' nvidia.com/gpu limits for 1: make "
            "them equal or remove the limits");
  const GpuClaim mig =
      claim_of(R"({"devices":{"count":1,"exclusivity":"MIG","migProfile":"1g.10gb"}})");
  context.claim = &mig;
  EXPECT_EQ(error_of(with_gpus(1), context),
            "GpuClaim 'c' asks for MIG instances but the containers' limits for 1 GPU "
            "(nvidia.com/gpu): remove the limit");
}

TEST(TaskRequest, a_line_of_the_map_pins_node_and_devices) {
  const SchedulingMap map = parse_scheduling_map("0=node1:0,1\n1=node2:2").value();
  RequestContext context;
  context.pin = map.find(0);
  const auto reading = task_request(with_gpus(0), context);
  ASSERT_TRUE(reading.ok()) << reading.error().message;
  EXPECT_EQ(reading->request.only_nodes, (std::vector<std::string>{"node1"}));
  EXPECT_EQ(reading->request.gpu.pinned_ids, (std::vector<int>{0, 1}));
  EXPECT_EQ(reading->request.gpu.count, 2);
  EXPECT_EQ(error_of(with_gpus(1), context),
            "gpu-scheduling-map line 1 gives the pod 2 GPUs but the containers' nvidia.com/gpu "
            "limits ask for 1: make them equal");
  const GpuClaim shared = claim_of(R"({"devices":{"count":2,"exclusivity":"Shared"}})");
  context.claim = &shared;
  EXPECT_EQ(error_of(with_gpus(0), context),
            "gpu-scheduling-map line 1 names whole GPUs but GpuClaim 'c' asks for parts of them: "
            "use one or the other");
}

TEST(TaskRequest, gpu_count_is_the_total_of_all_pods) {
  Workload job = workload("Job", 4,
                          {{"topology.scheduler/gpu-count", "16"},
                           {"topology.scheduler/network-bandwidth", "200Gb"},
                           {"topology.scheduler/placement-strategy", "consolidated"},
                           {"topology.scheduler/preferred-domain", "spine-1"}});
  RequestContext context;
  context.owners = {&job};
  const auto reading = task_request(with_gpus(0), context);
  ASSERT_TRUE(reading.ok()) << reading.error().message;
  EXPECT_EQ(reading->request.gpu.count, 4);
  EXPECT_EQ(reading->request.min_network_gbps, 200);
  EXPECT_EQ(reading->request.strategy, Strategy::Consolidated);
  EXPECT_EQ(reading->request.preferred_domain, "spine-1");

  const auto limited = task_request(with_gpus(8), context);
  ASSERT_TRUE(limited.ok());
  EXPECT_EQ(limited->request.gpu.count, 8) << "the limit counts";
  EXPECT_EQ(limited->warnings,
            (std::vector<std::string>{"annotation topology.scheduler/gpu-count says 16 but 4 pods "
                                      "with 8 GPUs each are asked for; the latter counts"}));
  job.pods = 3;
  EXPECT_EQ(error_of(with_gpus(0), context),
            "annotation topology.scheduler/gpu-count is the total of all pods and must divide by "
            "their number: 16 GPUs, 3 pods");
  context.known_domains = {"leaf-1", "leaf-2"};
  EXPECT_EQ(error_of(with_gpus(1), context),
            "annotation topology.scheduler/preferred-domain must be one of leaf-1, leaf-2; got "
            "'spine-1'");
}

TEST(TaskRequest, a_pod_that_its_owner_no_longer_wants_counts_as_one) {
  const Workload none = workload("ReplicaSet", 0, {{"topology.scheduler/gpu-count", "4"}});
  RequestContext context;
  context.owners = {&none};
  const auto reading = task_request(with_gpus(0), context);
  ASSERT_TRUE(reading.ok()) << reading.error().message;
  EXPECT_EQ(reading->request.gpu.count, 4);
}

TEST(TaskRequest, the_deployment_above_a_replica_set_is_what_is_divided_by) {
  const Workload set = workload("ReplicaSet", 1), deployment = workload("Deployment", 2);
  RequestContext context;
  context.owners = {&set, &deployment};
  const auto reading = task_request(with_gpus(0, {{"topology.scheduler/gpu-count", "4"}}), context);
  ASSERT_TRUE(reading.ok()) << reading.error().message;
  EXPECT_EQ(reading->request.gpu.count, 2);
}

TEST(TopologyAsk, bad_values_are_refused_with_the_valid_ones) {
  const auto error = [](const char* name, const char* value) {
    return error_of(with_gpus(1, {{name, value}}));
  };
  EXPECT_EQ(error("topology.scheduler/gpu-count", "many"),
            "annotation topology.scheduler/gpu-count must be a whole number from 1 to 1000000, "
            "such as \"8\", got 'many'");
  EXPECT_EQ(error("topology.scheduler/network-bandwidth", "fast"),
            "annotation topology.scheduler/network-bandwidth must be a bandwidth such as 100Gb, "
            "100Gbps or 12.5GB/s, got 'fast'");
  EXPECT_EQ(error("topology.scheduler/latency-sensitive", "yes"),
            "annotation topology.scheduler/latency-sensitive must be \"true\" or \"false\", got "
            "'yes'");
  EXPECT_EQ(error("topology.scheduler/placement-strategy", "tight"),
            "annotation topology.scheduler/placement-strategy must be one of consolidated, "
            "distributed, balanced, got 'tight'");
  const auto typo = task_request(with_gpus(1, {{"topology.scheduler/gpu-cuont", "1"}}), {});
  ASSERT_TRUE(typo.ok());
  EXPECT_EQ(typo->warnings, (std::vector<std::string>{
                                "annotation topology.scheduler/gpu-cuont is not known and has no "
                                "effect; did you mean topology.scheduler/gpu-count?"}));
}

TEST(TopologyAsk, bandwidths) {
  EXPECT_EQ(parse_bandwidth_gbps("100Gb").value(), 100);
  EXPECT_EQ(parse_bandwidth_gbps("100Gbps").value(), 100);
  EXPECT_EQ(parse_bandwidth_gbps("12.5GB/s").value(), 100);
  EXPECT_EQ(parse_bandwidth_gbps("0.3Gb").value(), 1);
  for (const char* bad :
       {"", "100", "Gb", "-1Gb", "1e3Gb", "100 Gb", "100gb", "infGb", "99999999Gb"})
    EXPECT_FALSE(parse_bandwidth_gbps(bad).ok()) << bad;
}

TEST(Gang, has_a_name_and_a_size_or_a_reason) {
  Meta pod;
  Workload job = workload("Job", 4);
  EXPECT_FALSE(gang_name(pod, nullptr, {&job})->has_value());
  pod.annotations = {{"gpu.scheduling/gang", "true"}};
  EXPECT_EQ(gang_name(pod, nullptr, {&job}).value(), "Job/train");
  EXPECT_EQ(gang_name(pod, nullptr, {}).error().message,
            "annotation gpu.scheduling/gang is \"true\" but nothing owns the pod; name the gang "
            "instead");
  EXPECT_EQ(gang_ask("Job/train", nullptr, pod, {&job})->size, 4);
  EXPECT_EQ(gang_ask("Job/train", nullptr, pod, {&job})->size_from, "Job train");

  Workload set = workload("JobSet", 6);
  EXPECT_EQ(gang_name(pod, nullptr, {&job, &set}).value(), "JobSet/train") << "all pods of it";
  EXPECT_EQ(gang_ask("JobSet/train", nullptr, pod, {&job, &set})->size, 6);
  set.meta.annotations = {{"gpu.scheduling/gang", "true"}};
  EXPECT_EQ(gang_name(Meta{}, nullptr, {&job, &set}).value(), "JobSet/train");
  job.meta.annotations = {{"gpu.scheduling/gang", "true"}};
  EXPECT_EQ(gang_name(Meta{}, nullptr, {&job, &set}).value(), "Job/train") << "the nearer counts";
  job.meta.annotations.clear();

  const GpuClaim claim = claim_of(R"({"devices":{"count":1},"gangRef":"g"})");
  EXPECT_EQ(gang_name(pod, &claim, {&job}).value(), "g");
  PodGroup group;
  group.meta.name = "g";
  group.min_member = 8;
  EXPECT_EQ(gang_ask("g", &group, pod, {&job})->size, 8);
  pod.annotations = {{"gpu.scheduling/gang-size", "6"}};
  EXPECT_EQ(gang_ask("g", nullptr, pod, {&job})->size, 6);
  pod.annotations = {{"gpu.scheduling/gang-size", "0"}};
  EXPECT_FALSE(gang_ask("g", nullptr, pod, {&job}).ok());
  const GangAsk unknown = gang_ask("g", nullptr, Meta{}, {}).value();
  EXPECT_FALSE(unknown.size.has_value());
  EXPECT_EQ(unknown.size_from,
            "the size of gang 'g' is not known: create a PodGroup 'g' with minMember, or set the "
            "annotation gpu.scheduling/gang-size on its pods");
}

TEST(Gang, each_group_of_a_leader_worker_set_is_one) {
  Meta pod;
  pod.labels = {{"leaderworkerset.sigs.k8s.io/group-index", "2"},
                {"leaderworkerset.sigs.k8s.io/name", "serve"}};
  pod.annotations = {{"gpu.scheduling/gang", "true"}, {"leaderworkerset.sigs.k8s.io/size", "4"}};
  const Workload leaders = workload("StatefulSet", 3);
  EXPECT_EQ(gang_name(pod, nullptr, {&leaders}).value(), "LeaderWorkerSet/serve/2");
  const GangAsk ask = gang_ask("LeaderWorkerSet/serve/2", nullptr, pod, {&leaders}).value();
  EXPECT_EQ(ask.size, 4);
  EXPECT_EQ(ask.size_from, "annotation leaderworkerset.sigs.k8s.io/size");
  pod.annotations = {{"gpu.scheduling/gang", "true"}};
  EXPECT_FALSE(gang_ask("LeaderWorkerSet/serve/2", nullptr, pod, {&leaders})->size.has_value())
      << "the number of leaders says nothing";
}

}  // namespace
}  // namespace gs::kube
