#include "net/http_server.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/certificates_test.hpp"
#include "net/http_client.hpp"

namespace gs {
namespace {

// A connection that says exactly what it is told to.
class Connection {
 public:
  explicit Connection(std::uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const timeval patience{30, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~Connection() { close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void say(const std::string& text) const {
    EXPECT_EQ(send(fd_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // All until this is in it, or the other side closes.
  std::string hear(const std::string& until = {}) const {
    std::string heard;
    char buffer[65536];
    while (until.empty() || heard.find(until) == std::string::npos) {
      const ssize_t n = recv(fd_, buffer, sizeof buffer, 0);
      EXPECT_GE(n, 0) << "nothing came; so far: " << heard.substr(0, 200);
      if (n <= 0) break;
      heard.append(buffer, static_cast<std::size_t>(n));
    }
    return heard;
  }

 private:
  int fd_;
};

std::unique_ptr<HttpServer> serve(HttpHandler handler, HttpServerOptions options = {}) {
  options.port = 0;
  auto started = HttpServer::start(options, std::move(handler));
  EXPECT_TRUE(started.ok());
  return std::move(*started);
}

void echo(std::shared_ptr<Exchange> exchange) {
  HttpResponse response;
  response.body = "<" + exchange->request.path + exchange->request.body() + ">";
  exchange->answer(std::move(response));
}

std::string get(const std::string& path) { return "GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n"; }

TEST(HttpServer, answers_requests_that_come_together_in_their_order) {
  const auto server = serve(echo);
  const Connection caller(server->port());
  caller.say(get("/1") + "POST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody" +
             get("/3"));
  const std::string heard = caller.hear("</3>");
  EXPECT_LT(heard.find("</1>"), heard.find("</2body>"));
  EXPECT_LT(heard.find("</2body>"), heard.find("</3>"));
}

TEST(HttpServer, puts_a_request_together_from_its_bytes) {
  const auto server = serve(echo);
  const Connection caller(server->port());
  for (const char c : std::string("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab"))
    caller.say(std::string(1, c));
  EXPECT_NE(caller.hear("</xab>").find("HTTP/1.1 200 OK\r\n"), std::string::npos);
}

TEST(HttpServer, tells_who_asks_to_go_on) {
  const auto server = serve(echo);
  const Connection caller(server->port());
  caller.say("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_TRUE(caller.hear("\r\n\r\n").starts_with("HTTP/1.1 100 "));
  caller.say("ab");
  EXPECT_NE(caller.hear("</xab>").find("Content-Length: 6\r\n"), std::string::npos);
}

TEST(HttpServer, says_how_long_an_answer_is_where_there_can_be_one) {
  const auto server = serve([](std::shared_ptr<Exchange> exchange) {
    HttpResponse response;
    response.status = exchange->request.path == "/none" ? 204 : 200;
    if (response.status == 200) response.body = "four";
    exchange->answer(std::move(response));
  });
  const Connection caller(server->port());
  caller.say("HEAD /x HTTP/1.1\r\nHost: h\r\n\r\n" + get("/none") + get("/x"));
  const std::string heard = caller.hear("four");
  EXPECT_EQ(heard.find("four"), heard.size() - 4) << "a HEAD has no body: " << heard;
  EXPECT_NE(heard.find("Content-Length: 4\r\n"), heard.rfind("Content-Length: 4\r\n"));
  const std::size_t none = heard.find("204 No Content");
  ASSERT_NE(none, std::string::npos);
  EXPECT_EQ(heard.substr(none, heard.find("\r\n\r\n", none) - none).find("Content-Length"),
            std::string::npos);
}

TEST(HttpServer, closes_when_the_caller_wants_it_and_after_what_is_no_request) {
  const auto server = serve(echo);
  const Connection once(server->port());
  once.say("GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_NE(once.hear().find("Connection: close\r\n"), std::string::npos);
  const Connection odd(server->port());
  odd.say("what is this?\r\n\r\n");
  EXPECT_TRUE(odd.hear("\r\n\r\n").starts_with("HTTP/1.1 400 "));
  HttpServerOptions narrow;
  narrow.max_body_bytes = 3;
  const auto small = serve(echo, narrow);
  const Connection large(small->port());
  large.say("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody");
  EXPECT_TRUE(large.hear("\r\n\r\n").starts_with("HTTP/1.1 413 "));
}

TEST(HttpServer, lets_go_of_who_is_late) {
  HttpServerOptions options;
  options.read_timeout_ms = options.idle_timeout_ms = 50;
  const auto server = serve(echo, options);
  const Connection silent(server->port());
  EXPECT_EQ(silent.hear(), "");
  const Connection slow(server->port());
  slow.say("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbo");
  EXPECT_EQ(slow.hear(), "");
  const Connection idle(server->port());
  idle.say(get("/x"));
  EXPECT_TRUE(idle.hear().ends_with("</x>"));
}

TEST(HttpServer, waits_for_an_answer_as_long_as_it_takes) {
  HttpServerOptions options;
  options.read_timeout_ms = options.idle_timeout_ms = 20;
  std::thread later;
  const auto server = serve(
      [&](std::shared_ptr<Exchange> exchange) {
        later = std::thread([exchange] {
          std::this_thread::sleep_for(std::chrono::milliseconds(200));
          echo(exchange);
        });
      },
      options);
  const Connection caller(server->port());
  caller.say(get("/x"));
  EXPECT_TRUE(caller.hear().ends_with("</x>"));
  later.join();
}

TEST(HttpServer, writes_more_than_the_socket_takes_at_once) {
  const std::string body(16 << 20, 'x');
  const auto server = serve([&](std::shared_ptr<Exchange> exchange) {
    HttpResponse response;
    response.body = body + "end";
    exchange->answer(std::move(response));
  });
  const Connection caller(server->port());
  caller.say(get("/x"));
  const std::string heard = caller.hear("end");
  EXPECT_EQ(heard.size() - heard.find("\r\n\r\n") - 4, body.size() + 3);
}

TEST(HttpServer, brings_answers_of_another_thread_to_those_who_asked) {
  constexpr std::size_t kCallers = 50;
  std::mutex mutex;
  std::vector<std::shared_ptr<Exchange>> asked;
  const auto server = serve([&](std::shared_ptr<Exchange> exchange) {
    const std::lock_guard lock(mutex);
    asked.push_back(std::move(exchange));
  });
  std::vector<std::unique_ptr<Connection>> callers;
  for (std::size_t i = 0; i < kCallers; ++i) {
    callers.push_back(std::make_unique<Connection>(server->port()));
    callers.back()->say(get("/" + std::to_string(i)));
  }
  for (std::size_t answered = 0; answered < kCallers;) {
    std::vector<std::shared_ptr<Exchange>> batch;
    {
      const std::lock_guard lock(mutex);
      batch.swap(asked);
    }
    for (const auto& exchange : batch) echo(exchange), echo(exchange);  // the second does nothing
    answered += batch.size();
  }
  for (std::size_t i = 0; i < kCallers; ++i)
    EXPECT_TRUE(callers[i]->hear(">").ends_with("</" + std::to_string(i) + ">")) << i;
}

TEST(HttpServer, that_drains_answers_and_closes) {
  const auto server = serve(echo);
  const Connection early(server->port());
  early.say(get("/one"));
  EXPECT_EQ(early.hear(">").find("Connection: close"), std::string::npos);
  server->drain();
  early.say(get("/two"));
  const std::string heard = early.hear();  // until it is closed
  EXPECT_NE(heard.find("Connection: close"), std::string::npos);
  EXPECT_TRUE(heard.ends_with("</two>")) << heard;
  const Connection late(server->port());
  late.say(get("/three"));
  EXPECT_TRUE(late.hear().ends_with("</three>"));
}

// A client that trusts one authority.
class Trusting {
 public:
  Trusting(const testing_certificates::Authority& authority, std::uint16_t port)
      : file_(std::filesystem::path(testing::TempDir()) /
              ("trusted-" + std::to_string(getpid()) + "-" + std::to_string(++made_) + ".pem")) {
    std::ofstream(file_) << authority.certificate();
    HttpClientOptions options;
    options.ca_file = file_;
    client_ = std::make_unique<HttpClient>(*parse_url("https://127.0.0.1:" + std::to_string(port)),
                                           options);
  }
  ~Trusting() { std::filesystem::remove(file_); }
  Trusting(const Trusting&) = delete;
  Trusting& operator=(const Trusting&) = delete;

  bool is_served() const {
    ClientRequest request;
    request.target = "/x";
    return client_->send(request).ok();
  }

 private:
  static inline int made_ = 0;
  std::filesystem::path file_;
  std::unique_ptr<HttpClient> client_;
};

TEST(HttpServer, takes_a_new_certificate_while_connections_stay_open) {
  const testing_certificates::Authority first, second;
  const auto old = first.sign("server", "IP:127.0.0.1");
  const auto renewed = second.sign("server", "IP:127.0.0.1");
  HttpServerOptions options;
  options.tls_certificate = old.certificate;
  options.tls_key = old.key;
  const auto server = serve(echo, options);
  const Trusting early(first, server->port());
  EXPECT_TRUE(early.is_served());
  EXPECT_FALSE(Trusting(second, server->port()).is_served());

  EXPECT_FALSE(server->renew_tls(renewed.certificate, old.key).ok());
  EXPECT_FALSE(server->renew_tls("none", renewed.key).ok());
  EXPECT_TRUE(Trusting(first, server->port()).is_served());

  ASSERT_TRUE(server->renew_tls(renewed.certificate, renewed.key).ok());
  bool is_new = false;
  for (int i = 0; i < 6000 && !is_new; ++i) {
    is_new = Trusting(second, server->port()).is_served();
    if (!is_new) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(is_new);
  EXPECT_FALSE(Trusting(first, server->port()).is_served());
  EXPECT_TRUE(early.is_served());
}

}  // namespace
}  // namespace gs
