#include "wire/kube/admission.hpp"

#include <gtest/gtest.h>

#include "wire/kube/mutate.hpp"
#include "wire/kube/review.hpp"

namespace gs::kube {
namespace {

std::string review(const std::string& kind, const std::string& object) {
  return R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"r-1",
    "kind":{"group":"","version":"v1","kind":")" +
         kind + R"("},"namespace":"ml","operation":"CREATE","object":)" + object +
         R"(,"oldObject":null,"dryRun":true}})";
}

TEST(Admission, a_review_is_decoded) {
  const std::string text = review("Pod", R"({"metadata":{}})");
  const auto request = decode_review(text);
  ASSERT_TRUE(request.ok()) << request.error().message;
  EXPECT_EQ(request->uid, "r-1");
  EXPECT_EQ(request->kind, "Pod");
  EXPECT_EQ(request->ns, "ml");
  EXPECT_TRUE(request->dry_run);
  EXPECT_EQ(request->object, R"({"metadata":{}})");
  EXPECT_TRUE(request->old_object.empty());
}

TEST(Admission, what_is_no_review_is_refused_in_words) {
  EXPECT_EQ(decode_review("{}").error().message,
            "expected kind AdmissionReview of admission.k8s.io/v1, got '' of ''");
  EXPECT_EQ(decode_review(R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"})")
                .error()
                .message,
            "not an AdmissionReview: request.uid is required");
  EXPECT_EQ(decode_review(R"({"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"})")
                .error()
                .message,
            "expected kind AdmissionReview of admission.k8s.io/v1, got 'AdmissionReview' of "
            "'admission.k8s.io/v1beta1'");
  for (const char* bad : {"", "x", "[]", "{\"request\":[]}", "{\"request\":{\"uid\":1}}",
                          "{\"request\":{\"uid\":\"a\",\"object\":\"text\"}}"})
    EXPECT_FALSE(decode_review(bad).ok()) << bad;
}

TEST(Admission, an_answer_carries_the_patch_in_base64) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  AdmissionResponse response;
  response.uid = "r-1";
  response.patch.push_back({{"op", "add"}});
  response.warnings = {"w"};
  const Json json = parse_json(encode_review(response)).value();
  EXPECT_EQ(json["response"]["patch"], base64(R"([{"op":"add"}])"));
  EXPECT_EQ(json["response"]["warnings"][0], "w");
  response.allowed = false;
  response.message = "no";
  const Json refused = parse_json(encode_review(response)).value();
  EXPECT_EQ(refused["response"]["status"]["message"], "no");
  EXPECT_FALSE(refused["response"].contains("patch"));
}

Json patched(const std::string& pod, const MutateOptions& options = {}) {
  const auto mutation = mutate_pod(pod, options);
  EXPECT_TRUE(mutation.ok()) << mutation.error().message;
  return parse_json(pod).value().patch(mutation->patch);
}

const std::string kPod = R"json({"metadata":{"name":"w-1","annotations":
  {"gpu.scheduling/claim":"c"}},"spec":{"schedulerName":"gpu-scheduler","initContainers":
  [{"name":"i"}],"containers":[{"name":"a","env":[{"name":"X","value":"$(CUDA_VISIBLE_DEVICES)"}]},
  {"name":"b"}]}})json";

TEST(Mutate, every_container_refers_to_the_annotation) {
  const Json pod = patched(kPod);
  const Json reference = parse_json(
                             R"({"name":"CUDA_VISIBLE_DEVICES","valueFrom":{"fieldRef":{"fieldPath":
      "metadata.annotations['gpu.scheduling/visible-devices']"}}})")
                             .value();
  EXPECT_EQ(pod["spec"]["initContainers"][0]["env"], Json::array({reference}));
  EXPECT_EQ(pod["spec"]["containers"][0]["env"][0], reference);
  EXPECT_EQ(pod["spec"]["containers"][0]["env"][1]["name"], "X");
  EXPECT_EQ(pod["spec"]["containers"][1]["env"][0], reference);

  Json again = pod;  // as the API server sends it back
  again["spec"]["containers"][1]["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] = "v1";
  const auto second = mutate_pod(again.dump(), {});
  EXPECT_TRUE(second->patch.empty() && second->warnings.empty());
}

TEST(Mutate, the_map_gives_the_literal_where_the_index_is_known) {
  Json pod = parse_json(kPod).value();
  pod["metadata"]["annotations"] = {{"gpu-scheduling-map", "0=node1:0,1\n1=node2:2,3\n"}};
  EXPECT_EQ(patched(pod.dump())["spec"]["containers"][1]["env"][0],
            (Json{{"name", "CUDA_VISIBLE_DEVICES"}, {"value", "2,3"}}));
  pod["metadata"].erase("name");  // a Deployment's pod has only a generateName
  EXPECT_TRUE(patched(pod.dump())["spec"]["containers"][1]["env"][0].contains("valueFrom"));
  pod["metadata"]["annotations"] = {{"gpu.scheduling/allocated", "node-a:4"}};  // a copy has it
  EXPECT_TRUE(patched(pod.dump())["spec"]["containers"][1]["env"][0].contains("valueFrom"));
  pod["spec"]["nodeName"] = "node-a";
  EXPECT_EQ(patched(pod.dump())["spec"]["containers"][1]["env"][0]["value"], "4");
  pod["spec"].erase("nodeName");
  pod["metadata"]["annotations"] = {{"gpu-scheduling-map", "0=node1"}};
  pod["metadata"]["name"] = "w-0";
  EXPECT_FALSE(mutate_pod(pod.dump(), {}).ok());
}

// The environment of container b of kPod, as "NAME=value" or "NAME<annotation".
std::vector<std::string> devices_of_b(const Json& pod, const MutateOptions& options) {
  std::vector<std::string> lines;
  const Json changed = patched(pod.dump(), options);
  for (const Json& entry : changed["spec"]["containers"][1].value("env", Json::array())) {
    std::string line = entry["name"];
    if (entry.contains("value")) {
      line += "=" + entry["value"].get<std::string>();
    } else {
      const std::string path = entry["valueFrom"]["fieldRef"]["fieldPath"];
      const std::size_t from = path.find('/') + 1;
      line += "<" + path.substr(from, path.rfind('\'') - from);
    }
    lines.push_back(line);
  }
  return lines;
}
using Lines = std::vector<std::string>;

Json with_limit(Json pod) {
  pod["spec"]["containers"][1]["resources"]["limits"]["nvidia.com/gpu"] = "2";
  return pod;
}

TEST(Mutate, a_container_that_is_narrowed_to_its_devices_calls_them_as_it_sees_them) {
  const Json pod = parse_json(kPod).value();
  MutateOptions options;
  options.nvidia_visible_devices = true;
  EXPECT_EQ(devices_of_b(pod, options), (Lines{"CUDA_VISIBLE_DEVICES<container-devices",
                                               "NVIDIA_VISIBLE_DEVICES<visible-devices"}));
  EXPECT_EQ(devices_of_b(with_limit(pod), options), Lines{"CUDA_VISIBLE_DEVICES<visible-devices"})
      << "its device plugin sets NVIDIA_VISIBLE_DEVICES";

  Json mapped = pod;
  mapped["metadata"]["annotations"] = {{"gpu-scheduling-map", "1=node2:2,3\n"}};
  EXPECT_EQ(devices_of_b(mapped, options),
            (Lines{"CUDA_VISIBLE_DEVICES=0,1", "NVIDIA_VISIBLE_DEVICES=2,3"}));
  const auto second = mutate_pod(patched(mapped.dump(), options).dump(), options);
  EXPECT_TRUE(second->patch.empty() && second->warnings.empty());

  Json own = pod;
  own["spec"]["containers"][1]["env"] = {{{"name", "NVIDIA_VISIBLE_DEVICES"}, {"value", "all"}}};
  EXPECT_EQ(devices_of_b(own, options),
            (Lines{"CUDA_VISIBLE_DEVICES<visible-devices", "NVIDIA_VISIBLE_DEVICES=all"}));
  EXPECT_EQ(mutate_pod(own.dump(), options)->warnings.size(), 1U);
}

TEST(Mutate, ids_of_a_map_are_no_literals_where_devices_have_uuids) {
  Json pod = parse_json(kPod).value();
  pod["metadata"]["annotations"] = {{"gpu-scheduling-map", "1=node2:2,3\n"}};
  MutateOptions options;
  options.naming = DeviceNaming::Uuid;
  EXPECT_EQ(devices_of_b(pod, options), Lines{"CUDA_VISIBLE_DEVICES<visible-devices"});
  options.nvidia_visible_devices = true;
  EXPECT_EQ(devices_of_b(pod, options), (Lines{"CUDA_VISIBLE_DEVICES<container-devices",
                                               "NVIDIA_VISIBLE_DEVICES<visible-devices"}));
  pod["metadata"]["annotations"] = {{"gpu-scheduling-map", "1=node2"}};
  EXPECT_FALSE(mutate_pod(pod.dump(), options).ok()) << "what is wrong is refused all the same";
}

TEST(Mutate, names_no_devices_where_the_kubelet_chooses_them) {
  const Json pod = parse_json(kPod).value();
  MutateOptions options;
  EXPECT_EQ(devices_of_b(with_limit(pod), options), Lines{"CUDA_VISIBLE_DEVICES<visible-devices"});
  options.kubelet_chooses = true;
  EXPECT_EQ(devices_of_b(with_limit(pod), options), Lines{});
  EXPECT_EQ(devices_of_b(pod, options), Lines{"CUDA_VISIBLE_DEVICES<visible-devices"})
      << "nobody gives it any";
}

TEST(Mutate, keeps_what_the_user_set_and_says_so) {
  Json pod = parse_json(kPod).value();
  pod["spec"]["containers"][1]["env"] = {{{"name", "CUDA_VISIBLE_DEVICES"}, {"value", "7"}}};
  const auto mutation = mutate_pod(pod.dump(), {});
  ASSERT_TRUE(mutation.ok());
  EXPECT_EQ(mutation->warnings, (std::vector<std::string>{
                                    "container 'b' sets CUDA_VISIBLE_DEVICES itself: its value is "
                                    "kept, whatever devices the pod is given"}));
  EXPECT_EQ(mutation->patch.size(), 2U);
}

TEST(Mutate, fabric_of_the_claim_and_other_schedulers_pods) {
  GpuClaim claim;
  claim.rdma = Wish::Preferred;
  claim.cufile = Wish::Required;
  MutateOptions options;
  options.claim = &claim;
  options.nvidia_visible_devices = true;
  Json pod = parse_json(kPod).value();
  pod["spec"]["containers"][1]["resources"]["limits"]["nvidia.com/gpu"] = "1";
  const Json result = patched(pod.dump(), options);
  const auto names = [&](const Json& env) {
    std::string list;
    for (const Json& entry : env) list += entry["name"].get<std::string>() + " ";
    return list;
  };
  EXPECT_EQ(names(result["spec"]["containers"][0]["env"]),
            "CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES NCCL_IB_HCA CUFILE_ENV_PATH_JSON X ");
  EXPECT_EQ(names(result["spec"]["containers"][1]["env"]),
            "CUDA_VISIBLE_DEVICES NCCL_IB_HCA CUFILE_ENV_PATH_JSON ");
  pod["spec"]["schedulerName"] = "default-scheduler";
  EXPECT_TRUE(mutate_pod(pod.dump(), options)->patch.empty());
  EXPECT_FALSE(mutate_pod("{\"spec\":3}", options).ok());
}

AdmissionResponse checked(const std::string& kind, const std::string& object,
                          const ReviewContext& context = {}) {
  const std::string text = review(kind, object);
  return validate(decode_review(text).value(), context);
}

TEST(Review, pods_are_refused_as_the_scheduler_would_refuse_them) {
  EXPECT_TRUE(checked("Pod", kPod).allowed);
  const auto with = [](const char* annotation, const char* value) {
    Json pod = parse_json(kPod).value();
    pod["metadata"]["annotations"] = {{annotation, value}};
    return checked("Pod", pod.dump()).message;
  };
  EXPECT_EQ(with("gpu-scheduling-map", "0=node1:0"),
            "gpu-scheduling-map has no line for index 1, which this pod has");
  EXPECT_EQ(
      with("gpu-scheduling-map", "1=node1:x"),
      "gpu-scheduling-map line 1 ('1=node1:x'): 'x' is no GPU id; ids are 0..63, separated by "
      "commas");
  EXPECT_EQ(with("gpu.scheduling/claim", ""),
            "annotation gpu.scheduling/claim must name a GpuClaim of the pod's namespace");
  EXPECT_EQ(with("gpu.scheduling/gang-size", "x"),
            "annotation gpu.scheduling/gang-size must be a whole number from 1 to 100000, got 'x'");
  EXPECT_NE(with("topology.scheduler/placement-strategy", "x"), "");

  const GpuClaim claim =
      decode_claim(R"({"metadata":{"name":"c"},"spec":{"devices":{"count":2}}})").value();
  ReviewContext context;
  context.claim = &claim;
  Json pod = parse_json(kPod).value();
  pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = 1;
  const AdmissionResponse refused = checked("Pod", pod.dump(), context);
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.uid, "r-1");
  EXPECT_EQ(refused.code, 422);
}

TEST(Mutate, answers_reviews) {
  const std::string text = review("Pod", kPod);
  const AdmissionResponse changed = mutate(decode_review(text).value(), {});
  EXPECT_TRUE(changed.allowed);
  EXPECT_EQ(changed.patch.size(), 3U);
  EXPECT_EQ(changed.uid, "r-1");
  const std::string other = review("Job", kPod);
  EXPECT_TRUE(mutate(decode_review(other).value(), {}).patch.empty());
  const std::string none = review("Pod", "null");
  EXPECT_EQ(mutate(decode_review(none).value(), {}).message, "request.object is missing");
  const std::string broken = review("Pod", R"({"spec":3})");
  EXPECT_EQ(mutate(decode_review(broken).value(), {}).code, 422);
}

// Pods of a Job are reviewed without the Job.
TEST(Review, what_the_owner_knows_is_left_to_the_owner) {
  Json pod = parse_json(kPod).value();
  pod["metadata"]["annotations"] = {{"topology.scheduler/gpu-count", "128"},
                                    {"gpu.scheduling/gang", "true"}};
  EXPECT_FALSE(checked("Pod", pod.dump()).allowed);
  pod["metadata"]["ownerReferences"] = {{{"apiVersion", "batch/v1"},
                                         {"kind", "Job"},
                                         {"name", "j"},
                                         {"uid", "u"},
                                         {"controller", true}}};
  EXPECT_EQ(checked("Pod", pod.dump()).message, "");
  pod["metadata"]["annotations"]["topology.scheduler/gpu-count"] = "x";
  EXPECT_FALSE(checked("Pod", pod.dump()).allowed);

  Json set = parse_json(R"({"kind":"ReplicaSet","metadata":{"name":"r","annotations":
    {"topology.scheduler/gpu-count":"8"}},"spec":{"replicas":3,"template":{"spec":
    {"schedulerName":"gpu-scheduler","containers":[{"name":"c"}]}}}})")
                 .value();
  EXPECT_FALSE(checked("ReplicaSet", set.dump()).allowed);
  set["metadata"]["ownerReferences"] = {{{"apiVersion", "apps/v1"},
                                         {"kind", "Deployment"},
                                         {"name", "d"},
                                         {"uid", "u"},
                                         {"controller", true}}};
  EXPECT_TRUE(checked("ReplicaSet", set.dump()).allowed);
}

TEST(Review, workloads_claims_and_configs) {
  const std::string job = R"({"kind":"Job","metadata":{"name":"j","annotations":
    {"topology.scheduler/gpu-count":"7"}},"spec":{"parallelism":2,"template":{"spec":
    {"schedulerName":"topology-aware-scheduler","containers":[{"name":"c"}]}}}})";
  EXPECT_EQ(checked("Job", job).message,
            "annotation topology.scheduler/gpu-count is the total of all pods and must divide by "
            "their number: 7 GPUs, 2 pods");
  EXPECT_TRUE(checked("ConfigMap", "{}").allowed);
  EXPECT_EQ(checked("GpuClaim", R"({"spec":{"devices":{"count":0}}})").message,
            "spec.devices.count must be 1..64, got 0");
  EXPECT_FALSE(checked("SchedulerConfig", "{}").allowed);
  EXPECT_FALSE(checked("GpuTenant", R"({"metadata":{"name":"t"},"spec":{"x":1}})").allowed);
  const std::string no_object = review("Pod", "null");
  EXPECT_EQ(validate(decode_review(no_object).value(), {}).code, 400);
  const std::string pod = review("Pod", kPod);
  EXPECT_EQ(claim_of(decode_review(pod).value(), {"gpu-scheduler"}), "c");
  EXPECT_EQ(claim_of(decode_review(pod).value(), {"another"}), "");
}

}  // namespace
}  // namespace gs::kube
