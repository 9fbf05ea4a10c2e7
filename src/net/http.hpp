// HTTP messages as handlers see them, and the exchange of one request for one answer.
//
// A handler gets an Exchange and answers it once, at any time and from any thread: with a whole
// response, or with a stream that is pulled (server-sent events, logs), or by becoming a WebSocket.
// Pulling means that a slow reader only slows itself.
//
// Answers reach the server's thread through its Outbox: those that come together, as at the end of
// a turn, wake it once.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include "base/result.hpp"

namespace gs {

using HttpMessage = boost::beast::http::request<boost::beast::http::string_body>;

struct HttpRequest {
  HttpMessage message;
  std::string peer;                                        // address of the caller
  std::string path;                                        // decoded, without the query
  std::vector<std::pair<std::string, std::string>> query;  // decoded, in order

  std::string_view header(std::string_view name) const;
  const std::string* parameter(std::string_view name) const;
  std::string_view method() const;
  const std::string& body() const { return message.body(); }
};

// Splits a request's target; an error where an escape is broken.
Status parse_target(std::string_view target, HttpRequest& request);
std::string percent_encode(std::string_view text);

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  HttpHeaders headers;
};

// The next piece of a stream; nothing: it is over. May suspend as long as it likes.
using NextPiece = std::function<boost::asio::awaitable<std::optional<std::string>>()>;

struct HttpStream {
  std::string content_type;
  HttpHeaders headers;
  NextPiece next;
};

struct WebSocketSession {
  NextPiece next;                                  // to be sent, a message a line
  std::function<void(std::string_view)> received;  // may be empty
};

class Exchange;

// Exchanges that have been answered, on their way to the thread that serves their connections.
class Outbox : public std::enable_shared_from_this<Outbox> {
 public:
  explicit Outbox(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  void push(std::shared_ptr<Exchange> exchange);
  const boost::asio::any_io_executor& executor() const { return executor_; }

 private:
  void deliver();  // in the server's thread

  boost::asio::any_io_executor executor_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Exchange>> answered_;
};

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  using Answer = std::variant<HttpResponse, HttpStream, WebSocketSession>;

  explicit Exchange(std::shared_ptr<Outbox> outbox) : outbox_(std::move(outbox)) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  HttpRequest request;

  // Once; later ones do nothing.
  void answer(Answer answer);
  const boost::asio::any_io_executor& executor() const { return outbox_->executor(); }

  // For the server, in its thread: waits for the answer.
  boost::asio::awaitable<Answer> wait();

 private:
  friend class Outbox;
  void arrived();

  std::shared_ptr<Outbox> outbox_;
  std::atomic<bool> answered_{false};
  Answer answer_;  // from answer() until it has arrived: of the one who answers
  // --- of the server's thread ---
  bool arrived_ = false;
  boost::asio::any_completion_handler<void()> waiter_;
};

using HttpHandler = std::function<void(std::shared_ptr<Exchange>)>;

}  // namespace gs
