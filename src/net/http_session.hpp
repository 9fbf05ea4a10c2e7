// One connection: requests one after the other until somebody closes it.
#pragma once

#include <atomic>
#include <cstddef>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include "net/http.hpp"

namespace gs {

struct HttpLimits {
  std::size_t max_body_bytes = 1 << 20;
  int idle_timeout_ms = 75'000;  // between requests
  int read_timeout_ms = 30'000;  // of one request, and of writing an answer
};

// Counts of what is open, and the word that the server stops.
class HttpSessions {
 public:
  std::size_t count() const { return open_.load(std::memory_order_relaxed); }
  std::size_t busy() const { return busy_.load(std::memory_order_relaxed); }
  bool stopping() const { return stopping_.load(std::memory_order_relaxed); }
  void close_idle() { stopping_ = true; }

  class Open {
   public:
    explicit Open(std::atomic<std::size_t>& count) : count_(count) { ++count_; }
    ~Open() { --count_; }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    std::atomic<std::size_t>& count_;
  };

  std::atomic<std::size_t> open_{0}, busy_{0};

 private:
  std::atomic<bool> stopping_{false};
};

boost::asio::awaitable<void> serve_plain(boost::asio::ip::tcp::socket socket,
                                         const HttpHandler& handler, HttpLimits limits,
                                         HttpSessions& sessions);
boost::asio::awaitable<void> serve_tls(boost::asio::ip::tcp::socket socket,
                                       boost::asio::ssl::context& tls, const HttpHandler& handler,
                                       HttpLimits limits, HttpSessions& sessions);

}  // namespace gs
