// The webhook's pages: /mutate and /validate for the API server; /health, /ready and /metrics for
// those who look after it, on the same port and on a plain one of their own.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "drivers/webhook/reviewer.hpp"
#include "net/http.hpp"
#include "net/metrics.hpp"

namespace gs::webhook {

// An object that can be stored has at most half of this, and the review of a change has two.
inline constexpr std::size_t kMaxReviewBytes = 3U << 20;

class Pages {
 public:
  // `not_ready`: why; empty: it is.
  Pages(Reviewer& reviewer, const Metrics& metrics, std::function<std::string()> not_ready);

  void serve(std::shared_ptr<Exchange> exchange);
  void serve_probes(const std::shared_ptr<Exchange>& exchange) const;

 private:
  HttpResponse probe(const HttpRequest& request) const;

  Reviewer& reviewer_;
  const Metrics& metrics_;
  const std::function<std::string()> not_ready_;
};

}  // namespace gs::webhook
