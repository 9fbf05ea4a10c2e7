#include "wire/kube/review.hpp"

#include <gtest/gtest.h>

namespace gs::kube {
namespace {

constexpr const char* kOdd =
    "annotation topology.scheduler/gpu-count is the total of all pods and must divide by their "
    "number: 4 GPUs, 3 pods";

Json workload(const std::string& kind, int replicas, const Json& annotations) {
  Json object = parse_json(R"({"metadata":{"name":"w"},"spec":{"template":{"spec":
    {"schedulerName":"gpu-scheduler","containers":[{"name":"c"}]}}}})")
                    .value();
  object["kind"] = kind;
  object["metadata"]["annotations"] = annotations;
  object["spec"][kind == "Job" ? "parallelism" : "replicas"] = replicas;
  return object;
}
Json deployment(int replicas, const char* gpus) {
  return workload("Deployment", replicas, {{"topology.scheduler/gpu-count", gpus}});
}

Json of_deployment(Json set) {
  set["metadata"]["ownerReferences"] = {{{"apiVersion", "apps/v1"},
                                         {"kind", "Deployment"},
                                         {"name", "d"},
                                         {"uid", "u"},
                                         {"controller", true}}};
  return set;
}

Json deleted(Json object) {
  object["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:00Z";
  return object;
}

AdmissionResponse reviewed(const std::string& kind, const char* operation, const Json& object,
                           const Json& old_object, const ReviewContext& context = {}) {
  const Json text = {{"apiVersion", "admission.k8s.io/v1"},
                     {"kind", "AdmissionReview"},
                     {"request",
                      {{"uid", "r-1"},
                       {"kind", {{"kind", kind}}},
                       {"operation", operation},
                       {"object", object},
                       {"oldObject", old_object}}}};
  const std::string review = text.dump();
  return validate(decode_review(review).value(), context);
}
AdmissionResponse created(const Json& object) {
  return reviewed(object["kind"], "CREATE", object, nullptr);
}
AdmissionResponse updated(const Json& object, const Json& old_object,
                          const ReviewContext& context = {}) {
  return reviewed(object["kind"], "UPDATE", object, old_object, context);
}

TEST(Review, a_change_that_makes_something_wrong_is_refused) {
  const AdmissionResponse refused = updated(deployment(3, "4"), deployment(4, "4"));
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.code, 422);
  EXPECT_EQ(refused.message, kOdd);

  Json worse = deployment(3, "4");
  worse["metadata"]["annotations"]["topology.scheduler/placement-strategy"] = "loose";
  const AdmissionResponse another = updated(worse, deployment(3, "4"));
  EXPECT_FALSE(another.allowed) << "one mistake is no licence for another";
  EXPECT_NE(another.message.find("placement-strategy"), std::string::npos) << another.message;
  EXPECT_FALSE(updated(deployment(5, "4"), deployment(3, "4")).allowed) << "other words";
  EXPECT_FALSE(updated(deployment(3, "4"), nullptr).allowed);

  Json of_others = deployment(3, "4");
  of_others["spec"]["template"]["spec"]["schedulerName"] = "default-scheduler";
  EXPECT_FALSE(updated(deployment(3, "4"), of_others).allowed) << "it was not wrong there";
}

TEST(Review, what_was_wrong_before_blocks_no_other_change) {
  Json labelled = deployment(3, "4");
  labelled["metadata"]["labels"] = {{"team", "a"}};
  const AdmissionResponse allowed = updated(labelled, deployment(3, "4"));
  EXPECT_TRUE(allowed.allowed) << allowed.message;
  EXPECT_EQ(
      allowed.warnings,
      (std::vector<std::string>{std::string("was wrong before, so it is let through: ") + kOdd}));
  EXPECT_FALSE(created(labelled).allowed);
  EXPECT_FALSE(reviewed("Deployment", "CREATE", labelled, deployment(3, "4")).allowed);
  EXPECT_TRUE(updated(deployment(4, "4"), deployment(3, "4")).warnings.empty()) << "put right";

  Json claim = {{"kind", "GpuClaim"}, {"spec", {{"devices", {{"count", 0}}}}}};
  Json held = claim;
  held["metadata"]["finalizers"] = {"example.com/held"};
  EXPECT_EQ(updated(held, claim).warnings.size(), 1U);
  held["spec"]["devices"]["count"] = 65;
  EXPECT_EQ(updated(held, claim).message, "spec.devices.count must be 1..64, got 65");
}

TEST(Review, the_claim_that_an_old_object_named_is_not_guessed) {
  const GpuClaim two =
      decode_claim(R"({"metadata":{"name":"two"},"spec":{"devices":{"count":2}}})").value();
  ReviewContext context;
  context.claim = &two;
  const auto with_claim = [](const char* name) {
    Json object = workload("Deployment", 1, Json::object());
    Json& pod = object["spec"]["template"];
    pod["metadata"]["annotations"] = {{"gpu.scheduling/claim", name}};
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = 1;
    return object;
  };
  EXPECT_FALSE(updated(with_claim("two"), with_claim("one"), context).allowed);
  EXPECT_EQ(updated(with_claim("two"), with_claim("two"), context).warnings.size(), 1U);
}

TEST(Review, what_is_being_deleted_is_left_alone) {
  const Json odd = deployment(3, "4");
  EXPECT_TRUE(updated(deleted(odd), odd).allowed);
  EXPECT_TRUE(updated(deleted(odd), deployment(4, "4")).warnings.empty());
  EXPECT_FALSE(created(deleted(odd)).allowed) << "what is created is not being deleted";
  EXPECT_FALSE(updated(odd, deployment(4, "4")).allowed);
  for (const char* kind : {"GpuClaim", "GpuTenant", "SchedulerConfig", "TopologySchedulerConfig"}) {
    const Json broken = {{"kind", kind}, {"metadata", {{"name", "b"}}}, {"spec", {{"x", 1}}}};
    EXPECT_FALSE(created(broken).allowed) << kind;
    EXPECT_TRUE(updated(deleted(broken), deleted(broken)).allowed) << kind;
  }
}

TEST(Review, a_replica_set_may_be_left_behind_by_its_deployment) {
  const Json set = workload("ReplicaSet", 3, {{"topology.scheduler/gpu-count", "4"}});
  EXPECT_TRUE(updated(set, of_deployment(set)).allowed);
  EXPECT_TRUE(updated(of_deployment(set), set).allowed);
  EXPECT_EQ(updated(set, set).warnings.size(), 1U);
}

TEST(Review, a_total_of_no_pods_is_as_good_as_any) {
  for (const char* kind : {"Deployment", "StatefulSet", "ReplicaSet", "Job"}) {
    Json none = workload(kind, 0, {{"topology.scheduler/gpu-count", "128"}});
    EXPECT_EQ(created(none).message, "") << kind;
    EXPECT_FALSE(created(workload(kind, 1, none["metadata"]["annotations"])).allowed) << kind;
    none["metadata"]["annotations"]["topology.scheduler/gpu-count"] = "many";
    EXPECT_FALSE(created(none).allowed) << kind;
  }
  Json limited = deployment(0, "128");
  Json& pod = limited["spec"]["template"];
  pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = 8;
  EXPECT_TRUE(created(limited).warnings.empty());
  pod["metadata"]["annotations"] = {{"topology.scheduler/gpu-count", "100"}};
  EXPECT_TRUE(created(limited).warnings.empty()) << "nor where the template says it";
  EXPECT_TRUE(updated(deployment(0, "4"), deployment(3, "4")).warnings.empty());
  EXPECT_FALSE(updated(deployment(3, "4"), deployment(0, "4")).allowed);
}

}  // namespace
}  // namespace gs::kube
