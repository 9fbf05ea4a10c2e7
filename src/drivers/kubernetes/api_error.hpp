// Why the API server did not do what it was asked, as a value to decide by; and whether, and when,
// to ask again.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/rng.hpp"
#include "base/time.hpp"
#include "drivers/kubernetes/api_request.hpp"
#include "net/http_client.hpp"

namespace gs::kube {

enum class ApiReason {
  BadRequest,
  Unauthorized,
  Forbidden,
  NotFound,
  AlreadyExists,
  Conflict,
  Expired,  // 410: a resourceVersion or a page that is not kept any more
  Invalid,
  TooManyRequests,
  ServerTimeout,
  Unavailable,  // 5xx
  NotAnswered,  // no connection, cut off, too slow
  Cancelled,    // by ourselves
  Other
};
const char* to_string(ApiReason reason);

struct ApiError {
  ApiReason reason = ApiReason::Other;
  int code = 0;  // of HTTP; 0: there was no answer
  std::string message;
  std::string cause;         // the first of the Status' causes: "DisruptionBudget"
  Duration retry_after;      // what the server asks for; 0: nothing
  bool may_be_done = false;  // the server may have done it nevertheless
};

// The error in an answer that is not good. `text` is its body, or a Status from a watch.
ApiError read_api_error(int code, std::string_view text, std::string_view retry_after);

struct RetryPolicy {
  Duration first = milliseconds(100);
  Duration longest = seconds(10);
  int tries = 8;  // in all; enough for a restart of the server
};

// How long to wait before the next try after `tries` of them; none: leave it.
std::optional<Duration> wait_before_again(const ApiRequest& request, const ApiError& error,
                                          int tries, const RetryPolicy& policy, Rng& rng);

// Doubles from `first` to `longest` with the number of failures; half of it is chance.
Duration backoff(Duration first, Duration longest, int failures, Rng& rng);

}  // namespace gs::kube
