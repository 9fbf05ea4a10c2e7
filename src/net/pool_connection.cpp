#include "net/pool_connection.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include "net/client_failure.hpp"
#include "net/tls_client.hpp"

namespace gs {
namespace asio = boost::asio;
namespace http = boost::beast::http;

namespace {

constexpr std::size_t kReadBytes = 16U << 10;  // a TLS record
constexpr auto kForever = EventLoop::Clock::time_point::max();
// Unread bytes on a connection that rests longer than this are no tickets of the handshake.
constexpr auto kSettled = std::chrono::seconds(1);

// A peer that has vanished without a word is noticed within half a minute.
void watch_over(int socket) {
  const auto set = [&](int level, int name, int value) {
    (void)::setsockopt(socket, level, name, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

void write_message(std::string& out, const HttpUrl& server, const HttpPoolOptions& options,
                   const PoolRequest& request) {
  out.clear();
  out.append(request.method).append(" ").append(server.path).append(request.target);
  out.append(" HTTP/1.1\r\n");
  append_field(out, "Host", server.authority());
  append_field(out, "User-Agent", options.user_agent);
  append_field(out, "Accept", "application/json");
  for (const auto& [name, value] : request.headers) append_field(out, name, value);
  if (!request.body.empty()) append_field(out, "Content-Type", request.content_type);
  if (!request.body.empty() || request.method != "GET")
    append_field(out, "Content-Length", std::to_string(request.body.size()));
  out.append("\r\n").append(request.body);
}

}  // namespace

PoolConnection::PoolConnection(asio::io_context& context, Setting setting, Owner& owner)
    : context_(context),
      setting_(std::move(setting)),
      owner_(&owner),
      socket_(context.get_executor()),
      since_(Clock::now()) {}

// ------------------------------------------------------------------------------------- opening

void PoolConnection::open() {
  ErrorCode error;
  const auto address = asio::ip::make_address(setting_.server.host, error);
  if (error) return resolve();
  endpoints_ = {{address, static_cast<std::uint16_t>(std::stoi(setting_.server.port))}};
  connect(0);
}

void PoolConnection::resolve() {
  resolver_ = std::make_shared<Resolver>(context_.get_executor());
  resolver_->async_resolve(
      setting_.server.host, setting_.server.port,
      [self = shared_from_this()](const ErrorCode& error, const Resolver::results_type& results) {
        if (self->owner_ == nullptr) return;
        if (error) return self->fail_to_open(error.message());
        for (const auto& entry : results) self->endpoints_.push_back(entry.endpoint());
        self->connect(0);
      });
}

void PoolConnection::connect(std::size_t index) {
  ErrorCode ignored;
  socket_.close(ignored);
  socket_.async_connect(
      endpoints_[index], [self = shared_from_this(), index](const ErrorCode& error) {
        if (self->owner_ == nullptr) return;
        if (!error) {
          watch_over(self->socket_.native_handle());
          return self->setting_.server.tls ? self->shake_hands() : self->finish_opening();
        }
        if (index + 1 < self->endpoints_.size()) return self->connect(index + 1);
        self->fail_to_open(error.message());
      });
}

void PoolConnection::shake_hands() {
  secure_.emplace(socket_, *setting_.tls);
  expect_server(secure_->native_handle(), setting_.options.tls, setting_.server.host);
  secure_->async_handshake(
      asio::ssl::stream_base::client, [self = shared_from_this()](const ErrorCode& error) {
        if (self->owner_ == nullptr) return;
        if (!error) return self->finish_opening();
        const long verdict = SSL_get_verify_result(self->secure_->native_handle());
        self->fail_to_open(verdict == X509_V_OK ? error.message()
                                                : X509_verify_cert_error_string(verdict));
      });
}

void PoolConnection::finish_opening() {
  opening_ = false;
  since_ = Clock::now();
  resolver_.reset();
  in_.resize(kReadBytes);
  read();
  owner_->opened(*this);
}

void PoolConnection::fail_to_open(const std::string& what) {
  const auto self = shared_from_this();
  Owner* owner = owner_;
  close();
  owner->not_opened(*this, unreachable(setting_.server, what));
}

void PoolConnection::close() {
  owner_ = nullptr;
  opening_ = false;
  if (resolver_) resolver_->cancel();
  ErrorCode ignored;
  socket_.close(ignored);
}

// ------------------------------------------------------------------------------------- requests

bool PoolConnection::is_stale() {
  char byte = 0;
  const auto got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got > 0) return Clock::now() - since_ > kSettled;
  return got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

void PoolConnection::prepare_parser() {
  parser_.emplace(setting_.options.kept_headers, job_->is_stream ? &job_->piece : nullptr);
  parser_->eager(true);
  parser_->skip(job_->request.method == "HEAD");
  if (job_->is_stream)
    parser_->body_limit(boost::none);
  else
    parser_->body_limit(setting_.options.max_body_bytes);
}

void PoolConnection::start(PoolJob job) {
  job_.emplace(std::move(job));
  begin_ = end_ = 0;
  prepare_parser();
  write_request();
}

void PoolConnection::write_request() {
  write_message(out_, setting_.server, setting_.options, job_->request);
  writing_ = true;
  auto written = [self = shared_from_this()](const ErrorCode& error, std::size_t) {
    self->writing_ = static_cast<bool>(error);  // half a request: nothing else can follow it
    if (self->owner_ != nullptr && self->job_ && self->parser_->is_done()) return self->complete();
    // What the server said before it closed may still come, and is worth more than this error.
    if (error && self->owner_ != nullptr && self->job_ && !self->parser_->got_some())
      self->fail(failure(self->setting_.server, error));
  };
  if (secure_)
    asio::async_write(*secure_, asio::buffer(out_), std::move(written));
  else
    asio::async_write(socket_, asio::buffer(out_), std::move(written));
}

void PoolConnection::read() {
  if (begin_ == end_) {
    begin_ = end_ = 0;
  } else if (begin_ > 0) {
    std::memmove(in_.data(), in_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const auto room = asio::buffer(in_.data() + end_, in_.size() - end_);
  auto got = [self = shared_from_this()](const ErrorCode& error, std::size_t bytes) {
    self->received(error, bytes);
  };
  if (secure_)
    secure_->async_read_some(room, std::move(got));
  else
    socket_.async_read_some(room, std::move(got));
}

void PoolConnection::received(const ErrorCode& error, std::size_t bytes) {
  if (owner_ == nullptr) return;
  if (!job_) {  // closed by the server, or not HTTP
    const auto self = shared_from_this();
    Owner* owner = owner_;
    close();
    return owner->closed_while_idle(*this);
  }
  end_ += bytes;
  if (error) return received_end(error);
  if (job_->is_stream) since_ = Clock::now();
  parse();
}

void PoolConnection::parse() {
  while (begin_ < end_ && !parser_->is_done()) {
    ErrorCode error;
    const auto used = parser_->put(asio::buffer(in_.data() + begin_, end_ - begin_), error);
    begin_ += used;
    if (owner_ == nullptr) return;
    if (error == http::error::need_more) {
      if (end_ - begin_ < in_.size()) break;
      error = http::error::header_limit;
    }
    if (error) return fail(failure(setting_.server, error));
    if (parser_->is_done() && parser_->is_informational()) prepare_parser();
  }
  // The answer may be here before we hear that all of the request has left.
  if (parser_->is_done()) return writing_ ? void() : complete();
  read();
}

void PoolConnection::received_end(const ErrorCode& error) {
  ErrorCode problem = error;
  if (error == asio::error::eof && parser_->got_some()) {
    problem = {};
    parser_->put_eof(problem);
    if (!problem && parser_->is_done()) return complete();
    problem = error;
  }
  fail(failure(setting_.server, problem));
}

void PoolConnection::complete() {
  const auto self = shared_from_this();
  const bool reusable = parser_->keep_alive() && !writing_ && begin_ == end_ && socket_.is_open();
  PoolResult result{std::move(parser_->answer()), true};
  PoolJob job = std::move(*job_);
  job_.reset();
  since_ = Clock::now();
  Owner* owner = owner_;
  if (reusable)
    read();
  else
    close();
  owner->ended(*this, std::move(job), std::move(result), reusable);
}

void PoolConnection::fail(Error error) {
  const auto self = shared_from_this();
  PoolJob job = std::move(*job_);
  job_.reset();
  Owner* owner = owner_;
  close();
  owner->ended(*this, std::move(job), {std::move(error), true}, false);
}

PoolConnection::Clock::time_point PoolConnection::expire(Clock::time_point now) {
  const auto after = [](Clock::time_point start, Duration time) {
    return start + std::chrono::milliseconds(time.ms);
  };
  if (owner_ == nullptr) return kForever;
  if (opening_) {
    const auto limit = after(since_, setting_.options.connect_timeout);
    if (limit > now) return limit;
    fail_to_open("timed out");
    return kForever;
  }
  if (!job_) {
    const auto limit = after(since_, setting_.options.idle_timeout);
    if (limit > now) return limit;
    const auto self = shared_from_this();
    Owner* owner = owner_;
    close();
    owner->closed_while_idle(*this);
    return kForever;
  }
  const bool flows = job_->is_stream && parser_->is_header_done();
  if (flows && job_->idle.ms <= 0) return kForever;
  const auto limit = flows ? after(since_, job_->idle) : job_->deadline;
  if (limit > now)  // a stream that begins to flow is looked at when it could be idle
    return job_->is_stream && job_->idle.ms > 0 ? std::min(limit, after(now, job_->idle)) : limit;
  if (parser_->is_done()) {  // by a server that does not listen to the end
    complete();
    return kForever;
  }
  fail(too_slow(setting_.server, flows ? job_->idle : job_->request.timeout));
  return kForever;
}

}  // namespace gs
