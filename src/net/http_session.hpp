// One connection: requests one after the other until somebody closes it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <unordered_set>

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

// What is open, until when it may stay so, and the word that the server stops. The counts are for
// everybody; the rest belongs to the server's thread.
class HttpSessions {
 public:
  std::size_t count() const { return open_count.load(std::memory_order_relaxed); }
  std::size_t busy() const { return busy_count.load(std::memory_order_relaxed); }
  bool stopping() const { return stopping_.load(std::memory_order_relaxed); }
  void close_idle() { stopping_ = true; }
  bool draining() const { return draining_.load(std::memory_order_relaxed); }
  void drain() { draining_ = true; }
  // Closes the connections that are late. Looking at all of them now and then is much cheaper than
  // a timer for each read and write, which almost never fires.
  void close_late();

  class Open {
   public:
    explicit Open(std::atomic<std::size_t>& count) : count_(count) { ++count_; }
    ~Open() { --count_; }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    std::atomic<std::size_t>& count_;
  };

  // Until when something must have happened on a connection.
  class Deadline {
   public:
    Deadline(HttpSessions& sessions, boost::asio::ip::tcp::socket& socket);
    ~Deadline() { end(); }
    Deadline(const Deadline&) = delete;
    Deadline& operator=(const Deadline&) = delete;
    void set(int ms) { at_ = Clock::now() + std::chrono::milliseconds(ms); }
    void clear() { at_ = Clock::time_point::max(); }
    void end();  // the socket is watched no more

   private:
    friend class HttpSessions;
    using Clock = std::chrono::steady_clock;
    HttpSessions* sessions_;
    boost::asio::ip::tcp::socket& socket_;
    Clock::time_point at_ = Clock::time_point::max();
  };

  std::atomic<std::size_t> open_count{0}, busy_count{0};
  std::shared_ptr<Outbox> outbox;

 private:
  std::unordered_set<Deadline*> deadlines_;
  std::atomic<bool> stopping_{false}, draining_{false};
};

boost::asio::awaitable<void> serve_plain(boost::asio::ip::tcp::socket socket,
                                         const HttpHandler& handler, HttpLimits limits,
                                         HttpSessions& sessions);
boost::asio::awaitable<void> serve_tls(boost::asio::ip::tcp::socket socket,
                                       std::shared_ptr<boost::asio::ssl::context> tls,
                                       const HttpHandler& handler, HttpLimits limits,
                                       HttpSessions& sessions);

}  // namespace gs
