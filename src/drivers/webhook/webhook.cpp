#include "drivers/webhook/webhook.hpp"

#include <utility>

namespace gs::webhook {
namespace {

constexpr const char* kProbes = "/health, /ready and /metrics";

HttpResponse only(const char* method) {
  HttpResponse response = status_answer(405, "MethodNotAllowed", std::string("use ") + method);
  response.headers.emplace_back("Allow", method);
  return response;
}

bool is_json(std::string_view content_type) {
  return content_type.substr(0, content_type.find(';')) == "application/json";
}

}  // namespace

Pages::Pages(Reviewer& reviewer, const Metrics& metrics, std::function<std::string()> not_ready)
    : reviewer_(reviewer), metrics_(metrics), not_ready_(std::move(not_ready)) {}

void Pages::serve(std::shared_ptr<Exchange> exchange) {
  const HttpRequest& request = exchange->request;
  const bool mutates = request.path == "/mutate";
  if (!mutates && request.path != "/validate") return serve_probes(exchange);
  if (request.method() != "POST") return exchange->answer(only("POST"));
  if (!is_json(request.header("Content-Type")))
    return exchange->answer(
        status_answer(415, "UnsupportedMediaType", "an AdmissionReview is application/json"));
  reviewer_.review(std::move(exchange), mutates ? Door::Mutate : Door::Validate);
}

void Pages::serve_probes(const std::shared_ptr<Exchange>& exchange) const {
  exchange->answer(probe(exchange->request));
}

HttpResponse Pages::probe(const HttpRequest& request) const {
  if (request.path != "/health" && request.path != "/ready" && request.path != "/metrics")
    return status_answer(
        404, "NotFound",
        std::string("there are POST /mutate and /validate over HTTPS, and ") + kProbes);
  if (request.method() != "GET" && request.method() != "HEAD") return only("GET");
  HttpResponse response;
  if (request.path == "/health") {
    response.body = R"({"status":"healthy"})";
  } else if (request.path == "/ready") {
    const std::string why = not_ready_();
    response.status = why.empty() ? 200 : 503;
    response.body = Json{{"ready", why.empty()}, {"why", why}}.dump(-1, ' ', false,
                                                                    Json::error_handler_t::replace);
  } else {
    MetricsText text("gpu_scheduler");
    metrics_.write(text);
    response.content_type = kMetricsContentType;
    response.body = text.text();
  }
  return response;
}

}  // namespace gs::webhook
