// A thread's loop of events: sockets, timers, and calls that other threads post.
//
// Everything that belongs to a loop is touched by its thread only, so it needs no locks. post() may
// be called from any thread; timers only from the loop's own, or before it runs. Functions run one
// after the other, never inside post() or after().
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/time.hpp"

namespace boost::asio {
class io_context;
}

namespace gs {

class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using Function = std::function<void()>;
  using TimerId = std::uint64_t;  // 0: none

  EventLoop();
  // Drops what is still to come.
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Runs on the calling thread until finish() was called and nothing is left to be done.
  void run();
  // Runs on a thread of its own; finish() waits for it.
  void start();
  // From any other thread or from the loop: takes no more from the outside, cancels the timers, and
  // ends when what is open (sockets of clients that were stopped) has ended.
  void finish();

  void post(Function function);
  TimerId after(Duration delay, Function function);
  void cancel(TimerId timer);

  boost::asio::io_context& context();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // shared with the timer that is armed
};

}  // namespace gs
