#include "net/http_client.hpp"

#include <array>
#include <charconv>
#include <chrono>
#include <optional>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <sys/socket.h>

#include "net/client_failure.hpp"
#include "net/tls_client.hpp"

namespace gs {
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::size_t kPieceBytes = 64U << 10;

bool is_port(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value > 0 && value < 65'536;
}

const char* usual_port(bool tls) { return tls ? "443" : "80"; }

bool same_name(std::string_view a, std::string_view b) { return beast::iequals(a, b); }

template <typename Fields>
void copy_headers(const Fields& fields, ClientResponse& response) {
  for (const auto& field : fields)
    response.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
}

}  // namespace

std::string HttpUrl::authority() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  std::string out = is_v6 ? "[" + host + "]" : host;
  if (port != usual_port(tls)) out += ":" + port;
  return out;
}

std::string HttpUrl::text() const { return (tls ? "https://" : "http://") + authority() + path; }

Result<HttpUrl> parse_url(std::string_view text) {
  const Error wrong =
      invalid("'" + std::string(text) + "' is not a URL of a server such as http://localhost:8080");
  HttpUrl url;
  if (const auto scheme = text.find("://"); scheme != text.npos) {
    if (!same_name(text.substr(0, scheme), "http") && !same_name(text.substr(0, scheme), "https"))
      return wrong;
    url.tls = scheme == 5;
    text.remove_prefix(scheme + 3);
  }
  const auto slash = std::min(text.find('/'), text.size());
  std::string_view authority = text.substr(0, slash);
  url.path = text.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  if (url.path.find_first_of("?# ") != std::string::npos) return wrong;
  const auto after_host = authority.starts_with('[') ? authority.find(']') : 0;
  if (after_host == authority.npos) return wrong;
  const auto colon = authority.find(':', after_host);
  url.port = colon == authority.npos ? usual_port(url.tls) : authority.substr(colon + 1);
  authority = authority.substr(0, colon);
  if (authority.starts_with('[')) authority = authority.substr(1, authority.size() - 2);
  url.host = authority;
  if (url.host.empty() || url.host.find_first_of("@ ?#") != std::string::npos || !is_port(url.port))
    return wrong;
  return url;
}

std::string_view ClientResponse::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (same_name(key, name)) return value;
  return {};
}

struct HttpClient::Impl {
  using Secure = beast::ssl_stream<beast::tcp_stream>;

  Impl(HttpUrl the_server, HttpClientOptions the_options)
      : server(std::move(the_server)), options(std::move(the_options)) {}

  // Runs what was started until it is done; time-outs are the stream's own.
  void run() {
    context.restart();
    context.run();
  }
  beast::tcp_stream& socket() { return secure ? beast::get_lowest_layer(*secure) : *plain; }
  bool is_connected() { return plain || secure; }
  void close() {
    secure.reset();
    plain.reset();
    buffer.clear();
  }
  void expire_after(Duration time) {
    if (time.ms > 0)
      socket().expires_after(std::chrono::milliseconds(time.ms));
    else
      socket().expires_never();
  }
  // A server may close a connection that is kept; then nothing must be sent on it.
  bool is_stale() {
    char byte = 0;
    const auto got = ::recv(socket().socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }

  Error unreachable(const std::string& what) const { return gs::unreachable(server, what); }
  Error failure(const error_code& error) const {
    if (error == beast::error::timeout) return too_slow(server, options.timeout);
    return gs::failure(server, error);
  }

  Result<tcp::resolver::results_type> resolve() {
    tcp::resolver resolver(context);
    std::optional<Result<tcp::resolver::results_type>> found;
    resolver.async_resolve(server.host, server.port,
                           [&](const error_code& error, tcp::resolver::results_type results) {
                             if (error)
                               found = unreachable(error.message());
                             else
                               found = std::move(results);
                           });
    context.restart();
    context.run_for(std::chrono::milliseconds(options.timeout.ms));
    if (!found) {
      resolver.cancel();
      run();
    }
    if (!found->ok() && found->error().message.find("canceled") != std::string::npos)
      return unreachable("its name could not be resolved in time");
    return std::move(*found);
  }

  Status prepare_tls() {
    TlsOptions wanted;
    wanted.ca_file = options.ca_file;
    auto made = tls_client_context(wanted);
    if (!made) return made.error();
    tls = std::move(*made);
    secure.emplace(context, tls);
    expect_server(secure->native_handle(), wanted, server.host);
    return ok_status();
  }

  Status connect() {
    if (is_connected() && !is_stale()) return ok_status();
    close();
    auto addresses = resolve();
    if (!addresses) return addresses.error();
    if (server.tls) {
      if (Status s = prepare_tls(); !s) return s.error();
    } else {
      plain.emplace(context);
    }
    error_code result;
    expire_after(options.timeout);
    socket().async_connect(*addresses,
                           [&](const error_code& error, const auto&) { result = error; });
    run();
    if (!result && secure) {
      secure->async_handshake(asio::ssl::stream_base::client,
                              [&](const error_code& error) { result = error; });
      run();
    }
    if (!result) return ok_status();
    close();
    if (result == beast::error::timeout) return unreachable("timed out");
    return unreachable(result.message());
  }

  // Starts an operation on whichever stream there is and waits for it.
  template <typename Start>
  error_code await(Start start) {
    error_code result;
    const auto done = [&](const error_code& error, std::size_t) { result = error; };
    if (secure)
      start(*secure, done);
    else
      start(*plain, done);
    run();
    return result;
  }

  http::request<http::string_body> message(const ClientRequest& request) const {
    http::request<http::string_body> out;
    out.version(11);
    out.method_string(request.method);
    out.target(server.path + request.target);
    out.set(http::field::host, server.authority());
    out.set(http::field::user_agent, options.user_agent);
    out.set(http::field::accept, "application/json");
    for (const auto& [name, value] : request.headers) out.set(name, value);
    if (!request.body.empty()) out.set(http::field::content_type, "application/json");
    out.body() = request.body;
    if (!request.body.empty() || request.method != "GET") out.prepare_payload();
    return out;
  }

  Status write(const ClientRequest& request) {
    if (Status s = connect(); !s) return s.error();
    const auto out = message(request);
    expire_after(options.timeout);
    const error_code error =
        await([&](auto& stream, auto done) { http::async_write(stream, out, done); });
    if (!error) return ok_status();
    close();
    return failure(error);
  }

  template <typename Parser>
  Result<ClientResponse> read_rest(Parser& parser) {
    const error_code error =
        await([&](auto& stream, auto done) { http::async_read(stream, buffer, parser, done); });
    if (error) {
      close();
      return failure(error);
    }
    ClientResponse response;
    response.status = static_cast<int>(parser.get().result_int());
    copy_headers(parser.get(), response);
    response.body = std::move(parser.get().body());
    if (!parser.keep_alive()) close();
    return response;
  }

  // Gives what has come to `piece` until it has had enough, or there is no more.
  Status read_pieces(http::response_parser<http::buffer_body>& parser, const Piece& piece,
                     Duration idle) {
    std::array<char, kPieceBytes> space;
    while (!parser.is_done()) {
      parser.get().body().data = space.data();
      parser.get().body().size = space.size();
      expire_after(idle);
      error_code error = await(
          [&](auto& stream, auto done) { http::async_read_some(stream, buffer, parser, done); });
      if (error == http::error::need_buffer) error = {};
      const std::size_t size = space.size() - parser.get().body().size;
      const bool goes_on = size == 0 || piece(std::string_view(space.data(), size));
      if (error) return failure(error);
      if (!goes_on) break;
    }
    return ok_status();
  }

  HttpUrl server;
  HttpClientOptions options;
  asio::io_context context{1};
  asio::ssl::context tls{asio::ssl::context::tls_client};
  std::optional<beast::tcp_stream> plain;
  std::optional<Secure> secure;
  beast::flat_buffer buffer;
};

HttpClient::HttpClient(HttpUrl server, HttpClientOptions options)
    : impl_(std::make_unique<Impl>(std::move(server), std::move(options))) {}
HttpClient::~HttpClient() = default;

const HttpUrl& HttpClient::server() const { return impl_->server; }

Result<ClientResponse> HttpClient::send(const ClientRequest& request) {
  if (Status s = impl_->write(request); !s) return s.error();
  http::response_parser<http::string_body> parser;
  parser.body_limit(impl_->options.max_body_bytes);
  parser.skip(request.method == "HEAD");
  impl_->expire_after(impl_->options.timeout);
  return impl_->read_rest(parser);
}

Result<ClientResponse> HttpClient::stream(const ClientRequest& request, const Piece& piece,
                                          Duration idle) {
  if (Status s = impl_->write(request); !s) return s.error();
  http::response_parser<http::buffer_body> head;
  head.body_limit(boost::none);
  impl_->expire_after(impl_->options.timeout);
  const error_code error = impl_->await(
      [&](auto& stream, auto done) { http::async_read_header(stream, impl_->buffer, head, done); });
  if (error) {
    impl_->close();
    return impl_->failure(error);
  }
  if (head.get().result_int() / 100 != 2) {
    http::response_parser<http::string_body> parser(std::move(head));
    return impl_->read_rest(parser);
  }
  ClientResponse response;
  response.status = static_cast<int>(head.get().result_int());
  copy_headers(head.get(), response);
  const Status read = impl_->read_pieces(head, piece, idle);
  if (!read || !head.is_done() || !head.keep_alive()) impl_->close();
  if (!read) return read.error();
  return response;
}

}  // namespace gs
