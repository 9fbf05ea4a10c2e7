#include "net/http_session.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <boost/beast/websocket.hpp>

#include "net/frame_stream.hpp"

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
constexpr std::uint64_t kLeastRead = 2048, kMostRead = 65536;  // bytes at once
constexpr const char* kServer = "gpu-scheduler";

// The head of an answer. Written by hand: it is most of what answering costs.
std::string head_of(const HttpResponse& response, unsigned version, bool keep_alive) {
  const auto status = static_cast<http::status>(response.status);
  const auto reason = http::obsolete_reason(status);
  std::string head;
  head.reserve(256);
  head.append(version == 10 ? "HTTP/1.0 " : "HTTP/1.1 ").append(std::to_string(response.status));
  head.append(" ").append(reason.data(), reason.size());
  head.append("\r\nServer: ").append(kServer);
  const auto add = [&head](std::string_view name, std::string_view value) {
    head.append("\r\n").append(name).append(": ").append(value);
  };
  if (!response.content_type.empty()) add("Content-Type", response.content_type);
  for (const auto& [name, value] : response.headers) add(name, value);
  if (!keep_alive) add("Connection", "close");
  if (keep_alive && version == 10) add("Connection", "keep-alive");
  if (status != http::status::no_content && status != http::status::not_modified)
    add("Content-Length", std::to_string(response.body.size()));
  return head.append("\r\n\r\n");
}

HttpResponse refusal(int status, const std::string& text) {
  HttpResponse response;
  response.status = status;
  response.body = R"({"error":")" + text + R"("})";
  return response;
}

using Deadline = HttpSessions::Deadline;
using Buffers = std::array<asio::const_buffer, 2>;

// Writes what the socket takes at once, which is mostly all of it; returns what is left.
Buffers write_now(tcp::socket& socket, Buffers buffers, error_code& error) {
  std::size_t done = socket.write_some(buffers, error);
  if (error == asio::error::would_block) error = {};
  for (asio::const_buffer& buffer : buffers) {
    const std::size_t part = std::min(done, buffer.size());
    buffer += part;
    done -= part;
  }
  return buffers;
}

template <typename Stream>
Buffers write_now(Stream&, Buffers buffers, error_code&) {
  return buffers;
}

// True: the connection may go on.
template <typename Stream>
asio::awaitable<bool> write_response(Stream& stream, const HttpResponse& response, unsigned version,
                                     bool keep_alive, bool only_head) {
  const std::string head = head_of(response, version, keep_alive);
  Buffers buffers{asio::buffer(head), asio::buffer(response.body)};
  if (only_head) buffers[1] = {};
  error_code error;
  buffers = write_now(stream, buffers, error);
  if (!error && asio::buffer_size(buffers) > 0) {
    auto token = asio::redirect_error(asio::use_awaitable, error);
    co_await asio::async_write(stream, buffers, token);
  }
  co_return !error && keep_alive;
}

// Chunk by chunk; who does not read in time is let go.
template <typename Stream>
asio::awaitable<void> write_stream(Stream& stream, HttpStream& source, unsigned version,
                                   Deadline& deadline, int timeout_ms) {
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
  deadline.set(timeout_ms);
  co_await http::async_write_header(stream, serializer, token);
  while (!error) {
    deadline.clear();
    std::optional<std::string> piece = co_await source.next();
    if (!piece) break;
    if (piece->empty()) continue;
    deadline.set(timeout_ms);
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
  using Socket = beast::websocket::stream<FrameStream<Stream>>;
  auto socket = std::make_shared<Socket>(FrameStream<Stream>(std::move(stream)));
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
  auto reader = [](std::shared_ptr<Socket> ws, std::shared_ptr<WebSocketSession> callbacks,
                   std::shared_ptr<bool> over) -> asio::awaitable<void> {
    co_await read_messages(*ws, *callbacks);
    *over = true;
  };
  asio::co_spawn(exchange->executor(), reader(socket, shared, closed), asio::detached);
  while (!*closed) {
    std::optional<std::string> piece = co_await shared->next();
    if (!piece || *closed) break;
    std::string frames = text_frames(*piece);
    if (!co_await socket->next_layer().write(std::move(frames))) co_return;
  }
  if (*closed) co_return;
  const beast::websocket::close_reason reason{beast::websocket::close_code::normal};
  co_await socket->async_close(reason, token);
}

// A caller that still sends would be cut off before it has read our answer: listen to it for a
// while.
template <typename Stream>
asio::awaitable<void> read_to_the_end(Stream& stream, beast::flat_buffer& buffer,
                                      Deadline& deadline) {
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  beast::get_lowest_layer(stream).shutdown(tcp::socket::shutdown_send, error);
  error = {};
  deadline.set(kLingerMs);
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

using Parser = http::request_parser<http::string_body>;

// Reads one request, from what is in the buffer already and what comes.
template <typename Stream>
asio::awaitable<error_code> read_request(Stream& stream, beast::flat_buffer& buffer,
                                         Parser& parser) {
  parser.eager(true);
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  for (bool told = false; !error;) {
    if (buffer.size() > 0) {
      buffer.consume(parser.put(buffer.data(), error));
      if (error == http::error::need_more) error = {};
      if (error || parser.is_done()) break;
    }
    if (parser.is_header_done() && !told) {
      told = true;
      co_await tell_to_continue(stream, parser.get());
    }
    const std::uint64_t missing =
        parser.is_header_done() ? parser.content_length_remaining().value_or(0) : 0;
    auto room = buffer.prepare(std::clamp<std::uint64_t>(missing, kLeastRead, kMostRead));
    buffer.commit(co_await stream.async_read_some(room, token));
    if (error == asio::error::eof)
      error = parser.got_some() ? http::error::partial_message : http::error::end_of_stream;
  }
  co_return error;
}

// What was wrong with a request; the connection ends after it.
template <typename Stream>
asio::awaitable<void> refuse(Stream& stream, beast::flat_buffer& buffer, const error_code& error,
                             const HttpLimits& limits, Deadline& deadline) {
  const int status = status_of(error);
  const std::string text = status == 413 ? "the body must not be larger than " +
                                               std::to_string(limits.max_body_bytes) + " bytes"
                                         : "this is not an HTTP request: " + error.message();
  const HttpResponse response = refusal(status, text);
  deadline.set(limits.read_timeout_ms);
  co_await write_response(stream, response, 11, false, false);
  co_await read_to_the_end(stream, buffer, deadline);
}

bool is_of_http(const error_code& error) {
  return error.category() == http::make_error_code(http::error::end_of_stream).category() &&
         error != http::error::end_of_stream && error != http::error::partial_message;
}

template <typename Stream>
asio::awaitable<void> serve(Stream stream, const HttpHandler& handler, HttpLimits limits,
                            HttpSessions& sessions) {
  const HttpSessions::Open counted(sessions.open_count);
  tcp::socket& socket = beast::get_lowest_layer(stream);
  Deadline deadline(sessions, socket);
  error_code error;
  std::string peer = socket.remote_endpoint(error).address().to_string();
  beast::flat_buffer buffer;
  bool first = true;
  while (!error && !sessions.stopping()) {
    Parser parser;
    parser.body_limit(limits.max_body_bytes);
    parser.header_limit(kMaxHeaderBytes);
    deadline.set(first ? limits.read_timeout_ms : limits.idle_timeout_ms);
    first = false;
    error = co_await read_request(stream, buffer, parser);
    if (error) {
      if (is_of_http(error)) co_await refuse(stream, buffer, error, limits, deadline);
      break;
    }
    const HttpSessions::Open busy(sessions.busy_count);
    auto exchange = std::make_shared<Exchange>(sessions.outbox);
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
    deadline.clear();
    Exchange::Answer answer = co_await exchange->wait();
    deadline.set(limits.read_timeout_ms);
    if (auto* response = std::get_if<HttpResponse>(&answer)) {
      const bool goes_on = keep_alive && !sessions.draining();
      if (!co_await write_response(stream, *response, version, goes_on, head)) break;
    } else if (auto* source = std::get_if<HttpStream>(&answer)) {
      co_await write_stream(stream, *source, version, deadline, limits.read_timeout_ms);
      break;
    } else {
      WebSocketSession session = std::move(std::get<WebSocketSession>(answer));
      deadline.end();  // a WebSocket has timers of its own
      co_await serve_websocket(std::move(stream), exchange, std::move(session),
                               limits.read_timeout_ms);
      co_return;
    }
  }
  socket.shutdown(tcp::socket::shutdown_both, error);
}

}  // namespace

HttpSessions::Deadline::Deadline(HttpSessions& sessions, tcp::socket& socket)
    : sessions_(&sessions), socket_(socket) {
  sessions.deadlines_.insert(this);
}

void HttpSessions::Deadline::end() {
  if (sessions_ != nullptr) sessions_->deadlines_.erase(this);
  sessions_ = nullptr;
}

void HttpSessions::close_late() {
  const auto now = Deadline::Clock::now();
  error_code ignored;
  // What waits on a closed socket hears of it later, not from in here.
  for (Deadline* deadline : deadlines_)
    if (deadline->at_ <= now) deadline->socket_.close(ignored);
}

asio::awaitable<void> serve_plain(tcp::socket socket, const HttpHandler& handler, HttpLimits limits,
                                  HttpSessions& sessions) {
  error_code error;
  socket.non_blocking(true, error);
  if (error) co_return;
  co_await serve(std::move(socket), handler, limits, sessions);
}

asio::awaitable<void> serve_tls(tcp::socket socket, std::shared_ptr<asio::ssl::context> tls,
                                const HttpHandler& handler, HttpLimits limits,
                                HttpSessions& sessions) {
  beast::ssl_stream<tcp::socket> stream(std::move(socket), *tls);
  error_code error;
  {
    Deadline deadline(sessions, beast::get_lowest_layer(stream));
    deadline.set(limits.read_timeout_ms);
    auto token = asio::redirect_error(asio::use_awaitable, error);
    co_await stream.async_handshake(asio::ssl::stream_base::server, token);
  }
  if (error) co_return;
  co_await serve(std::move(stream), handler, limits, sessions);
}

}  // namespace gs
