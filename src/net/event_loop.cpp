#include "net/event_loop.hpp"

#include <map>
#include <optional>
#include <thread>
#include <utility>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

namespace gs {
namespace asio = boost::asio;

struct EventLoop::Impl : std::enable_shared_from_this<EventLoop::Impl> {
  using Executor = asio::io_context::executor_type;
  using Timer = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Executor>;
  using Due = std::pair<Clock::time_point, TimerId>;

  asio::io_context context{1};
  std::optional<asio::executor_work_guard<Executor>> guard{context.get_executor()};
  Timer timer{context.get_executor()};
  std::map<Due, Function> due;
  std::map<TimerId, Clock::time_point> times;
  Clock::time_point armed = Clock::time_point::max();
  TimerId last = 0;
  bool finishing = false;
  std::thread thread;

  // One timer of the context serves all: it is set anew only when something earlier comes.
  void arm() {
    if (due.empty() || due.begin()->first.first >= armed) return;
    armed = due.begin()->first.first;
    timer.expires_at(armed);
    timer.async_wait([self = weak_from_this()](const boost::system::error_code& error) {
      if (error) return;
      if (auto impl = self.lock()) impl->fire();
    });
  }

  void fire() {
    armed = Clock::time_point::max();
    const auto now = Clock::now();
    while (!due.empty() && due.begin()->first.first <= now) {
      Function function = std::move(due.begin()->second);
      times.erase(due.begin()->first.second);
      due.erase(due.begin());
      function();
    }
    arm();
  }

  void end() {
    finishing = true;
    due.clear();
    times.clear();
    timer.cancel();
    guard.reset();
  }
};

EventLoop::EventLoop() : impl_(std::make_shared<Impl>()) {}

EventLoop::~EventLoop() {
  impl_->context.stop();
  if (impl_->thread.joinable()) impl_->thread.join();
}

void EventLoop::run() { impl_->context.run(); }

void EventLoop::start() {
  impl_->thread = std::thread([impl = impl_.get()] { impl->context.run(); });
}

void EventLoop::finish() {
  asio::post(impl_->context, [impl = impl_.get()] { impl->end(); });
  if (impl_->thread.joinable() && impl_->thread.get_id() != std::this_thread::get_id())
    impl_->thread.join();
}

void EventLoop::post(Function function) { asio::post(impl_->context, std::move(function)); }

EventLoop::TimerId EventLoop::after(Duration delay, Function function) {
  if (impl_->finishing) return 0;
  const auto time = Clock::now() + std::chrono::milliseconds(delay.ms);
  const TimerId id = ++impl_->last;
  impl_->due.emplace(Impl::Due{time, id}, std::move(function));
  impl_->times.emplace(id, time);
  impl_->arm();
  return id;
}

void EventLoop::cancel(TimerId timer) {
  const auto found = impl_->times.find(timer);
  if (found == impl_->times.end()) return;
  impl_->due.erase({found->second, timer});
  impl_->times.erase(found);
}

asio::io_context& EventLoop::context() { return impl_->context; }

}  // namespace gs
