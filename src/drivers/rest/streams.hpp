// Streams of events to many watchers at a cost that is bounded: so many are woken in a tick, in
// turn, and each takes a bounded number of events at a time. The more of them, the less often. A
// watcher that has fallen far behind is told so and goes on with the latest.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
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
  std::vector<std::shared_ptr<Watcher>> next_to_wake();  // the mutex is held
  std::size_t at_most() const;

  EventBus& bus_;
  std::atomic<std::size_t> count_{0};
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::deque<std::weak_ptr<Watcher>> waiting_;
  std::size_t due_ = 0;     // of them, from the front: have not been woken since the last event
  std::uint64_t seen_ = 0;  // that event
  std::uint64_t last_tick_ = 0;  // the last event when watchers were woken last
  std::thread thread_;
};

}  // namespace gs
