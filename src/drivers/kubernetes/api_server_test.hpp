// A server for tests that speaks enough HTTP to be taken for an API server: the test says what it
// answers, and feeds its watches.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include "drivers/kubernetes/api.hpp"
#include "net/http_server.hpp"

namespace gs::kube::testing_api {

// Waits until it holds, at most half a minute.
template <typename Condition>
bool comes_true(Condition condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

inline HttpResponse answer(int status, std::string body) {
  HttpResponse response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

inline HttpResponse refusal(int status, const std::string& reason, const std::string& more = "") {
  return answer(status, R"({"kind":"Status","status":"Failure","message":"told so","reason":")" +
                            reason + R"(","code":)" + std::to_string(status) + more + "}");
}

// The server's side of a watch.
class WatchFeed {
 public:
  void send(const std::string& text) {
    const std::lock_guard lock(mutex_);
    pieces_.push_back(text);
  }
  void send(const std::string& type, const std::string& object) {
    send(R"({"type":")" + type + R"(","object":)" + object + "}\n");
  }
  void end() {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  std::optional<std::string> next(bool& is_over) {
    const std::lock_guard lock(mutex_);
    is_over = is_over_ && pieces_.empty();
    if (pieces_.empty()) return std::nullopt;
    std::string piece = std::move(pieces_.front());
    pieces_.pop_front();
    return piece;
  }

 private:
  std::mutex mutex_;
  std::deque<std::string> pieces_;
  bool is_over_ = false;
};

inline HttpStream stream_of(std::shared_ptr<WatchFeed> feed) {
  NextPiece next = [feed]() -> boost::asio::awaitable<std::optional<std::string>> {
    while (true) {
      bool is_over = false;
      if (auto piece = feed->next(is_over)) co_return piece;
      if (is_over) co_return std::nullopt;
      boost::asio::steady_timer pause(co_await boost::asio::this_coro::executor,
                                      std::chrono::milliseconds(2));
      boost::system::error_code ignored;
      auto token = boost::asio::redirect_error(boost::asio::use_awaitable, ignored);
      co_await pause.async_wait(token);
    }
  };
  return {"application/json", {}, std::move(next)};
}

class ApiServer {
 public:
  using Handler = std::function<void(const HttpRequest&, Exchange&)>;

  explicit ApiServer(Handler handler) : handler_(std::move(handler)) { up(0); }

  void up(std::uint16_t port) {
    HttpServerOptions options;
    options.port = port;
    options.max_body_bytes = 16U << 20;
    auto started = HttpServer::start(options, [this](std::shared_ptr<Exchange> exchange) {
      {
        const std::lock_guard lock(mutex_);
        seen_.push_back(std::string(exchange->request.method()) + " " +
                        std::string(exchange->request.message.target()));
        taken_.push_back(exchange);
      }
      handler_(exchange->request, *exchange);
    });
    EXPECT_TRUE(started.ok());
    server_ = std::move(*started);
    port_ = server_->port();
  }
  // What was left without an answer gets one, or its session would wait for ever.
  void down() {
    {
      const std::lock_guard lock(mutex_);
      for (const auto& exchange : std::exchange(taken_, {})) exchange->answer(HttpResponse{});
    }
    server_.reset();
  }
  ~ApiServer() { down(); }
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;
  void restart() {
    down();
    up(port_);
  }
  ClusterAccess access() const {
    ClusterAccess out;
    out.source = "a test";
    out.server = *parse_url("http://127.0.0.1:" + std::to_string(port_));
    return out;
  }
  std::vector<std::string> seen() const {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  Handler handler_;
  std::unique_ptr<HttpServer> server_;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> seen_;
  std::vector<std::shared_ptr<Exchange>> taken_;
};

// A client with a loop of its own; every callback is counted.
class Client {
 public:
  explicit Client(ClusterAccess access, ApiOptions options = {}, Metrics* metrics = nullptr) {
    loop.start();
    options.retry.first = milliseconds(5);
    auto made = Api::create(loop, std::move(access), std::move(options), metrics);
    EXPECT_TRUE(made.ok()) << made.error().message;
    api = std::move(*made);
  }
  ~Client() {
    api->stop();
    loop.finish();
    EXPECT_EQ(asked, answered);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  ApiAnswer ask(ApiRequest request) {
    auto got = std::make_shared<std::optional<ApiAnswer>>();
    auto has_come = std::make_shared<std::atomic<bool>>(false);
    ++asked;
    api->call(std::move(request), [this, got, has_come](ApiAnswer given) {
      ++answered;
      got->emplace(std::move(given));
      *has_come = true;
    });
    EXPECT_TRUE(comes_true([&] { return has_come->load(); }));
    return *has_come ? std::move(**got) : ApiAnswer{};
  }

  EventLoop loop;
  std::unique_ptr<Api> api;
  std::atomic<int> asked{0}, answered{0};
};

}  // namespace gs::kube::testing_api
