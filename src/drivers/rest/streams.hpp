// Streams of events to many watchers at a cost that is bounded: they are woken together, the more
// of them the less often, and each takes a bounded number of events at a time. A watcher that has
// fallen far behind is told so and goes on with the latest.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "net/http.hpp"
#include "service/events.hpp"

namespace gs {

class EventWatchers {
 public:
  explicit EventWatchers(EventBus& bus);
  ~EventWatchers();
  EventWatchers(const EventWatchers&) = delete;
  EventWatchers& operator=(const EventWatchers&) = delete;

  struct Wish {
    EventFilter filter;
    std::uint64_t after = 0;  // 0: what comes from now on
    bool server_sent = false;
  };
  // Pieces of server-sent events, or WebSocket messages: `backlog`, and then what the bus has after
  // both of them.
  NextPiece watch(Wish wish, const std::vector<EventRow>& backlog,
                  boost::asio::any_io_executor executor);
  std::size_t count() const { return count_; }

 private:
  struct Watcher;
  boost::asio::awaitable<std::optional<std::string>> next(std::shared_ptr<Watcher> watcher);
  std::string take(Watcher& watcher) const;
  void wake_loop();
  std::size_t at_most() const;

  EventBus& bus_;
  std::atomic<std::size_t> count_{0};
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::vector<std::weak_ptr<Watcher>> waiting_;
  std::thread thread_;
};

}  // namespace gs
