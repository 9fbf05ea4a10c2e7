#include "wire/kube/admission.hpp"

#include <utility>

#include "wire/kube/cursor.hpp"

namespace gs::kube {
namespace {

constexpr const char* kReviewApi = "admission.k8s.io/v1";
constexpr std::size_t kMaxWarning = 256;  // the API server cuts what is longer

std::string_view object_text(Cursor& in) {
  const char first = in.next();
  if (first == '{') return in.raw();
  if (first != 'n') in.fail("must be an object");
  return {};
}

void read_request(Cursor& in, AdmissionRequest& request) {
  in.object([&](std::string_view field) {
    if (field == "uid")
      in.read(request.uid);
    else if (field == "namespace")
      in.read(request.ns);
    else if (field == "name")
      in.read(request.name);
    else if (field == "operation")
      in.read(request.operation);
    else if (field == "dryRun")
      in.read(request.dry_run);
    else if (field == "object")
      request.object = object_text(in);
    else if (field == "oldObject")
      request.old_object = object_text(in);
    else if (field == "kind")
      in.object([&](std::string_view inner) {
        if (inner == "group") in.read(request.group);
        if (inner == "version") in.read(request.version);
        if (inner == "kind") in.read(request.kind);
      });
  });
}

}  // namespace

Result<AdmissionRequest> decode_review(std::string_view text) {
  AdmissionRequest request;
  std::string api, kind;
  bool asked = false;
  Cursor in(text);
  in.object([&](std::string_view field) {
    if (field == "apiVersion") in.read(api);
    if (field == "kind") in.read(kind);
    if (field == "request") {
      asked = true;
      read_request(in, request);
    }
  });
  if (const Status status = in.finish(); !status)
    return invalid("not an AdmissionReview: " + status.error().message);
  if (kind != "AdmissionReview" || api != kReviewApi)
    return invalid(std::string("expected kind AdmissionReview of ") + kReviewApi + ", got '" +
                   kind + "' of '" + api + "'");
  if (!asked || request.uid.empty())
    return invalid("not an AdmissionReview: request.uid is required");
  return request;
}

std::string encode_review(const AdmissionResponse& response) {
  Json answer = {{"uid", response.uid}, {"allowed", response.allowed}};
  if (!response.allowed)
    answer["status"] = {{"code", response.code}, {"message", response.message}};
  for (const std::string& warning : response.warnings)
    answer["warnings"].push_back(warning.substr(0, kMaxWarning));
  if (response.allowed && !response.patch.empty()) {
    answer["patchType"] = "JSONPatch";
    answer["patch"] = base64(response.patch.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  const Json review = {
      {"apiVersion", kReviewApi}, {"kind", "AdmissionReview"}, {"response", std::move(answer)}};
  return review.dump(-1, ' ', false, Json::error_handler_t::replace);
}

AdmissionResponse refused(const AdmissionRequest& request, int code, std::string message) {
  AdmissionResponse response;
  response.uid = request.uid;
  response.allowed = false;
  response.code = code;
  response.message = std::move(message);
  return response;
}

std::string base64(std::string_view bytes) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto at = [&](std::size_t k) -> unsigned {
      return i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U;
    };
    const unsigned three = at(0) << 16 | at(1) << 8 | at(2);
    text.push_back(kDigits[three >> 18]);
    text.push_back(kDigits[three >> 12 & 63]);
    text.push_back(i + 1 < bytes.size() ? kDigits[three >> 6 & 63] : '=');
    text.push_back(i + 2 < bytes.size() ? kDigits[three & 63] : '=');
  }
  return text;
}

}  // namespace gs::kube
