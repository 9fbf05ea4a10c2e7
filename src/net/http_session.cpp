#include "net/http_session.hpp"

#include <chrono>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <boost/beast/websocket.hpp>

namespace gs {
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::size_t kMaxHeaderBytes = 16 * 1024;
constexpr int kLingerMs = 5000;
constexpr std::size_t kLingerBytes = 16 << 20;
constexpr const char* kServer = "gpu-scheduler";

http::response<http::string_body> message_of(HttpResponse response, unsigned version,
                                             bool keep_alive, bool head) {
  http::response<http::string_body> message{static_cast<http::status>(response.status), version};
  message.set(http::field::server, kServer);
  if (!response.body.empty() || !response.content_type.empty())
    message.set(http::field::content_type, response.content_type);
  for (const auto& [name, value] : response.headers) message.set(name, value);
  message.keep_alive(keep_alive);
  message.body() = std::move(response.body);
  message.prepare_payload();
  if (head) message.body().clear();  // its length stays
  return message;
}

HttpResponse refusal(int status, const std::string& text) {
  HttpResponse response;
  response.status = status;
  response.body = R"({"error":")" + text + R"("})";
  return response;
}

template <typename Stream>
void set_timeout(Stream& stream, int ms) {
  beast::get_lowest_layer(stream).expires_after(std::chrono::milliseconds(ms));
}

template <typename Stream>
asio::awaitable<bool> write_response(Stream& stream, http::response<http::string_body> message,
                                     int timeout_ms) {
  set_timeout(stream, timeout_ms);
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  co_await http::async_write(stream, message, token);
  co_return !error && message.keep_alive();
}

// Chunk by chunk; who does not read in time is let go.
template <typename Stream>
asio::awaitable<void> write_stream(Stream& stream, HttpStream& source, unsigned version,
                                   int timeout_ms) {
  http::response<http::empty_body> head{http::status::ok, version};
  head.set(http::field::server, kServer);
  head.set(http::field::content_type, source.content_type);
  head.set(http::field::cache_control, "no-store");
  for (const auto& [name, value] : source.headers) head.set(name, value);
  head.chunked(true);
  head.keep_alive(false);
  http::response_serializer<http::empty_body> serializer{head};
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  set_timeout(stream, timeout_ms);
  co_await http::async_write_header(stream, serializer, token);
  while (!error) {
    beast::get_lowest_layer(stream).expires_never();
    std::optional<std::string> piece = co_await source.next();
    if (!piece) break;
    if (piece->empty()) continue;
    set_timeout(stream, timeout_ms);
    const auto chunk = http::make_chunk(asio::buffer(*piece));
    co_await asio::async_write(stream, chunk, token);
  }
  if (error) co_return;
  const auto last = http::make_chunk_last();
  co_await asio::async_write(stream, last, token);
}

template <typename Socket>
asio::awaitable<void> read_messages(Socket& socket, const WebSocketSession& session) {
  beast::flat_buffer buffer;
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  while (!error) {
    co_await socket.async_read(buffer, token);
    if (error) break;
    if (session.received) {
      const auto data = buffer.data();
      session.received({static_cast<const char*>(data.data()), data.size()});
    }
    buffer.clear();
  }
}

template <typename Stream>
asio::awaitable<void> serve_websocket(Stream stream, std::shared_ptr<Exchange> exchange,
                                      WebSocketSession session, int timeout_ms) {
  beast::get_lowest_layer(stream).expires_never();
  auto socket = std::make_shared<beast::websocket::stream<Stream>>(std::move(stream));
  beast::websocket::stream_base::timeout timeouts{std::chrono::milliseconds(timeout_ms),
                                                  std::chrono::milliseconds(60'000), true};
  socket->set_option(timeouts);
  socket->read_message_max(64 * 1024);
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  co_await socket->async_accept(exchange->request.message, token);
  if (error) co_return;
  // Reading goes on beside writing: it answers pings and notices that the other side has left.
  auto shared = std::make_shared<WebSocketSession>(std::move(session));
  auto closed = std::make_shared<bool>(false);
  auto reader = [](std::shared_ptr<beast::websocket::stream<Stream>> ws,
                   std::shared_ptr<WebSocketSession> callbacks,
                   std::shared_ptr<bool> over) -> asio::awaitable<void> {
    co_await read_messages(*ws, *callbacks);
    *over = true;
  };
  asio::co_spawn(exchange->executor(), reader(socket, shared, closed), asio::detached);
  socket->text(true);
  while (!error && !*closed) {
    std::optional<std::string> piece = co_await shared->next();
    if (!piece || *closed) break;
    std::string_view rest = *piece;
    while (!rest.empty() && !error) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      if (line.empty()) continue;
      const auto buffer = asio::buffer(line.data(), line.size());
      co_await socket->async_write(buffer, token);
    }
  }
  if (error || *closed) co_return;
  const beast::websocket::close_reason reason{beast::websocket::close_code::normal};
  co_await socket->async_close(reason, token);
}

// A caller that still sends would be cut off before it has read our answer: listen to it for a
// while.
template <typename Stream>
asio::awaitable<void> read_to_the_end(Stream& stream, beast::flat_buffer& buffer) {
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  beast::get_lowest_layer(stream).socket().shutdown(tcp::socket::shutdown_send, error);
  error = {};
  set_timeout(stream, kLingerMs);
  for (std::size_t got = 0; !error && got < kLingerBytes;) {
    buffer.clear();
    auto room = buffer.prepare(64 * 1024);
    got += co_await stream.async_read_some(room, token);
  }
}

// Some callers send a large body only when they are told to go on.
template <typename Stream>
asio::awaitable<void> tell_to_continue(Stream& stream, const HttpMessage& request) {
  if (!beast::iequals(request[http::field::expect], "100-continue")) co_return;
  http::response<http::empty_body> go_on{http::status::continue_, request.version()};
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  co_await http::async_write(stream, go_on, token);
}

int status_of(const error_code& error) {
  if (error == http::error::body_limit) return 413;
  if (error == http::error::header_limit) return 431;
  return 400;
}

template <typename Stream>
asio::awaitable<void> serve(Stream stream, const HttpHandler& handler, HttpLimits limits,
                            HttpSessions& sessions) {
  const HttpSessions::Open counted(sessions.open_);
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  std::string peer =
      beast::get_lowest_layer(stream).socket().remote_endpoint(error).address().to_string();
  beast::flat_buffer buffer;
  bool first = true;
  while (!error && !sessions.stopping()) {
    http::request_parser<http::string_body> parser;
    parser.body_limit(limits.max_body_bytes);
    parser.header_limit(kMaxHeaderBytes);
    set_timeout(stream, first ? limits.read_timeout_ms : limits.idle_timeout_ms);
    first = false;
    co_await http::async_read_header(stream, buffer, parser, token);
    if (!error) {
      co_await tell_to_continue(stream, parser.get());
      co_await http::async_read(stream, buffer, parser, token);
    }
    if (error) {
      if (error.category() != http::make_error_code(http::error::end_of_stream).category() ||
          error == http::error::end_of_stream || error == http::error::partial_message)
        break;
      const int status = status_of(error);
      std::string text = status == 413 ? "the body must not be larger than " +
                                             std::to_string(limits.max_body_bytes) + " bytes"
                                       : "this is not an HTTP request: " + error.message();
      auto message = message_of(refusal(status, text), 11, false, false);
      co_await write_response(stream, std::move(message), limits.read_timeout_ms);
      co_await read_to_the_end(stream, buffer);
      break;
    }
    const HttpSessions::Open busy(sessions.busy_);
    auto exchange = std::make_shared<Exchange>(co_await asio::this_coro::executor);
    exchange->request.message = parser.release();
    exchange->request.peer = peer;
    HttpMessage& request = exchange->request.message;
    const unsigned version = request.version();
    const bool keep_alive = request.keep_alive();
    const bool head = request.method() == http::verb::head;
    const auto target = request.target();
    if (Status s = parse_target({target.data(), target.size()}, exchange->request); !s)
      exchange->answer(refusal(400, s.error().message));
    else
      handler(exchange);
    beast::get_lowest_layer(stream).expires_never();
    Exchange::Answer answer = co_await exchange->wait();
    if (auto* response = std::get_if<HttpResponse>(&answer)) {
      auto message = message_of(std::move(*response), version, keep_alive, head);
      const bool go_on =
          co_await write_response(stream, std::move(message), limits.read_timeout_ms);
      if (!go_on) break;
    } else if (auto* source = std::get_if<HttpStream>(&answer)) {
      co_await write_stream(stream, *source, version, limits.read_timeout_ms);
      break;
    } else {
      WebSocketSession session = std::move(std::get<WebSocketSession>(answer));
      co_await serve_websocket(std::move(stream), exchange, std::move(session),
                               limits.read_timeout_ms);
      co_return;
    }
  }
  beast::get_lowest_layer(stream).socket().shutdown(tcp::socket::shutdown_both, error);
}

}  // namespace

asio::awaitable<void> serve_plain(tcp::socket socket, const HttpHandler& handler, HttpLimits limits,
                                  HttpSessions& sessions) {
  beast::tcp_stream stream(std::move(socket));
  co_await serve(std::move(stream), handler, limits, sessions);
}

asio::awaitable<void> serve_tls(tcp::socket socket, asio::ssl::context& tls,
                                const HttpHandler& handler, HttpLimits limits,
                                HttpSessions& sessions) {
  beast::ssl_stream<beast::tcp_stream> stream(beast::tcp_stream(std::move(socket)), tls);
  set_timeout(stream, limits.read_timeout_ms);
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  co_await stream.async_handshake(asio::ssl::stream_base::server, token);
  if (error) co_return;
  co_await serve(std::move(stream), handler, limits, sessions);
}

}  // namespace gs
