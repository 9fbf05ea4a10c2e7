// Answers admission reviews: what wire/kube decides, with the claim that the pod names.
//
// Every request gets one answer. What has no uid to answer to is refused by an HTTP status with a
// Status object, which the API server shows to the user. A claim that is missing or can't be read
// in time stops nobody: the pod is created, and the scheduler lets it wait for the claim.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "drivers/webhook/cluster_calls.hpp"
#include "drivers/webhook/webhook_metrics.hpp"
#include "net/http.hpp"
#include "wire/kube/admission.hpp"
#include "wire/kube/mutate.hpp"

namespace gs::webhook {

struct ReviewerOptions {
  std::vector<std::string> scheduler_names;
  std::vector<std::string> excluded_namespaces;  // nothing in them is changed or refused
  bool nvidia_visible_devices = false;
  bool kubelet_chooses = false;
  kube::DeviceNaming naming = kube::DeviceNaming::Index;
  std::string cufile_path = kube::MutateOptions{}.cufile_path;
};

enum class Door { Mutate, Validate };

class Reviewer {
 public:
  Reviewer(ReviewerOptions options, FindClaim find_claim, WebhookMetrics& metrics);

  // On any thread; outlives the answers that it owes.
  void review(std::shared_ptr<Exchange> exchange, Door door);

 private:
  using Clock = std::chrono::steady_clock;
  struct Case {
    std::shared_ptr<Exchange> exchange;  // holds the text that the request looks into
    Door door = Door::Mutate;
    Clock::time_point began;
    kube::AdmissionRequest request;
  };
  using Claim = Result<std::optional<kube::GpuClaim>>;

  bool is_excluded(const std::string& name_space) const;
  kube::AdmissionResponse decide(const Case& one, const std::string& claim_name,
                                 const Claim& claim) const;
  void answer(const Case& one, const kube::AdmissionResponse& response);
  void finish(const Case& one, const char* outcome, HttpResponse response);

  const ReviewerOptions options_;
  const FindClaim find_claim_;
  WebhookMetrics& metrics_;
};

// A Status object with its code, as the API server reads errors.
HttpResponse status_answer(int code, const std::string& reason, const std::string& message);

}  // namespace gs::webhook
