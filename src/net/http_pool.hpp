// An HTTP/1.1 client for one server that keeps many requests in flight on one thread: a bounded
// number of connections that are kept, a bounded queue before them, streams beside them.
//
// Every callback is called exactly once, on the loop's thread and never inside send(), stream(),
// cancel() or stop(). A request is written at most once: one that was cut off may have been done,
// and only its caller can know whether to send it again. A connection that the server has closed
// is replaced before anything is written to it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "net/event_loop.hpp"
#include "net/http_client.hpp"
#include "net/tls_options.hpp"

namespace gs {

// Urgent requests overtake ordinary ones, and some connections are theirs alone.
enum class Lane { Urgent, Ordinary };

struct HttpPoolOptions {
  TlsOptions tls;
  std::size_t connections = 64;   // streams are not counted
  std::size_t for_ordinary = 48;  // of the connections, at most so many for ordinary requests
  std::size_t streams = 256;      // at once; more wait
  std::size_t queue = 50'000;     // requests that may wait; more are refused (QueueFull)
  Duration connect_timeout = seconds(10);
  Duration idle_timeout = seconds(55);  // connections that nobody needs are closed
  std::size_t max_body_bytes = 1U << 30;
  std::string user_agent = "gpu-scheduler";
  std::vector<std::string> kept_headers;  // of answers; none named: all
};

struct PoolRequest {
  std::string method = "GET";
  std::string target;  // after the URL's own path, with the query
  std::string body;
  std::string content_type = "application/json";  // of the body
  std::vector<std::pair<std::string, std::string>> headers;
  Lane lane = Lane::Ordinary;
  Duration timeout = seconds(30);  // until the answer is there, or a stream has begun
};

struct PoolResult {
  Result<ClientResponse> answer;
  bool sent = false;  // the server may have got some of the request
};

struct PoolFigures {
  std::size_t connections = 0;  // open ones
  std::size_t in_flight = 0;    // requests and streams
  std::size_t waiting = 0;
  std::uint64_t connected = 0;  // times that a connection was opened
};

class HttpPool {
 public:
  using RequestId = std::uint64_t;
  using Callback = std::function<void(PoolResult)>;
  using Piece = std::function<void(std::string_view)>;

  // Options that can't be used (a certificate that is none) are an error. The loop outlives it.
  static Result<std::unique_ptr<HttpPool>> create(EventLoop& loop, HttpUrl server,
                                                  HttpPoolOptions options);
  ~HttpPool();  // as stop()
  HttpPool(const HttpPool&) = delete;
  HttpPool& operator=(const HttpPool&) = delete;

  RequestId send(PoolRequest request, Callback done);

  // The body of a good answer goes to `piece` as it comes, and `done` says how it ended. Other
  // answers come to `done` with their bodies. Between pieces there may be up to `idle` (0: any
  // time).
  RequestId stream(PoolRequest request, Piece piece, Callback done, Duration idle);

  // Its callback is called with an error, unless it was called already.
  void cancel(RequestId request);

  // New connections use these; old ones end after their answer, streams stay.
  Status renew_tls(const TlsOptions& tls);

  // Ends everything: each callback that is still to come gets an error. What is sent later too.
  void stop();

  PoolFigures figures() const;
  const HttpUrl& server() const;

 private:
  struct Impl;
  explicit HttpPool(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;  // shared with what is still under way in the loop
};

}  // namespace gs
