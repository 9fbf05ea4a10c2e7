#include "apps/gpu_cli/session.hpp"

#include <atomic>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "net/http_server.hpp"

namespace gs::cli {
namespace {

std::unique_ptr<HttpServer> serve(HttpHandler handler) {
  HttpServerOptions options;
  options.port = 0;
  return std::move(HttpServer::start(options, std::move(handler)).value());
}

Session session_with(const HttpServer& server) {
  Access access;
  access.server = parse_url("http://127.0.0.1:" + std::to_string(server.port())).value();
  return Session(std::move(access));
}

HttpResponse of_standby() {
  return {503,
          R"({"error":"this scheduler stands by; b_1 leads","leader":"b_1"})",
          "application/json",
          {{"Connection", "close"}}};
}

// As behind a Service: who asks often enough reaches the leader.
TEST(Session, asks_again_until_the_leader_answers) {
  std::atomic<int> asked = 0;
  const auto server = serve([&](std::shared_ptr<Exchange> exchange) {
    if (++asked < 7) return exchange->answer(of_standby());
    HttpResponse response;
    response.body = R"({"leads":true})";
    exchange->answer(std::move(response));
  });
  Session session = session_with(*server);
  const Result<Json> answer = session.get("/status");
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ((*answer)["leads"], true);
  EXPECT_EQ(asked, 7);
}

TEST(Session, says_who_leads_where_nobody_but_a_standby_can_be_reached) {
  std::atomic<int> asked = 0;
  const auto server = serve([&](std::shared_ptr<Exchange> exchange) {
    ++asked;
    exchange->answer(of_standby());
  });
  Session session = session_with(*server);
  EXPECT_EQ(session.get("/status").error().message, "this scheduler stands by; b_1 leads");
  EXPECT_GT(asked, 10);
}

}  // namespace
}  // namespace gs::cli
