#include "net/http_server.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.hpp"
#include "net/http_session.hpp"

namespace gs {
namespace asio = boost::asio;
using asio::ip::tcp;

struct HttpServer::Impl {
  HttpServerOptions options;
  HttpHandler handler;
  asio::ssl::context tls{asio::ssl::context::tls_server};
  HttpSessions sessions;  // before the context: what is suspended in it ends with it
  asio::io_context context{1};
  tcp::acceptor acceptor{context};
  std::thread thread;
  bool stopped = false;

  bool secure() const { return !options.tls_certificate_file.empty(); }
  Status listen();
  Status load_certificate();
  asio::awaitable<void> accept_loop();
  asio::awaitable<void> close_late_ones();
  void serve(tcp::socket socket);
};

Status HttpServer::Impl::load_certificate() {
  boost::system::error_code error;
  tls.set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 |
                  asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 |
                  asio::ssl::context::no_tlsv1_1);
  tls.use_certificate_chain_file(options.tls_certificate_file, error);
  if (error)
    return invalid("TLS certificate " + options.tls_certificate_file + ": " + error.message());
  tls.use_private_key_file(options.tls_key_file, asio::ssl::context::pem, error);
  if (error) return invalid("TLS key " + options.tls_key_file + ": " + error.message());
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
  if (secure()) {
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
  if (impl->secure())
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
