#include "net/http_pool.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <utility>

#include "net/client_failure.hpp"
#include "net/pool_connection.hpp"
#include "net/tls_client.hpp"

namespace gs {
namespace {

using Clock = EventLoop::Clock;
constexpr auto kForever = Clock::time_point::max();
// After a connection could not be opened, while others are open or on their way, for this long no
// more are tried.
constexpr auto kPauseAfterFailure = std::chrono::seconds(1);
// So many connections more than allowed may rest: a stream that ended is mostly begun anew.
constexpr std::size_t kSpare = 4;

Error cancelled() { return {ErrorCode::Unavailable, "the request was cancelled"}; }

bool has_line_break(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) != text.npos;
}

Status validate(const PoolRequest& request) {
  bool bad = has_line_break(request.method) || has_line_break(request.content_type) ||
             request.target.find(' ') != std::string::npos || has_line_break(request.target);
  for (const auto& [name, value] : request.headers)
    bad = bad || has_line_break(name) || has_line_break(value);
  if (bad) return invalid("a request's target and headers are single lines");
  return ok_status();
}

}  // namespace

// The queues before the connections. All of it but the inbox belongs to the loop's thread.
struct HttpPool::Impl final : PoolConnection::Owner, std::enable_shared_from_this<HttpPool::Impl> {
  using ConnectionPtr = std::shared_ptr<PoolConnection>;

  Impl(EventLoop& the_loop, HttpUrl the_server, HttpPoolOptions the_options)
      : loop(the_loop), server(std::move(the_server)), options(std::move(the_options)) {}

  EventLoop& loop;
  const HttpUrl server;
  HttpPoolOptions options;
  std::shared_ptr<boost::asio::ssl::context> tls;

  // --- what other threads put in
  std::mutex mutex;
  std::vector<PoolJob> inbox;
  std::vector<RequestId> cancels;
  bool is_woken = false;
  RequestId last_id = 0;

  // --- the loop's own
  std::vector<PoolJob> arrived;  // the inbox, swapped: neither allocates for long
  std::deque<PoolJob> urgent, ordinary, streams;
  std::vector<ConnectionPtr> connections;
  std::size_t ordinary_in_flight = 0, streams_in_flight = 0, opening = 0, busy = 0;
  Clock::time_point no_opening_before{};
  Clock::time_point look_at = kForever;  // when something will be late
  EventLoop::TimerId timer = 0;
  bool stopped = false;

  std::atomic<std::size_t> open_count{0}, busy_count{0}, waiting_count{0};
  std::atomic<std::uint64_t> opened_count{0};

  RequestId put(PoolJob job);
  void wake(std::unique_lock<std::mutex> lock);
  void take_inbox();
  void take(PoolJob job);
  void drop(RequestId id);
  void end_all();

  std::size_t waiting() const { return urgent.size() + ordinary.size() + streams.size(); }
  std::deque<PoolJob>* next_queue();
  std::size_t startable() const;
  ConnectionPtr idle_connection();
  void start_next(PoolConnection& connection, std::deque<PoolJob>& queue);
  void dispatch();
  void open_more();
  void forget(const PoolConnection& connection);
  void refuse_waiting(const Error& error);
  void look_by(Clock::time_point time);
  void expire();
  void publish();

  void opened(PoolConnection& connection) override;
  void not_opened(PoolConnection& connection, Error error) override;
  void ended(PoolConnection& connection, PoolJob job, PoolResult result, bool reusable) override;
  void closed_while_idle(PoolConnection& connection) override;
};

// ------------------------------------------------------------------------------ from any thread

HttpPool::RequestId HttpPool::Impl::put(PoolJob job) {
  job.deadline = Clock::now() + std::chrono::milliseconds(job.request.timeout.ms);
  std::unique_lock lock(mutex);
  const RequestId id = job.id = ++last_id;
  inbox.push_back(std::move(job));
  wake(std::move(lock));
  return id;
}

void HttpPool::Impl::wake(std::unique_lock<std::mutex> lock) {
  const bool is_first = !std::exchange(is_woken, true);
  lock.unlock();
  if (is_first) loop.post([self = shared_from_this()] { self->take_inbox(); });
}

// ------------------------------------------------------------------------------ on the loop

void HttpPool::Impl::take_inbox() {
  std::vector<RequestId> dropped;
  {
    const std::lock_guard lock(mutex);
    is_woken = false;
    arrived.swap(inbox);
    dropped.swap(cancels);
  }
  for (PoolJob& job : arrived) take(std::move(job));
  arrived.clear();
  for (const RequestId id : dropped) drop(id);
  dispatch();
}

void HttpPool::Impl::take(PoolJob job) {
  if (Status s = validate(job.request); !s) return job.done({s.error(), false});
  if (stopped) return job.done({cancelled(), false});
  if (waiting() >= options.queue)
    return job.done({Error{ErrorCode::QueueFull, std::to_string(options.queue) + " requests to " +
                                                     server.text() + " wait already"},
                     false});
  look_by(job.deadline);
  if (job.is_stream && job.idle.ms > 0)
    look_by(Clock::now() + std::chrono::milliseconds(job.idle.ms));
  auto& queue = job.is_stream ? streams : job.request.lane == Lane::Urgent ? urgent : ordinary;
  queue.push_back(std::move(job));
}

void HttpPool::Impl::drop(RequestId id) {
  for (auto* queue : {&urgent, &ordinary, &streams}) {
    const auto found = std::find_if(queue->begin(), queue->end(),
                                    [&](const PoolJob& job) { return job.id == id; });
    if (found == queue->end()) continue;
    PoolJob job = std::move(*found);
    queue->erase(found);
    return job.done({cancelled(), false});
  }
  for (const ConnectionPtr& connection : connections)
    if (connection->job() != nullptr && connection->job()->id == id)
      return ConnectionPtr(connection)->fail(cancelled());
}

void HttpPool::Impl::end_all() {
  stopped = true;
  take_inbox();
  loop.cancel(timer);
  refuse_waiting(cancelled());
  for (const ConnectionPtr& connection : std::exchange(connections, {})) {
    if (connection->job() != nullptr)
      connection->fail(cancelled());
    else
      connection->close();
  }
  opening = 0;
  publish();
}

// The queue whose first request may start now.
std::deque<PoolJob>* HttpPool::Impl::next_queue() {
  if (!streams.empty() && streams_in_flight < options.streams) return &streams;
  if (busy - streams_in_flight >= options.connections) return nullptr;
  if (!urgent.empty()) return &urgent;
  if (!ordinary.empty() && ordinary_in_flight < options.for_ordinary) return &ordinary;
  return nullptr;
}

// How many requests would start if there were connections enough.
std::size_t HttpPool::Impl::startable() const {
  const std::size_t ordinary_room =
      options.for_ordinary - std::min(options.for_ordinary, ordinary_in_flight);
  const std::size_t short_busy = busy - streams_in_flight;
  const std::size_t room = options.connections - std::min(options.connections, short_busy);
  return std::min(streams.size(), options.streams - streams_in_flight) +
         std::min(room, urgent.size() + std::min(ordinary.size(), ordinary_room));
}

HttpPool::Impl::ConnectionPtr HttpPool::Impl::idle_connection() {
  // The one that was used last: the others may then rest until they are closed.
  while (true) {
    ConnectionPtr best;
    for (const ConnectionPtr& connection : connections)
      if (connection->is_idle() && (!best || connection->idle_since() > best->idle_since()))
        best = connection;
    if (!best || (best->tls() == tls && !best->is_stale())) return best;
    best->close();
    forget(*best);
  }
}

void HttpPool::Impl::start_next(PoolConnection& connection, std::deque<PoolJob>& queue) {
  PoolJob job = std::move(queue.front());
  queue.pop_front();
  ++busy;
  if (job.is_stream)
    ++streams_in_flight;
  else if (job.request.lane == Lane::Ordinary)
    ++ordinary_in_flight;
  connection.start(std::move(job));
}

void HttpPool::Impl::dispatch() {
  while (auto* queue = next_queue()) {
    const ConnectionPtr connection = idle_connection();
    if (!connection) break;
    start_next(*connection, *queue);
  }
  open_more();
  publish();
}

void HttpPool::Impl::open_more() {
  const std::size_t wanted = startable();
  const auto now = Clock::now();
  if (wanted <= opening) return;
  if (now < no_opening_before) return look_by(no_opening_before);
  while (opening < wanted) {
    ++opening;
    connections.push_back(std::make_shared<PoolConnection>(
        loop.context(), PoolConnection::Setting{server, options, tls}, *this));
    look_by(now + std::chrono::milliseconds(options.connect_timeout.ms));
    // A copy: what fails at once is forgotten in the call.
    const ConnectionPtr connection = connections.back();
    connection->open();
  }
}

void HttpPool::Impl::forget(const PoolConnection& connection) {
  std::erase_if(connections, [&](const ConnectionPtr& c) { return c.get() == &connection; });
}

void HttpPool::Impl::refuse_waiting(const Error& error) {
  for (auto* queue : {&streams, &urgent, &ordinary})
    for (PoolJob& job : std::exchange(*queue, {})) job.done({error, false});
}

void HttpPool::Impl::publish() {
  open_count.store(connections.size() - opening, std::memory_order_relaxed);
  busy_count.store(busy, std::memory_order_relaxed);
  waiting_count.store(waiting(), std::memory_order_relaxed);
}

// ------------------------------------------------------------------------------ what is late

void HttpPool::Impl::look_by(Clock::time_point time) {
  if (time >= look_at || stopped) return;
  look_at = time;
  loop.cancel(timer);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - Clock::now()).count();
  timer = loop.after(milliseconds(std::max<std::int64_t>(left, 0)), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->expire();
  });
}

void HttpPool::Impl::expire() {
  const auto now = Clock::now();
  look_at = kForever;
  auto next = kForever;
  std::vector<PoolJob> late;
  for (auto* queue : {&urgent, &ordinary, &streams}) {
    for (PoolJob& job : *queue) {
      if (job.deadline <= now)
        late.push_back(std::move(job));
      else
        next = std::min(next, job.deadline);
    }
    std::erase_if(*queue, [&](const PoolJob& job) { return job.deadline <= now; });
  }
  for (PoolJob& job : late) job.done({too_slow(server, job.request.timeout), false});
  const std::vector<ConnectionPtr> open = connections;
  for (const ConnectionPtr& connection : open) next = std::min(next, connection->expire(now));
  dispatch();
  if (next != kForever) look_by(next);
}

// ------------------------------------------------------------------------------ connections tell

void HttpPool::Impl::opened(PoolConnection&) {
  --opening;
  opened_count.fetch_add(1, std::memory_order_relaxed);
  dispatch();
}

void HttpPool::Impl::not_opened(PoolConnection& connection, Error error) {
  --opening;
  forget(connection);
  // Not at once another one for the same request: while some fail others are being opened, and that
  // would go on for as long as the server is away.
  no_opening_before = Clock::now() + kPauseAfterFailure;
  if (connections.empty()) {
    no_opening_before = {};  // whoever asks after this is a new try
    refuse_waiting(error);
  }
  dispatch();
}

void HttpPool::Impl::ended(PoolConnection& connection, PoolJob job, PoolResult result,
                           bool reusable) {
  --busy;
  if (job.is_stream)
    --streams_in_flight;
  else if (job.request.lane == Lane::Ordinary)
    --ordinary_in_flight;
  if (!reusable) forget(connection);
  // First the next request, then the caller: the server should not wait for it.
  if (!stopped) {
    if (reusable && connections.size() <= options.connections + streams_in_flight + kSpare &&
        connection.tls() == tls) {
      if (auto* queue = next_queue()) start_next(connection, *queue);
    } else if (reusable) {
      connection.close();
      forget(connection);
    }
    dispatch();
    look_by(Clock::now() + std::chrono::milliseconds(options.idle_timeout.ms));
  }
  job.done(std::move(result));
}

void HttpPool::Impl::closed_while_idle(PoolConnection& connection) {
  forget(connection);
  dispatch();
}

// ------------------------------------------------------------------------------ the pool

Result<std::unique_ptr<HttpPool>> HttpPool::create(EventLoop& loop, HttpUrl server,
                                                   HttpPoolOptions options) {
  auto impl = std::make_shared<Impl>(loop, std::move(server), std::move(options));
  if (impl->server.tls) {
    auto context = tls_client_context(impl->options.tls);
    if (!context) return context.error();
    impl->tls = std::make_shared<boost::asio::ssl::context>(std::move(*context));
  }
  return std::unique_ptr<HttpPool>(new HttpPool(std::move(impl)));
}

HttpPool::HttpPool(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpPool::~HttpPool() { stop(); }

HttpPool::RequestId HttpPool::send(PoolRequest request, Callback done) {
  PoolJob job;
  job.request = std::move(request);
  job.done = std::move(done);
  return impl_->put(std::move(job));
}

HttpPool::RequestId HttpPool::stream(PoolRequest request, Piece piece, Callback done,
                                     Duration idle) {
  PoolJob job;
  job.request = std::move(request);
  job.piece = std::move(piece);
  job.done = std::move(done);
  job.is_stream = true;
  job.idle = idle;
  return impl_->put(std::move(job));
}

void HttpPool::cancel(RequestId request) {
  std::unique_lock lock(impl_->mutex);
  impl_->cancels.push_back(request);
  impl_->wake(std::move(lock));
}

Status HttpPool::renew_tls(const TlsOptions& tls) {
  auto context = tls_client_context(tls);
  if (!context) return context.error();
  auto shared = std::make_shared<boost::asio::ssl::context>(std::move(*context));
  impl_->loop.post([impl = impl_, tls, shared] {
    impl->options.tls = tls;
    impl->tls = shared;
  });
  return ok_status();
}

void HttpPool::stop() {
  impl_->loop.post([impl = impl_] { impl->end_all(); });
}

PoolFigures HttpPool::figures() const {
  PoolFigures out;
  out.connections = impl_->open_count.load(std::memory_order_relaxed);
  out.in_flight = impl_->busy_count.load(std::memory_order_relaxed);
  out.waiting = impl_->waiting_count.load(std::memory_order_relaxed);
  out.connected = impl_->opened_count.load(std::memory_order_relaxed);
  return out;
}

const HttpUrl& HttpPool::server() const { return impl_->server; }

}  // namespace gs
