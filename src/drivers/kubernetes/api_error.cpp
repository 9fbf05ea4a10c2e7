#include "drivers/kubernetes/api_error.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "wire/kube/meta.hpp"

namespace gs::kube {
namespace {

constexpr std::pair<const char*, ApiReason> kReasons[] = {
    {"BadRequest", ApiReason::BadRequest},
    {"Unauthorized", ApiReason::Unauthorized},
    {"Forbidden", ApiReason::Forbidden},
    {"NotFound", ApiReason::NotFound},
    {"AlreadyExists", ApiReason::AlreadyExists},
    {"Conflict", ApiReason::Conflict},
    {"Expired", ApiReason::Expired},
    {"Gone", ApiReason::Expired},
    {"Invalid", ApiReason::Invalid},
    {"TooManyRequests", ApiReason::TooManyRequests},
    {"ServerTimeout", ApiReason::ServerTimeout},
    {"Timeout", ApiReason::ServerTimeout},
    {"InternalError", ApiReason::Unavailable},
    {"ServiceUnavailable", ApiReason::Unavailable},
};

// For answers without a Status: of proxies, and of the server while it starts.
ApiReason reason_of_code(int code) {
  switch (code) {
    case 400:
      return ApiReason::BadRequest;
    case 401:
      return ApiReason::Unauthorized;
    case 403:
      return ApiReason::Forbidden;
    case 404:
      return ApiReason::NotFound;
    case 409:
      return ApiReason::Conflict;
    case 410:
      return ApiReason::Expired;
    case 422:
      return ApiReason::Invalid;
    case 429:
      return ApiReason::TooManyRequests;
    case 504:
      return ApiReason::ServerTimeout;
    default:
      return code >= 500 ? ApiReason::Unavailable : ApiReason::Other;
  }
}

bool is_transient(const ApiError& error) {
  return error.reason == ApiReason::TooManyRequests || error.reason == ApiReason::ServerTimeout ||
         error.reason == ApiReason::Unavailable || error.reason == ApiReason::NotAnswered;
}

}  // namespace

const char* to_string(ApiReason reason) {
  if (reason == ApiReason::NotAnswered) return "NotAnswered";
  if (reason == ApiReason::Cancelled) return "Cancelled";
  if (reason == ApiReason::Unavailable) return "Unavailable";
  for (const auto& [word, value] : kReasons)
    if (value == reason) return word;
  return "Other";
}

ApiError read_api_error(int code, std::string_view text, std::string_view retry_after) {
  ApiError error;
  error.code = code;
  error.reason = reason_of_code(code);
  if (const auto status = decode_status(text)) {
    error.message = status->message;
    error.cause = status->cause;
    if (code / 100 == 2 && status->code != 0) {  // in a watch only the Status has it
      error.code = status->code;
      error.reason = reason_of_code(error.code);
    }
    for (const auto& [word, value] : kReasons)
      if (status->reason == word) error.reason = value;
    error.retry_after = seconds(std::clamp(status->retry_after_s, 0, 3600));
  }
  if (error.message.empty()) {
    const auto line = text.substr(0, std::min<std::size_t>(text.find('\n'), 300));
    error.message =
        "HTTP status " + std::to_string(code) + (line.empty() ? "" : ": " + std::string(line));
  }
  std::int64_t wait = 0;
  const auto [end, problem] =
      std::from_chars(retry_after.data(), retry_after.data() + retry_after.size(), wait);
  if (problem == std::errc{} && error.retry_after.ms == 0)
    error.retry_after = seconds(std::clamp<std::int64_t>(wait, 0, 3600));
  error.may_be_done = code >= 500;
  return error;
}

Duration backoff(Duration first, Duration longest, int failures, Rng& rng) {
  const int doublings = std::clamp(failures - 1, 0, 20);
  const std::int64_t full = std::min(first.ms << doublings, longest.ms);
  return milliseconds(full / 2 + rng.between(0, std::max<std::int64_t>(full - full / 2, 1)));
}

std::optional<Duration> wait_before_again(const ApiRequest& request, const ApiError& error,
                                          int tries, const RetryPolicy& policy, Rng& rng) {
  if (request.again == Again::Never || tries >= policy.tries || !is_transient(error))
    return std::nullopt;
  // A budget that forbids an eviction is an answer: only the caller knows whom to take instead.
  if (error.cause == "DisruptionBudget") return std::nullopt;
  // A server that says when to come back has turned us away without doing anything.
  const bool is_undone = error.reason == ApiReason::TooManyRequests || !error.may_be_done ||
                         (error.code >= 500 && error.retry_after.ms > 0);
  if (request.again == Again::IfUndone && !is_undone) return std::nullopt;
  if (error.retry_after > seconds(60)) return std::nullopt;
  // Later than asked for, by chance: all that were turned away were told the same.
  return error.retry_after + backoff(policy.first, policy.longest, tries, rng);
}

}  // namespace gs::kube
