#include "net/http_server.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.hpp"
#include "net/http_session.hpp"

namespace gs {
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

using TlsContext = std::shared_ptr<asio::ssl::context>;
using Ssl = asio::ssl::context;

TlsContext tls_context() {
  auto tls = std::make_shared<Ssl>(Ssl::tls_server);
  tls->set_options(Ssl::default_workarounds | Ssl::no_sslv2 | Ssl::no_sslv3 | Ssl::no_tlsv1 |
                   Ssl::no_tlsv1_1);
  return tls;
}

Result<TlsContext> tls_of_files(const std::string& certificate_file, const std::string& key_file) {
  TlsContext tls = tls_context();
  boost::system::error_code error;
  tls->use_certificate_chain_file(certificate_file, error);
  if (error) return invalid("TLS certificate " + certificate_file + ": " + error.message());
  tls->use_private_key_file(key_file, Ssl::pem, error);
  if (error) return invalid("TLS key " + key_file + ": " + error.message());
  return tls;
}

Result<TlsContext> tls_of_texts(const std::string& certificate, const std::string& key) {
  TlsContext tls = tls_context();
  boost::system::error_code error;
  tls->use_certificate_chain(asio::buffer(certificate), error);
  if (error) return invalid("the TLS certificate can't be used: " + error.message());
  tls->use_private_key(asio::buffer(key), Ssl::pem, error);
  if (error) return invalid("the TLS key can't be used: " + error.message());
  return tls;
}

}  // namespace

struct HttpServer::Impl {
  HttpServerOptions options;
  HttpHandler handler;
  std::shared_ptr<asio::ssl::context> tls;  // of the server's thread, once it runs; null: plain
  HttpSessions sessions;  // before the context: what is suspended in it ends with it
  asio::io_context context{1};
  tcp::acceptor acceptor{context};
  std::thread thread;
  bool stopped = false;

  Status listen();
  Status load_certificate();
  asio::awaitable<void> accept_loop();
  asio::awaitable<void> close_late_ones();
  void serve(tcp::socket socket);
};

Status HttpServer::Impl::load_certificate() {
  if (options.tls_certificate.empty() && options.tls_certificate_file.empty()) return ok_status();
  Result<TlsContext> made = options.tls_certificate.empty()
                                ? tls_of_files(options.tls_certificate_file, options.tls_key_file)
                                : tls_of_texts(options.tls_certificate, options.tls_key);
  if (!made) return made.error();
  tls = std::move(*made);
  return ok_status();
}

Status HttpServer::Impl::listen() {
  boost::system::error_code error;
  const auto address = asio::ip::make_address(options.bind, error);
  if (error) return invalid("bind address '" + options.bind + "' is not an IP address");
  const tcp::endpoint endpoint{address, options.port};
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(4096, error);
  if (error)
    return Error{ErrorCode::Unavailable, "can't listen on " + options.bind + ":" +
                                             std::to_string(options.port) + ": " + error.message()};
  return ok_status();
}

void HttpServer::Impl::serve(tcp::socket socket) {
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  const HttpLimits limits{options.max_body_bytes, options.idle_timeout_ms, options.read_timeout_ms};
  auto executor = socket.get_executor();
  if (tls != nullptr) {
    asio::co_spawn(executor, serve_tls(std::move(socket), tls, handler, limits, sessions),
                   asio::detached);
  } else {
    asio::co_spawn(executor, serve_plain(std::move(socket), handler, limits, sessions),
                   asio::detached);
  }
}

asio::awaitable<void> HttpServer::Impl::accept_loop() {
  while (acceptor.is_open()) {
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    tcp::socket socket = co_await acceptor.async_accept(token);
    if (error == asio::error::operation_aborted) co_return;
    if (error) {
      // Out of file descriptors, most likely: others must end first.
      log_warn("a connection was not accepted", {{"error", error.message()}});
      asio::steady_timer pause(context, std::chrono::milliseconds(50));
      boost::system::error_code ignored;
      auto pause_token = asio::redirect_error(asio::use_awaitable, ignored);
      co_await pause.async_wait(pause_token);
      continue;
    }
    if (sessions.count() >= options.max_connections) continue;  // closed by its destructor
    serve(std::move(socket));
  }
}

asio::awaitable<void> HttpServer::Impl::close_late_ones() {
  const int shortest = std::min(options.idle_timeout_ms, options.read_timeout_ms);
  const std::chrono::milliseconds pause(std::clamp(shortest / 10, 10, 1000));
  asio::steady_timer timer(context);
  for (;;) {
    timer.expires_after(pause);
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    co_await timer.async_wait(token);
    if (error) co_return;
    sessions.close_late();
  }
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options,
                                                      HttpHandler handler) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->handler = std::move(handler);
  if (Status s = impl->load_certificate(); !s) return s.error();
  if (Status s = impl->listen(); !s) return s.error();
  impl->sessions.outbox = std::make_shared<Outbox>(impl->context.get_executor());
  asio::co_spawn(impl->context, impl->accept_loop(), asio::detached);
  asio::co_spawn(impl->context, impl->close_late_ones(), asio::detached);
  impl->thread = std::thread([context = &impl->context] { context->run(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() { stop(); }

std::uint16_t HttpServer::port() const { return impl_->acceptor.local_endpoint().port(); }

std::size_t HttpServer::connections() const { return impl_->sessions.count(); }

Status HttpServer::renew_tls(const std::string& certificate, const std::string& key) {
  Result<TlsContext> made = tls_of_texts(certificate, key);
  if (!made) return made.error();
  asio::post(impl_->context, [impl = impl_.get(), tls = std::move(*made)]() mutable {
    impl->tls = std::move(tls);
  });
  return ok_status();
}

void HttpServer::drain() { impl_->sessions.drain(); }

void HttpServer::stop() {
  if (impl_->stopped) return;
  impl_->stopped = true;
  asio::post(impl_->context, [impl = impl_.get()] {
    boost::system::error_code ignored;
    impl->acceptor.close(ignored);
  });
  impl_->sessions.close_idle();
  for (int i = 0; i < 100 && impl_->sessions.busy() > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  impl_->context.stop();
  impl_->thread.join();
}

}  // namespace gs
