#include "net/http_client.hpp"

#include <atomic>
#include <mutex>

#include <gtest/gtest.h>

#include "net/error_codes.hpp"
#include "net/http_server.hpp"

namespace gs {
namespace {

TEST(Url, has_scheme_host_port_and_path) {
  const auto url = parse_url("https://gpu.example:8443/base/");
  EXPECT_TRUE(url->tls);
  EXPECT_EQ(url->host, "gpu.example");
  EXPECT_EQ(url->port, "8443");
  EXPECT_EQ(url->path, "/base");
  EXPECT_EQ(url->text(), "https://gpu.example:8443/base");
  EXPECT_EQ(parse_url("localhost:8080")->text(), "http://localhost:8080");
  EXPECT_EQ(parse_url("http://h")->port, "80");
  EXPECT_EQ(parse_url("https://h:443")->text(), "https://h");
  EXPECT_EQ(parse_url("http://[::1]:9")->host, "::1");
  EXPECT_EQ(parse_url("http://[::1]:9")->text(), "http://[::1]:9");
}

TEST(Url, what_is_none_is_refused) {
  for (const char* text : {"", "http://", "ftp://h", "http://h:x", "http://h:0", "http://h:70000",
                           "http://u@h", "http://[::1", "http://h/a?b", "http:// h"})
    EXPECT_FALSE(parse_url(text).ok()) << text;
}

class Client : public ::testing::Test {
 protected:
  void serve(HttpHandler handler) {
    HttpServerOptions options;
    options.port = 0;
    auto started = HttpServer::start(options, std::move(handler));
    ASSERT_TRUE(started.ok());
    server_ = std::move(*started);
  }
  HttpUrl url() const {
    return *parse_url("http://127.0.0.1:" + std::to_string(server_->port()) + "/base");
  }
  std::unique_ptr<HttpServer> server_;
};

TEST_F(Client, sends_all_of_a_request_and_keeps_the_connection) {
  serve([](std::shared_ptr<Exchange> exchange) {
    const HttpRequest& request = exchange->request;
    HttpResponse response;
    response.status = 201;
    response.headers = {{"X-Peer", request.peer}};
    response.body = std::string(request.method()) + " " + request.path + " " + request.body() +
                    " " + std::string(request.header("X-Extra"));
    exchange->answer(std::move(response));
  });
  HttpClient client(url(), {});
  std::string peer;
  for (int i = 0; i < 3; ++i) {
    const auto answer =
        client.send({"POST", "/jobs", "{}" + std::string(i, ' '), {{"X-Extra", "yes"}}});
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_EQ(answer->status, 201);
    EXPECT_EQ(answer->body, "POST /base/jobs {}" + std::string(i, ' ') + " yes");
    EXPECT_EQ(answer->header("content-type"), "application/json");
  }
  EXPECT_EQ(server_->connections(), 1U);
}

TEST_F(Client, a_server_that_is_away_is_an_error_and_its_return_is_seen) {
  const HttpHandler handler = [](std::shared_ptr<Exchange> exchange) {
    exchange->answer(HttpResponse{});
  };
  serve(handler);
  const HttpUrl where = url();
  HttpClient client(where, {});
  ASSERT_TRUE(client.send({}).ok());
  const std::uint16_t port = server_->port();
  server_->stop();
  server_.reset();
  const auto answer = client.send({});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::Unavailable);
  EXPECT_NE(answer.error().message.find(where.text()), std::string::npos);
  HttpServerOptions options;
  options.port = port;
  auto again = HttpServer::start(options, handler);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(client.send({}).ok());
}

TEST_F(Client, does_not_wait_for_ever) {
  std::mutex mutex;
  std::vector<std::shared_ptr<Exchange>> kept;
  serve([&](std::shared_ptr<Exchange> exchange) {
    const std::lock_guard lock(mutex);
    kept.push_back(std::move(exchange));
  });
  HttpClientOptions options;
  options.timeout = milliseconds(50);
  HttpClient client(url(), options);
  const auto answer = client.send({});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::Unavailable);
  EXPECT_NE(answer.error().message.find("did not answer"), std::string::npos);
  const std::lock_guard lock(mutex);
  for (const auto& exchange : kept) exchange->answer(HttpResponse{});
}

NextPiece pieces(int count) {
  auto left = std::make_shared<int>(count);
  return [left]() -> boost::asio::awaitable<std::optional<std::string>> {
    if (*left == 0) co_return std::nullopt;
    co_return std::to_string((*left)--) + "\n";
  };
}

TEST_F(Client, reads_streams_as_they_come_to_their_end) {
  serve([](std::shared_ptr<Exchange> exchange) {
    exchange->answer(HttpStream{"text/plain", {}, pieces(1000)});
  });
  HttpClient client(url(), {});
  std::string all;
  const auto answer = client.stream({}, [&](std::string_view piece) {
    all += piece;
    return true;
  });
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_TRUE(all.starts_with("1000\n999\n"));
  EXPECT_TRUE(all.ends_with("\n2\n1\n"));
}

TEST_F(Client, a_reader_that_has_had_enough_leaves_and_can_ask_again) {
  serve([](std::shared_ptr<Exchange> exchange) {
    exchange->answer(HttpStream{"text/plain", {}, pieces(1'000'000'000)});
  });
  HttpClient client(url(), {});
  for (int i = 0; i < 2; ++i) {
    const auto answer = client.stream({}, [](std::string_view) { return false; });
    EXPECT_TRUE(answer.ok());
  }
}

TEST_F(Client, a_refusal_of_a_stream_comes_back_whole) {
  serve([](std::shared_ptr<Exchange> exchange) {
    HttpResponse response;
    response.status = 404;
    response.body = R"({"error": "no"})";
    exchange->answer(std::move(response));
  });
  HttpClient client(url(), {});
  const auto answer = client.stream({}, [](std::string_view) {
    ADD_FAILURE() << "a refusal is no stream";
    return true;
  });
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 404);
  EXPECT_EQ(answer->body, R"({"error": "no"})");
}

TEST(Codes, of_http_lead_back_to_the_same_exit_code) {
  for (const ErrorCode code :
       {ErrorCode::InvalidArgument, ErrorCode::NotFound, ErrorCode::AlreadyExists,
        ErrorCode::QuotaExceeded, ErrorCode::QueueFull, ErrorCode::Conflict,
        ErrorCode::Unauthenticated, ErrorCode::PermissionDenied, ErrorCode::Unavailable,
        ErrorCode::Internal}) {
    const OutsideCode outside = outside_code(code);
    EXPECT_EQ(outside_code(error_code_of_http(outside.http)).exit, outside.exit);
  }
}

}  // namespace
}  // namespace gs
