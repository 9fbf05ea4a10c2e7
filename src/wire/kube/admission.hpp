// AdmissionReview (admission.k8s.io/v1): the question of the API server, and our answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "wire/json_reader.hpp"

namespace gs::kube {

struct AdmissionRequest {
  std::string uid;  // never empty
  std::string group, version, kind;
  std::string ns, name;
  std::string operation;  // CREATE, UPDATE, DELETE, CONNECT
  bool dry_run = false;
  std::string_view object;      // inside the text that was decoded; empty: none
  std::string_view old_object;  // same
};

// What is no AdmissionReview of version v1 with a uid is refused with what is missing: without a
// uid there is nobody to answer.
Result<AdmissionRequest> decode_review(std::string_view text);

struct AdmissionResponse {
  std::string uid;
  bool allowed = true;
  int code = 422;                     // where it is not allowed
  std::string message;                // same: why
  std::vector<std::string> warnings;  // kubectl shows them
  Json patch = Json::array();         // JSON patch; empty: nothing to change
};
std::string encode_review(const AdmissionResponse& response);

// The answer that says no, with the reason that a person reads.
AdmissionResponse refused(const AdmissionRequest& request, int code, std::string message);

std::string base64(std::string_view bytes);

}  // namespace gs::kube
