#include "drivers/rest/streams.hpp"

#include <algorithm>
#include <chrono>

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace gs {
namespace asio = boost::asio;
namespace {

// So many pieces are sent in a tick, of so many events together: what all watchers cost is bounded,
// and who submits beside them waits for the few of one tick at most.
constexpr auto kTick = std::chrono::milliseconds(50);
constexpr std::size_t kPiecesPerTick = 200;
// Where so many events happen in a tick, somebody submits in bulk: most watchers would be behind
// anyway, and get less of the machine.
constexpr std::uint64_t kBusyEvents = 200;
constexpr std::size_t kPiecesPerBusyTick = 70;
constexpr std::size_t kEventsPerTick = 8'000;
constexpr std::size_t kLeastEvents = 10;  // of a piece
constexpr auto kKeepAlive = std::chrono::seconds(15);

std::string piece_of(std::uint64_t id, const std::string& type, const std::string& json,
                     bool server_sent) {
  if (!server_sent) return json + "\n";
  return "id: " + std::to_string(id) + "\nevent: " + type + "\ndata: " + json + "\n\n";
}

}  // namespace

struct EventWatchers::Watcher {
  Watcher(std::atomic<std::size_t>& the_count, const asio::any_io_executor& executor)
      : count(the_count), timer(executor) {
    ++count;
  }
  ~Watcher() { --count; }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  std::atomic<std::size_t>& count;
  asio::steady_timer timer;
  EventFilter filter;
  std::uint64_t after = 0;
  bool server_sent = false;
  bool listed = false;  // among those to be woken; guarded by the mutex
};

EventWatchers::EventWatchers(EventBus& bus) : bus_(bus), thread_([this] { wake_loop(); }) {}

EventWatchers::~EventWatchers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

std::size_t EventWatchers::at_most() const {
  return std::max(kLeastEvents, kEventsPerTick / std::max<std::size_t>(1, count_));
}

NextPiece EventWatchers::watch(Wish wish, const std::vector<EventRow>& backlog,
                               asio::any_io_executor executor) {
  auto watcher = std::make_shared<Watcher>(count_, std::move(executor));
  watcher->filter = std::move(wish.filter);
  watcher->after = wish.after == 0 ? bus_.last() : wish.after;
  watcher->server_sent = wish.server_sent;
  auto first = std::make_shared<std::string>();
  if (wish.server_sent) *first = ": connected\nretry: 2000\n\n";
  for (const EventRow& event : backlog)
    *first += piece_of(event.id, event.type, event_json(event), wish.server_sent);
  // What is recorded of the time before it the watcher has got: nothing was missed.
  if (wish.after > 0) watcher->after = std::max(watcher->after, bus_.kept_after());
  return [this, watcher, first]() -> asio::awaitable<std::optional<std::string>> {
    if (!first->empty()) co_return std::exchange(*first, {});
    co_return co_await next(watcher);
  };
}

std::string EventWatchers::take(Watcher& watcher) const {
  const EventBus::Page page = bus_.read(watcher.after, watcher.filter, at_most());
  std::string out;
  if (page.lost) {
    const std::string text = R"({"type":"lagged","message":"some events were missed"})";
    out += watcher.server_sent ? "event: lagged\ndata: " + text + "\n\n" : text + "\n";
  }
  for (const auto& event : page.events) {
    out += piece_of(event->row().id, event->row().type, event->json(), watcher.server_sent);
  }
  watcher.after = page.next;
  return out;
}

// One piece for each time it is woken, however far behind it is.
asio::awaitable<std::optional<std::string>> EventWatchers::next(std::shared_ptr<Watcher> watcher) {
  watcher->timer.expires_after(kKeepAlive);
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) co_return std::nullopt;
    if (!watcher->listed) waiting_.push_back(watcher);
    watcher->listed = true;
    if (watcher->after < bus_.last()) seen_ = 0;
  }
  boost::system::error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  co_await watcher->timer.async_wait(token);
  std::string out = take(*watcher);
  if (out.empty() && !error && watcher->server_sent) out = ": still here\n\n";
  co_return out;
}

// In turn: who was woken waits behind the others for the next time.
std::vector<std::shared_ptr<EventWatchers::Watcher>> EventWatchers::next_to_wake() {
  const std::uint64_t last = bus_.last();
  const std::size_t pieces = last - last_tick_ >= kBusyEvents ? kPiecesPerBusyTick : kPiecesPerTick;
  last_tick_ = last;
  if (last != seen_) {
    seen_ = last;
    due_ = waiting_.size();
  }
  std::vector<std::shared_ptr<Watcher>> woken;
  for (; due_ > 0 && !waiting_.empty() && woken.size() < pieces; --due_) {
    if (auto watcher = waiting_.front().lock()) {
      watcher->listed = false;
      woken.push_back(std::move(watcher));
    }
    waiting_.pop_front();
  }
  return woken;
}

void EventWatchers::wake_loop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    stop_.wait_for(lock, kTick, [&] { return stopping_; });
    const std::vector<std::shared_ptr<Watcher>> woken = next_to_wake();
    lock.unlock();
    for (const auto& watcher : woken)
      asio::post(watcher->timer.get_executor(), [watcher] { watcher->timer.cancel(); });
    lock.lock();
  }
}

}  // namespace gs
