#include "drivers/webhook/webhook.hpp"

#include <gtest/gtest.h>

#include "net/http_client.hpp"
#include "net/http_server.hpp"

namespace gs::webhook {
namespace {

// The pages over plain HTTP, with claims that the test says.
class WebhookPages : public testing::Test {
 protected:
  WebhookPages()
      : reviewer_(
            options(),
            [this](const std::string& ns, const std::string& name, const ClaimFound& found) {
              asked_.push_back(ns + "/" + name);
              found(claim_);
            },
            counts_),
        pages_(reviewer_, metrics_, [this] { return not_ready_; }) {
    HttpServerOptions server;
    server.port = 0;
    server.max_body_bytes = kMaxReviewBytes;
    server_ = std::move(*HttpServer::start(
        server, [this](std::shared_ptr<Exchange> exchange) { pages_.serve(std::move(exchange)); }));
    client_ = std::make_unique<HttpClient>(
        *parse_url("http://127.0.0.1:" + std::to_string(server_->port())), HttpClientOptions{});
  }
  static ReviewerOptions options() {
    ReviewerOptions out;
    out.scheduler_names = {"gpu-scheduler"};
    out.excluded_namespaces = {"kube-system"};
    return out;
  }

  ClientResponse send(const std::string& method, const std::string& target,
                      const std::string& body = {}) {
    ClientRequest request;
    request.method = method;
    request.target = target;
    request.body = body;
    const auto answer = client_->send(request);
    EXPECT_TRUE(answer.ok()) << answer.error().message;
    return answer.ok() ? *answer : ClientResponse{};
  }
  Json reviewed(const std::string& target, const std::string& pod, const std::string& ns = "ml") {
    const ClientResponse answer =
        send("POST", target,
             R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"r-1",
        "kind":{"group":"","version":"v1","kind":"Pod"},"operation":"CREATE","namespace":")" +
                 ns + R"(","object":)" + pod + "}}");
    EXPECT_EQ(answer.status, 200) << answer.body;
    const Json json = parse_json(answer.body).value();
    EXPECT_EQ(json["response"]["uid"], "r-1");
    return json["response"];
  }
  std::string metrics() { return send("GET", "/metrics").body; }

  Result<std::optional<kube::GpuClaim>> claim_{std::optional<kube::GpuClaim>()};
  std::vector<std::string> asked_;
  std::string not_ready_;
  Metrics metrics_;
  WebhookMetrics counts_{metrics_};
  Reviewer reviewer_;
  Pages pages_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<HttpClient> client_;
};

const std::string kPod = R"({"metadata":{"name":"p","annotations":{"gpu.scheduling/claim":"c"}},
  "spec":{"schedulerName":"gpu-scheduler","containers":[{"name":"a","resources":
  {"limits":{"nvidia.com/gpu":"1"}}}]}})";

TEST_F(WebhookPages, answer_reviews_with_the_claim) {
  claim_ = std::optional(
      *kube::decode_claim(R"({"metadata":{"name":"c"},"spec":{"devices":{"count":2}}})"));
  EXPECT_EQ(reviewed("/mutate", kPod)["patchType"], "JSONPatch");
  const Json refused = reviewed("/validate", kPod);
  EXPECT_EQ(refused["allowed"], false);
  EXPECT_EQ(refused["status"]["message"],
            "GpuClaim 'c' asks for 2 GPUs but the containers' nvidia.com/gpu limits for 1: make "
            "them equal or remove the limits");
  EXPECT_EQ(asked_, (std::vector<std::string>{"ml/c", "ml/c"}));
  const std::string page = metrics();
  EXPECT_NE(page.find(R"(webhook_requests_total{path="/mutate",outcome="patched"} 1)"),
            std::string::npos)
      << page;
  EXPECT_NE(page.find(R"(webhook_requests_total{path="/validate",outcome="denied"} 1)"),
            std::string::npos);
  EXPECT_NE(page.find(R"(webhook_request_seconds_count{path="/mutate"} 1)"), std::string::npos);
}

TEST_F(WebhookPages, a_claim_that_is_missing_stops_nobody) {
  const Json missing = reviewed("/mutate", kPod);
  EXPECT_EQ(missing["allowed"], true);
  EXPECT_EQ(missing["warnings"][0],
            "GpuClaim 'c' of namespace 'ml' does not exist yet: the pod waits for it, and its "
            "containers get no variables for the claim's fabric");
  claim_ = Error{ErrorCode::Unavailable, "timed out"};
  const Json unread = reviewed("/mutate", kPod);
  EXPECT_EQ(unread["patchType"], "JSONPatch");
  EXPECT_NE(unread["warnings"][0].get<std::string>().find("could not be read (timed out)"),
            std::string::npos);
  EXPECT_EQ(reviewed("/validate", kPod)["allowed"], true);
}

TEST_F(WebhookPages, leave_excluded_namespaces_alone) {
  const Json answer = reviewed("/mutate", kPod, "kube-system");
  EXPECT_EQ(answer, (Json{{"uid", "r-1"}, {"allowed", true}}));
  EXPECT_EQ(reviewed("/validate", R"({"spec":3})", "kube-system")["allowed"], true);
  EXPECT_TRUE(asked_.empty());
}

TEST_F(WebhookPages, what_is_no_review_gets_a_status) {
  for (const char* body : {"", "x", "{}", "[]", "{\"kind\":\"AdmissionReview\"}"}) {
    const ClientResponse answer = send("POST", "/mutate", body);
    EXPECT_GE(answer.status, 400) << body;
    EXPECT_EQ(parse_json(answer.body).value()["kind"], "Status") << answer.body;
  }
  EXPECT_EQ(send("POST", "/validate", std::string(1 << 20, '[')).status, 400);
  EXPECT_EQ(
      send("POST", "/validate", R"({"request":{"object":{"a":)" + std::string(1 << 20, '[')).status,
      400);
  EXPECT_EQ(send("GET", "/mutate").status, 405);
  EXPECT_EQ(send("GET", "/elsewhere").status, 404);
  EXPECT_EQ(send("POST", "/ready", "{}").status, 405);
  EXPECT_NE(metrics().find(R"(outcome="malformed")"), std::string::npos);
}

TEST_F(WebhookPages, say_how_it_is) {
  EXPECT_EQ(send("GET", "/health").status, 200);
  EXPECT_EQ(send("GET", "/ready").body, R"({"ready":true,"why":""})");
  not_ready_ = "no certificate";
  const ClientResponse answer = send("GET", "/ready");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(parse_json(answer.body).value()["why"], "no certificate");
}

}  // namespace
}  // namespace gs::webhook
