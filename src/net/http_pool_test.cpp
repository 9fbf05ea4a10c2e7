#include "net/http_pool.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/certificates_test.hpp"
#include "net/http_server.hpp"

namespace gs {
namespace {

using testing_certificates::Authority;
using testing_certificates::Identity;

// Waits until it holds, at most half a minute.
template <typename Condition>
bool comes_true(Condition condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

HttpUrl local(std::uint16_t port, bool tls = false) {
  return *parse_url((tls ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port));
}

void echo(const std::shared_ptr<Exchange>& exchange) {
  const HttpRequest& request = exchange->request;
  HttpResponse response;
  response.headers = {{"X-One", "1"}, {"X-Two", "2"}};
  response.body = std::string(request.method()) + " " + request.path + " " + request.body() + " " +
                  std::string(request.header("Content-Type")) + " " +
                  std::string(request.header("X-Extra"));
  exchange->answer(std::move(response));
}

// A server that accepts one connection after the other and lets the test act on it.
class RawServer {
 public:
  using Act = std::function<void(int socket, int number)>;

  explicit RawServer(Act act) : act_(std::move(act)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 100), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~RawServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  std::uint16_t port() const { return port_; }
  int accepted() const { return accepted_; }

  static std::string read_request(int socket) {
    std::string text;
    char byte = 0;
    while (!text.ends_with("\r\n\r\n") && ::recv(socket, &byte, 1, 0) == 1) text += byte;
    return text;
  }
  static void write(int socket, std::string_view text) {
    (void)::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
  }

 private:
  void run() {
    while (true) {
      const int socket = ::accept(listener_, nullptr, nullptr);
      if (socket < 0) return;
      act_(socket, accepted_++);
      ::close(socket);
    }
  }
  Act act_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<int> accepted_{0};
  std::thread thread_;
};

class Pool : public ::testing::Test {
 protected:
  Pool() { loop_.start(); }
  ~Pool() override {
    if (pool_) pool_->stop();
    loop_.finish();
    EXPECT_EQ(answered_, asked_);  // every callback once
    const std::lock_guard lock(mutex_);
    for (const auto& exchange : held_) exchange->answer(HttpResponse{});
  }
  // A server that never answers; at the end it does, or its sessions would wait for ever.
  void serve_nothing() {
    serve([this](std::shared_ptr<Exchange> exchange) {
      const std::lock_guard lock(mutex_);
      held_.push_back(std::move(exchange));
    });
  }
  void serve(HttpHandler handler) {
    HttpServerOptions options;
    options.port = 0;
    auto started = HttpServer::start(options, std::move(handler));
    ASSERT_TRUE(started.ok());
    server_ = std::move(*started);
    connect(local(server_->port()));
  }
  void connect(const HttpUrl& url, HttpPoolOptions options = {}) {
    auto made = HttpPool::create(loop_, url, std::move(options));
    ASSERT_TRUE(made.ok()) << made.error().message;
    pool_ = std::move(*made);
  }
  HttpPool::Callback counted(HttpPool::Callback done) {
    ++asked_;
    return [this, done = std::move(done)](PoolResult result) {
      ++answered_;
      if (done) done(std::move(result));
    };
  }
  // Sends and waits.
  PoolResult ask(PoolRequest request) {
    std::optional<PoolResult> got;
    std::atomic<bool> has_come = false;
    pool_->send(std::move(request), counted([&](PoolResult result) {
                  got.emplace(std::move(result));
                  has_come = true;
                }));
    EXPECT_TRUE(comes_true([&] { return has_come.load(); }));
    if (!has_come) std::abort();
    return std::move(*got);
  }
  static PoolRequest to(std::string target, Duration timeout = seconds(30)) {
    PoolRequest request;
    request.target = std::move(target);
    request.timeout = timeout;
    return request;
  }

  std::mutex mutex_;
  std::vector<std::shared_ptr<Exchange>> held_;
  EventLoop loop_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<HttpPool> pool_;
  std::atomic<int> asked_{0}, answered_{0};
};

TEST_F(Pool, sends_all_of_a_request) {
  serve(echo);
  PoolRequest request = to("/a?b=c");
  request.method = "PATCH";
  request.body = "[]";
  request.content_type = "application/json-patch+json";
  request.headers = {{"X-Extra", "yes"}};
  const PoolResult result = ask(std::move(request));
  ASSERT_TRUE(result.answer.ok()) << result.answer.error().message;
  EXPECT_EQ(result.answer->status, 200);
  EXPECT_EQ(result.answer->body, "PATCH /a [] application/json-patch+json yes");
  EXPECT_EQ(result.answer->header("x-two"), "2");
  EXPECT_TRUE(result.sent);
}

TEST_F(Pool, keeps_only_the_headers_that_are_wanted) {
  serve(echo);
  HttpPoolOptions options;
  options.kept_headers = {"x-one"};
  connect(local(server_->port()), options);
  const PoolResult result = ask(to("/"));
  ASSERT_TRUE(result.answer.ok());
  ASSERT_EQ(result.answer->headers.size(), 1U);
  EXPECT_EQ(result.answer->header("X-One"), "1");
}

TEST_F(Pool, thousands_of_requests_share_few_connections) {
  serve(echo);
  HttpPoolOptions options;
  options.connections = 8;
  options.for_ordinary = 8;
  connect(local(server_->port()), options);
  std::atomic<int> good = 0;
  for (int i = 0; i < 2000; ++i)
    pool_->send(to("/" + std::to_string(i)), counted([&, i](PoolResult result) {
                  if (result.answer.ok() &&
                      result.answer->body.starts_with("GET /" + std::to_string(i) + " "))
                    ++good;
                }));
  EXPECT_TRUE(comes_true([&] { return answered_ == 2000; }));
  EXPECT_EQ(good, 2000);
  EXPECT_LE(pool_->figures().connected, 8U);
}

TEST_F(Pool, a_full_queue_refuses) {
  serve_nothing();
  HttpPoolOptions options;
  options.connections = 1;
  options.queue = 2;
  connect(local(server_->port()), options);
  std::atomic<int> refused = 0;
  for (int i = 0; i < 10; ++i)
    pool_->send(to("/"), counted([&](PoolResult result) {
                  if (!result.answer.ok() && result.answer.error().code == ErrorCode::QueueFull)
                    ++refused;
                }));
  EXPECT_TRUE(comes_true([&] { return refused >= 7; }));
}

TEST_F(Pool, urgent_requests_overtake_and_have_connections_of_their_own) {
  std::mutex mutex;
  std::vector<std::shared_ptr<Exchange>> held;
  std::vector<std::string> order;
  serve([&](std::shared_ptr<Exchange> exchange) {
    const std::lock_guard lock(mutex);
    order.push_back(exchange->request.path);
    held.push_back(std::move(exchange));
  });
  HttpPoolOptions options;
  options.connections = 2;
  options.for_ordinary = 1;
  connect(local(server_->port()), options);
  const auto count = [&] {
    const std::lock_guard lock(mutex);
    return order.size();
  };
  const auto send = [&](const std::string& target, Lane lane) {
    PoolRequest request = to(target);
    request.lane = lane;
    pool_->send(std::move(request), counted({}));
  };
  send("/slow", Lane::Ordinary);
  ASSERT_TRUE(comes_true([&] { return count() == 1; }));
  send("/later", Lane::Ordinary);
  send("/urgent-1", Lane::Urgent);
  ASSERT_TRUE(comes_true([&] { return count() == 2; }));
  send("/urgent-2", Lane::Urgent);
  // One connection becomes free, while the other one is still taken: who gets it?
  const auto answer_first = [&] {
    const std::lock_guard lock(mutex);
    held.front()->answer(HttpResponse{});
    held.erase(held.begin());
  };
  answer_first();
  ASSERT_TRUE(comes_true([&] { return count() == 3; }));
  while (answered_ < 4) {
    const std::lock_guard lock(mutex);
    for (const auto& exchange : held) exchange->answer(HttpResponse{});
    held.clear();
  }
  EXPECT_EQ(order, (std::vector<std::string>{"/slow", "/urgent-1", "/urgent-2", "/later"}));
}

TEST_F(Pool, does_not_wait_for_ever) {
  serve_nothing();
  HttpPoolOptions options;
  options.connections = 1;
  connect(local(server_->port()), options);
  std::atomic<int> unsent = 0;
  for (int i = 0; i < 3; ++i)  // the last ones are late while they wait for the first
    pool_->send(to("/", milliseconds(60)), counted([&](PoolResult result) {
                  ASSERT_FALSE(result.answer.ok());
                  EXPECT_NE(result.answer.error().message.find("did not answer within 60 ms"),
                            std::string::npos);
                  if (!result.sent) ++unsent;
                }));
  EXPECT_TRUE(comes_true([&] { return answered_ == 3; }));
  EXPECT_GE(unsent, 1);
}

TEST_F(Pool, a_server_that_is_away_is_an_error_and_its_return_is_seen) {
  serve(echo);
  ASSERT_TRUE(ask(to("/")).answer.ok());
  const std::uint16_t port = server_->port();
  server_.reset();
  const PoolResult refused = ask(to("/"));
  ASSERT_FALSE(refused.answer.ok());
  EXPECT_EQ(refused.answer.error().code, ErrorCode::Unavailable);
  EXPECT_FALSE(refused.sent);
  HttpServerOptions options;
  options.port = port;
  auto again = HttpServer::start(options, echo);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(ask(to("/")).answer.ok());
}

TEST_F(Pool, one_try_each_and_no_more_at_a_server_that_is_away) {
  RawServer hangs_up([](int, int) {});
  connect(local(hangs_up.port(), true));  // no connection lives to see TLS
  for (int i = 0; i < 8; ++i)
    pool_->send(to("/", seconds(3)), counted([](PoolResult result) {
                  ASSERT_FALSE(result.answer.ok());
                  EXPECT_NE(result.answer.error().message.find("cannot reach"), std::string::npos)
                      << result.answer.error().message;
                }));
  EXPECT_TRUE(comes_true([&] { return answered_ == 8; }));
  EXPECT_LE(hangs_up.accepted(), 8);
}

TEST_F(Pool, a_connection_closed_while_idle_is_replaced_and_nothing_is_lost) {
  const char* answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  RawServer server([&](int socket, int) {  // keeps no connection alive, but does not say so
    RawServer::read_request(socket);
    RawServer::write(socket, answer);
  });
  connect(local(server.port()));
  for (int i = 0; i < 20; ++i) {
    const PoolResult result = ask(to("/"));
    ASSERT_TRUE(result.answer.ok()) << i << ": " << result.answer.error().message;
    EXPECT_TRUE(comes_true([&] { return pool_->figures().connections == 0; }));
  }
  EXPECT_EQ(server.accepted(), 20);
}

TEST_F(Pool, a_request_that_was_cut_off_is_not_sent_again) {
  std::atomic<int> requests = 0;
  RawServer server([&](int socket, int) {
    if (!RawServer::read_request(socket).empty()) ++requests;
  });
  connect(local(server.port()));
  const PoolResult result = ask(to("/"));
  ASSERT_FALSE(result.answer.ok());
  EXPECT_TRUE(result.sent);
  EXPECT_NE(result.answer.error().message.find("closed the connection"), std::string::npos);
  EXPECT_EQ(requests, 1);
}

TEST_F(Pool, half_an_answer_is_none_and_one_to_the_end_is_whole) {
  RawServer server([&](int socket, int number) {
    RawServer::read_request(socket);
    RawServer::write(socket, number == 0   ? "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"
                             : number == 1 ? "HTTP/1.0 200 OK\r\n\r\nall there is"
                                           : "this is not HTTP\r\n\r\n");
  });
  connect(local(server.port()));
  const PoolResult half = ask(to("/"));
  EXPECT_FALSE(half.answer.ok());
  const PoolResult whole = ask(to("/"));
  ASSERT_TRUE(whole.answer.ok());
  EXPECT_EQ(whole.answer->body, "all there is");
  EXPECT_FALSE(ask(to("/")).answer.ok());
}

TEST_F(Pool, an_answer_may_come_byte_by_byte) {
  RawServer server([&](int socket, int) {
    RawServer::read_request(socket);
    const std::string_view text =
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    for (const char& byte : text) {
      RawServer::write(socket, {&byte, 1});
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  connect(local(server.port()));
  const PoolResult result = ask(to("/"));
  ASSERT_TRUE(result.answer.ok()) << result.answer.error().message;
  EXPECT_EQ(result.answer->status, 201);
  EXPECT_EQ(result.answer->body, "abcde");
}

TEST_F(Pool, an_answer_counts_even_if_the_server_does_not_listen_to_the_end) {
  std::atomic<bool> is_over = false;
  RawServer server([&](int socket, int) {
    RawServer::read_request(socket);
    RawServer::write(socket, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
    comes_true([&] { return is_over.load(); });
  });
  connect(local(server.port()));
  PoolRequest request = to("/", seconds(3));
  request.method = "POST";
  request.body.assign(16U << 20, 'x');
  const PoolResult result = ask(std::move(request));
  is_over = true;
  ASSERT_TRUE(result.answer.ok()) << result.answer.error().message;
  EXPECT_EQ(result.answer->status, 413);
  EXPECT_EQ(result.answer->body, "no");
  EXPECT_EQ(pool_->figures().connections, 0U);
}

TEST_F(Pool, refuses_requests_that_would_smuggle_lines) {
  serve(echo);
  PoolRequest request = to("/ HTTP/1.1\r\nX: y");
  const PoolResult bad_target = ask(std::move(request));
  ASSERT_FALSE(bad_target.answer.ok());
  EXPECT_EQ(bad_target.answer.error().code, ErrorCode::InvalidArgument);
  request = to("/");
  request.headers = {{"Authorization", "Bearer a\r\nX: y"}};
  EXPECT_FALSE(ask(std::move(request)).answer.ok());
}

NextPiece pieces(int count) {
  auto left = std::make_shared<int>(count);
  return [left]() -> boost::asio::awaitable<std::optional<std::string>> {
    if (*left == 0) co_return std::nullopt;
    co_return std::to_string((*left)--) + "\n";
  };
}

TEST_F(Pool, streams_come_piece_by_piece_to_their_end) {
  serve([](const std::shared_ptr<Exchange>& exchange) {
    exchange->answer(HttpStream{"application/json", {}, pieces(1000)});
  });
  std::string all;
  std::atomic<bool> has_ended = false;
  pool_->stream(
      to("/"), [&](std::string_view piece) { all += piece; }, counted([&](PoolResult result) {
        EXPECT_TRUE(result.answer.ok());
        has_ended = true;
      }),
      seconds(30));
  ASSERT_TRUE(comes_true([&] { return has_ended.load(); }));
  EXPECT_TRUE(all.starts_with("1000\n999\n"));
  EXPECT_TRUE(all.ends_with("\n2\n1\n"));
}

TEST_F(Pool, a_refusal_of_a_stream_comes_back_whole) {
  serve([](const std::shared_ptr<Exchange>& exchange) {
    HttpResponse response;
    response.status = 410;
    response.body = "gone";
    exchange->answer(std::move(response));
  });
  std::atomic<bool> has_ended = false;
  pool_->stream(to("/"), [](std::string_view) { ADD_FAILURE() << "a refusal is no stream"; },
                counted([&](PoolResult result) {
                  ASSERT_TRUE(result.answer.ok());
                  EXPECT_EQ(result.answer->status, 410);
                  EXPECT_EQ(result.answer->body, "gone");
                  has_ended = true;
                }),
                {});
  EXPECT_TRUE(comes_true([&] { return has_ended.load(); }));
}

TEST_F(Pool, a_stream_that_falls_silent_ends_and_takes_no_connection_of_others) {
  RawServer server([&](int socket, int) {
    RawServer::read_request(socket);
    RawServer::write(socket, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    RawServer::read_request(socket);  // until the other side leaves
  });
  HttpPoolOptions options;
  options.connections = 1;
  connect(local(server.port()), options);
  std::string all;
  std::atomic<bool> has_ended = false;
  pool_->stream(
      to("/"), [&](std::string_view piece) { all += piece; }, counted([&](PoolResult result) {
        ASSERT_FALSE(result.answer.ok());
        EXPECT_NE(result.answer.error().message.find("within 100 ms"), std::string::npos);
        has_ended = true;
      }),
      milliseconds(100));
  ASSERT_TRUE(comes_true([&] { return has_ended.load(); }));
  EXPECT_EQ(all, "abc");
}

TEST_F(Pool, cancelling_and_stopping_call_every_callback_once) {
  serve_nothing();
  HttpPoolOptions options;
  options.connections = 4;
  connect(local(server_->port()), options);
  std::atomic<int> failed = 0;
  std::vector<HttpPool::RequestId> ids;
  for (int i = 0; i < 100; ++i)
    ids.push_back(pool_->send(to("/"), counted([&](PoolResult result) {
                                if (!result.answer.ok()) ++failed;
                              })));
  ASSERT_TRUE(comes_true([&] { return pool_->figures().in_flight == 4; }));
  for (int i = 0; i < 50; ++i) pool_->cancel(ids[static_cast<std::size_t>(i)]);
  ASSERT_TRUE(comes_true([&] { return failed == 50; }));
  pool_->cancel(ids[0]);  // it is over already
  pool_->stop();
  pool_->send(to("/"), counted({}));  // after the end
  loop_.finish();
  EXPECT_EQ(failed, 100);
  EXPECT_EQ(answered_, 101);
}

TEST_F(Pool, callbacks_may_send_and_the_pool_may_go_while_requests_are_under_way) {
  serve(echo);
  std::atomic<int> rounds = 0;
  std::function<void(PoolResult)> again;
  again = [&](PoolResult result) {
    if (result.answer.ok() && ++rounds < 100) pool_->send(to("/"), counted(again));
  };
  pool_->send(to("/"), counted(again));
  ASSERT_TRUE(comes_true([&] { return rounds == 100; }));
  for (int i = 0; i < 50; ++i) pool_->send(to("/"), counted({}));
  pool_.reset();
}

// ------------------------------------------------------------------------------------------- TLS

class TlsPool : public Pool {
 protected:
  void serve_tls(const std::string& names) {
    folder_ = std::filesystem::temp_directory_path() /
              ("pool-" + std::to_string(::getpid()) + "-" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    const Identity identity = authority_.sign("server", names);
    std::ofstream(folder_ / "tls.crt") << identity.certificate;
    std::ofstream(folder_ / "tls.key") << identity.key;
    HttpServerOptions options;
    options.port = 0;
    options.tls_certificate_file = folder_ / "tls.crt";
    options.tls_key_file = folder_ / "tls.key";
    auto started = HttpServer::start(options, echo);
    ASSERT_TRUE(started.ok());
    server_ = std::move(*started);
  }
  ~TlsPool() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  HttpPoolOptions trusting() const {
    HttpPoolOptions options;
    options.tls.ca = authority_.certificate();
    return options;
  }
  Authority authority_;
  std::filesystem::path folder_;
};

TEST_F(TlsPool, talks_to_a_server_that_it_trusts) {
  serve_tls("IP:127.0.0.1");
  connect(local(server_->port(), true), trusting());
  std::atomic<int> good = 0;
  for (int i = 0; i < 500; ++i)
    pool_->send(to("/"), counted([&](PoolResult result) {
                  if (result.answer.ok()) ++good;
                }));
  EXPECT_TRUE(comes_true([&] { return answered_ == 500; }));
  EXPECT_EQ(good, 500);
  const PoolResult later = ask(to("/"));
  EXPECT_TRUE(later.answer.ok());
  ASSERT_TRUE(pool_->renew_tls(trusting().tls).ok());
  EXPECT_TRUE(ask(to("/")).answer.ok());
}

TEST_F(TlsPool, refuses_strangers_and_wrong_names_before_anything_is_sent) {
  serve_tls("DNS:kubernetes");
  connect(local(server_->port(), true), trusting());
  const PoolResult wrong_name = ask(to("/"));
  ASSERT_FALSE(wrong_name.answer.ok());
  EXPECT_FALSE(wrong_name.sent);
  EXPECT_NE(wrong_name.answer.error().message.find("mismatch"), std::string::npos)
      << wrong_name.answer.error().message;
  HttpPoolOptions options = trusting();
  options.tls.server_name = "kubernetes";
  connect(local(server_->port(), true), options);
  EXPECT_TRUE(ask(to("/")).answer.ok());
  options.tls.ca = Authority().certificate();
  connect(local(server_->port(), true), options);
  EXPECT_FALSE(ask(to("/")).answer.ok());
  options.tls.trust_anybody = true;
  options.tls.server_name = "someone";
  connect(local(server_->port(), true), options);
  EXPECT_TRUE(ask(to("/")).answer.ok());
}

// Answers with the name in the client's certificate, one connection after the other.
void tell_the_caller_its_name(int socket, const Identity& identity, const std::string& ca) {
  const auto read_certificate = [](const std::string& pem) {
    BIO* in = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
    X509* certificate = PEM_read_bio_X509(in, nullptr, nullptr, nullptr);
    BIO_free(in);
    return certificate;
  };
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  X509* own = read_certificate(identity.certificate);
  SSL_CTX_use_certificate(context, own);
  BIO* key_text = BIO_new_mem_buf(identity.key.data(), static_cast<int>(identity.key.size()));
  EVP_PKEY* key = PEM_read_bio_PrivateKey(key_text, nullptr, nullptr, nullptr);
  SSL_CTX_use_PrivateKey(context, key);
  X509* authority = read_certificate(ca);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL* tls = SSL_new(context);
  SSL_set_fd(tls, socket);
  if (SSL_accept(tls) == 1) {
    char request[4096];
    (void)SSL_read(tls, request, sizeof request);
    char name[64] = {};
    X509* caller = SSL_get1_peer_certificate(tls);
    X509_NAME_get_text_by_NID(X509_get_subject_name(caller), NID_commonName, name, sizeof name);
    X509_free(caller);
    const std::string answer = "HTTP/1.0 200 OK\r\n\r\n" + std::string(name);
    (void)SSL_write(tls, answer.data(), static_cast<int>(answer.size()));
    SSL_shutdown(tls);
  }
  SSL_free(tls);
  SSL_CTX_free(context);
  X509_free(authority);
  X509_free(own);
  EVP_PKEY_free(key);
  BIO_free(key_text);
}

TEST_F(TlsPool, shows_its_own_certificate) {
  const Identity server_identity = authority_.sign("server", "IP:127.0.0.1");
  RawServer server([&](int socket, int) {
    tell_the_caller_its_name(socket, server_identity, authority_.certificate());
  });
  HttpPoolOptions options = trusting();
  connect(local(server.port(), true), options);
  EXPECT_FALSE(ask(to("/")).answer.ok());  // without one
  const Identity own = authority_.sign("gpu-scheduler", "");
  options.tls.certificate = own.certificate;
  options.tls.key = own.key;
  connect(local(server.port(), true), options);
  const PoolResult known = ask(to("/"));
  ASSERT_TRUE(known.answer.ok()) << known.answer.error().message;
  EXPECT_EQ(known.answer->body, "gpu-scheduler");
  options.tls.key = authority_.sign("somebody else", "").key;
  EXPECT_FALSE(HttpPool::create(loop_, local(server.port(), true), options).ok());
}

TEST_F(TlsPool, a_certificate_that_is_none_is_refused_with_its_name) {
  HttpPoolOptions options = trusting();
  options.tls.certificate_file = "no/such.crt";
  auto made = HttpPool::create(loop_, local(1, true), options);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().message.find("client certificate no/such.crt"), std::string::npos);
  options = {};
  options.tls.ca = "not a certificate";
  EXPECT_FALSE(HttpPool::create(loop_, local(1, true), options).ok());
}

}  // namespace
}  // namespace gs
