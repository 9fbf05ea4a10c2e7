#include "wire/kube/runtime.hpp"

#include <gtest/gtest.h>

#include "wire/kube/names.hpp"
#include "wire/kube/review.hpp"

namespace gs::kube {
namespace {

Pod pod_of(const std::string& spec, const char* runtime = nullptr) {
  Pod pod = decode_pod(R"({"metadata":{"name":"p"},"spec":)" + spec + "}").value();
  if (runtime != nullptr) set_label(pod.meta.annotations, kRuntimeAnnotation, runtime);
  return pod;
}
Workload job_of(const std::string& spec, const char* runtime = nullptr) {
  Workload job = decode_workload(R"({"kind":"Job","spec":)" + spec + "}").value();
  if (runtime != nullptr) set_label(job.meta.annotations, kRuntimeAnnotation, runtime);
  return job;
}
// Seconds; 0: nobody knows.
std::int64_t runtime_of(const Pod& pod, const Owners& owners = {}) {
  return expected_runtime(pod, owners).value().value_or(Duration{}).ms / 1000;
}

TEST(Runtime, is_written_with_units_or_in_seconds) {
  const auto seconds_of = [](const char* text) { return parse_runtime(text).value().ms / 1000; };
  EXPECT_EQ(seconds_of("90m"), 5400);
  EXPECT_EQ(seconds_of("2h30m"), 9000);
  EXPECT_EQ(seconds_of("3600s"), 3600);
  EXPECT_EQ(seconds_of("3600"), 3600);
  EXPECT_EQ(seconds_of("1d12h"), 129'600);
  EXPECT_EQ(seconds_of("1d0h0m1s"), 86'401);
  EXPECT_EQ(seconds_of("3650d"), 3650LL * 86'400);
}

TEST(Runtime, that_can_not_be_read_is_refused_with_the_forms_that_can) {
  for (const char* text :
       {"", "0", "0h", "-5m", "+5m", "5 m", " 5m", "1.5h", "m", "2h30", "30m2h", "2h2h", "5min",
        "1w", "soon", "3651d", "3650d1s", "99999999999999999999", "9999999999999"})
    EXPECT_FALSE(parse_runtime(text).ok()) << text;
  EXPECT_EQ(expected_runtime(pod_of("{}", "soon"), {}).error().message,
            "annotation gpu.scheduling/expected-runtime must be a time such as 90m, 2h30m, 1d, "
            "3600s or 3600 (seconds), more than 0 and at most 3650d, got 'soon'");
}

TEST(Runtime, is_the_pods_own_or_that_of_its_nearest_owner) {
  const Workload job = job_of("{}", "2h"), set = job_of("{}", "1d");
  EXPECT_EQ(runtime_of(pod_of("{}")), 0);
  EXPECT_EQ(runtime_of(pod_of("{}"), {&job, &set}), 7200);
  EXPECT_EQ(runtime_of(pod_of("{}", "3h"), {&job, &set}), 10'800);
}

TEST(Runtime, is_not_longer_than_a_deadline) {
  const Pod limited = pod_of(R"({"activeDeadlineSeconds":600})", "1h");
  EXPECT_EQ(runtime_of(limited), 600);
  EXPECT_EQ(runtime_of(pod_of(R"({"activeDeadlineSeconds":600})")), 600);
  EXPECT_EQ(runtime_of(pod_of(R"({"activeDeadlineSeconds":600})", "5m")), 300);
  EXPECT_EQ(runtime_of(pod_of(R"({"activeDeadlineSeconds":null})")), 0);
  const Workload job = job_of(R"({"activeDeadlineSeconds":300})");
  EXPECT_EQ(runtime_of(pod_of("{}"), {&job}), 300);
  EXPECT_EQ(runtime_of(limited, {&job}), 300);
  const Workload none_left = job_of(R"({"activeDeadlineSeconds":0})");
  EXPECT_EQ(runtime_of(pod_of("{}"), {&none_left}), 1) << "a Job may say so";
  const Workload training =
      decode_workload(R"({"kind":"PyTorchJob","spec":{"runPolicy":{"activeDeadlineSeconds":60}}})")
          .value();
  EXPECT_EQ(runtime_of(pod_of("{}"), {&training}), 60);
  const Workload set = decode_workload(R"({"kind":"JobSet","spec":{"replicatedJobs":[{"template":
      {"spec":{"activeDeadlineSeconds":60}}}]}})")
                           .value();
  EXPECT_EQ(runtime_of(pod_of("{}"), {&set}), 0) << "it is that of one of its Jobs";
}

TEST(Runtime, is_asked_of_who_waits_and_not_of_who_runs) {
  Pod pod = pod_of(R"({"containers":[{"name":"c"}]})", "soon");
  const auto reading = task_request(pod, {});
  ASSERT_FALSE(reading.ok());
  EXPECT_NE(reading.error().message.find("expected-runtime must be a time such as 90m"),
            std::string::npos);
  pod.node_name = "n1";
  EXPECT_TRUE(task_request(pod, {}).ok());
}

AdmissionResponse checked(const std::string& kind, const std::string& object) {
  const std::string text =
      R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"r",)"
      R"("operation":"CREATE","kind":{"group":"","version":"v1","kind":")" +
      kind + R"("},"object":)" + object + "}}";
  return validate(decode_review(text).value(), {});
}

TEST(Runtime, is_reviewed_with_pods_and_with_what_makes_them) {
  const auto pod = [](const std::string& runtime) {
    return checked("Pod",
                   R"({"metadata":{"name":"p","annotations":{"gpu.scheduling/expected-runtime":")" +
                       runtime + R"("}},"spec":{"schedulerName":"gpu-scheduler",
                       "containers":[{"name":"c"}]}})");
  };
  EXPECT_TRUE(pod("2h30m").allowed);
  EXPECT_FALSE(pod("2 hours").allowed);
  EXPECT_NE(pod("2 hours").message.find("2h30m"), std::string::npos) << pod("2 hours").message;
  const auto job = [](const std::string& runtime) {
    return checked("Job",
                   R"({"metadata":{"name":"j","annotations":{"gpu.scheduling/expected-runtime":")" +
                       runtime + R"("}},"spec":{"template":{"spec":{
                       "schedulerName":"gpu-scheduler","containers":[{"name":"c"}]}}}})");
  };
  EXPECT_TRUE(job("90m").allowed);
  EXPECT_TRUE(job("90").allowed);
  EXPECT_FALSE(job("90 minutes").allowed);
}

}  // namespace
}  // namespace gs::kube
