// One connection of an HttpPool: it opens, and then carries one request after the other.
//
// It always reads while it is open, so that it learns at once when the server closes it. It tells
// its owner what happened and leaves it to the owner to say what is next; after close() it tells
// nothing any more.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "net/answer_parser.hpp"
#include "net/http_pool.hpp"

namespace gs {

// A request on its way, with whom to tell.
struct PoolJob {
  HttpPool::RequestId id = 0;
  PoolRequest request;
  HttpPool::Callback done;
  HttpPool::Piece piece;  // of a stream
  bool is_stream = false;
  Duration idle;                          // of a stream
  EventLoop::Clock::time_point deadline;  // until it is answered, or the stream has begun
};

class PoolConnection : public std::enable_shared_from_this<PoolConnection> {
 public:
  using Clock = EventLoop::Clock;

  // What a connection tells; it may be closed or given a request in the call.
  class Owner {
   public:
    virtual void opened(PoolConnection& connection) = 0;
    virtual void not_opened(PoolConnection& connection, Error error) = 0;
    // The connection's job has ended; without `reusable` the connection is closed.
    virtual void ended(PoolConnection& connection, PoolJob job, PoolResult result,
                       bool reusable) = 0;
    virtual void closed_while_idle(PoolConnection& connection) = 0;

   protected:
    ~Owner() = default;
  };

  // All of these must live as long as the connection is open.
  struct Setting {
    const HttpUrl& server;
    const HttpPoolOptions& options;
    std::shared_ptr<boost::asio::ssl::context> tls;
  };

  PoolConnection(boost::asio::io_context& context, Setting setting, Owner& owner);

  void open();
  void start(PoolJob job);
  void close();
  // Ends the job with this error, closes the connection and tells its owner.
  void fail(Error error);
  // Fails what is late; says when to look again.
  Clock::time_point expire(Clock::time_point now);

  // The server has closed it, or has said something unasked.
  bool is_stale();
  bool is_opening() const { return opening_; }
  bool is_idle() const { return !opening_ && !job_; }
  const PoolJob* job() const { return job_ ? &*job_ : nullptr; }
  const std::shared_ptr<boost::asio::ssl::context>& tls() const { return setting_.tls; }
  Clock::time_point idle_since() const { return since_; }

 private:
  using Tcp = boost::asio::ip::tcp;
  using Executor = boost::asio::io_context::executor_type;
  using Socket = boost::asio::basic_stream_socket<Tcp, Executor>;
  using Resolver = boost::asio::ip::basic_resolver<Tcp, Executor>;
  using ErrorCode = boost::system::error_code;

  void resolve();
  void connect(std::size_t index);
  void shake_hands();
  void finish_opening();
  void fail_to_open(const std::string& what);
  void write_request();
  void read();
  void received(const ErrorCode& error, std::size_t bytes);
  void parse();
  void received_end(const ErrorCode& error);
  void complete();
  void prepare_parser();

  boost::asio::io_context& context_;
  Setting setting_;
  Owner* owner_;  // none: closed
  Socket socket_;
  std::optional<boost::asio::ssl::stream<Socket&>> secure_;
  std::vector<Tcp::endpoint> endpoints_;
  std::shared_ptr<Resolver> resolver_;
  bool opening_ = true;
  bool writing_ = false;
  Clock::time_point since_;  // opening, or idle, or of a stream's last piece
  std::optional<PoolJob> job_;
  std::optional<AnswerParser> parser_;
  std::string out_;       // the request as it is written
  std::vector<char> in_;  // [begin_, end_) was read and is not parsed
  std::size_t begin_ = 0, end_ = 0;
};

}  // namespace gs
