#include "drivers/kubernetes/reflector.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <utility>

#include "base/log.hpp"
#include "drivers/kubernetes/line_splitter.hpp"
#include "drivers/kubernetes/object_name.hpp"
#include "wire/kube/meta.hpp"

namespace gs::kube {

struct Reflector::Impl : std::enable_shared_from_this<Reflector::Impl> {
  Impl(Api& the_api, ReflectorOptions the_options, Handler the_handler)
      : api(the_api),
        loop(the_api.loop()),
        options(std::move(the_options)),
        handler(std::move(the_handler)),
        rng(std::random_device{}()),
        page(options.page) {}

  // What was told of an object.
  struct Known {
    std::string uid, resource_version;
    std::uint64_t list = 0;  // the last that it was in
  };
  using Kind = ObjectChange::Kind;

  Api& api;
  EventLoop& loop;
  const ReflectorOptions options;
  const Handler handler;

  // --- the loop's
  Rng rng;
  std::map<std::string, Known, std::less<>> known;  // by namespace/name
  std::string key;                                  // reused
  std::string resource_version;                     // all up to it was told; empty: list first
  int page;
  int failures = 0;  // in a row
  LineSplitter lines;
  EventLoop::Clock::time_point watch_began;
  bool has_frames = false;      // the watch under way has brought something
  bool is_broken = false;       // it is not to be listened to any more
  std::optional<ApiError> why;  // the Error frame that it brought
  Api::CallPtr call;
  EventLoop::TimerId timer = 0;

  std::atomic<bool> is_stopped = false, is_synced = false;
  std::atomic<std::uint64_t> lists = 0, watches = 0, failed = 0, events = 0;
  mutable std::mutex mutex;  // of trouble
  std::string trouble;

  void go_on();
  void list(std::string next);
  void listed(ApiAnswer answer);
  Result<ListMeta> take_page(std::string_view body);
  void finish_list();
  void not_served();
  void set_trouble(std::string text);
  void watch();
  void received(std::string_view piece);
  void take_frame(std::string_view line);
  void leave_watch();
  void watch_ended(ApiAnswer answer);
  void failed_once(const ApiError& error);
  void pause_and_go_on(Duration at_least = {});

  void tell(Kind kind, const ObjectName& meta, std::string_view object);
  void present(const ObjectName& meta, std::string_view object);
  void absent(const ObjectName& meta, std::string_view object);
  void set_key(const ObjectName& meta) { key.assign(meta.ns).append("/").append(meta.name); }
};

// ------------------------------------------------------------------------------------- the books

void Reflector::Impl::tell(Kind kind, const ObjectName& meta, std::string_view object) {
  if (is_stopped) return;
  events.fetch_add(1, std::memory_order_relaxed);
  handler({kind, object, meta.ns, meta.name, meta.uid, meta.resource_version});
}

// The object is there: new, changed, or just as it was told.
void Reflector::Impl::present(const ObjectName& meta, std::string_view object) {
  set_key(meta);
  auto [at, is_new] = known.try_emplace(key);
  Known& entry = at->second;
  entry.list = lists;
  if (!is_new && entry.uid != meta.uid) {
    const std::string old_uid = std::exchange(entry.uid, std::string(meta.uid));
    tell(Kind::Deleted, {meta.name, meta.ns, old_uid, entry.resource_version}, {});
    is_new = true;
  } else if (!is_new && entry.resource_version == meta.resource_version) {
    return;
  }
  entry.uid = meta.uid;
  entry.resource_version = meta.resource_version;
  tell(is_new ? Kind::Added : Kind::Modified, meta, object);
}

void Reflector::Impl::absent(const ObjectName& meta, std::string_view object) {
  set_key(meta);
  const auto at = known.find(key);
  if (at == known.end() || at->second.uid != meta.uid) return;
  known.erase(at);
  tell(Kind::Deleted, meta, object);
}

// ------------------------------------------------------------------------------------- listing

void Reflector::Impl::go_on() {
  if (is_stopped) return;
  if (resource_version.empty()) {
    ++lists;
    list("");
  } else {
    watch();
  }
}

void Reflector::Impl::list(std::string next) {
  ListOptions wanted;
  wanted.label_selector = options.label_selector;
  wanted.field_selector = options.field_selector;
  wanted.limit = page;
  wanted.next = std::move(next);
  ApiRequest request = list_objects(options.resource, options.name_space, wanted);
  request.again = Again::Never;  // what fails is waited for here
  call = api.call(std::move(request), [self = shared_from_this()](ApiAnswer answer) {
    if (!self->is_stopped) self->listed(std::move(answer));
  });
}

void Reflector::Impl::listed(ApiAnswer answer) {
  if (!answer.ok()) {
    // The rest of a list that is too old can't be had: next time in one piece.
    if (answer.error->reason == ApiReason::Expired) page = 0;
    if (answer.error->reason == ApiReason::NotFound && options.is_optional) return not_served();
    failed_once(*answer.error);
    return pause_and_go_on(answer.error->retry_after);
  }
  auto found = take_page(answer.body);
  if (!found) {
    ApiError error;
    error.message = found.error().message;
    failed_once(error);
    return pause_and_go_on();
  }
  if (is_stopped) return;
  if (!found->continue_token.empty()) return list(std::move(found->continue_token));
  resource_version = std::move(found->resource_version);
  finish_list();
}

Result<ListMeta> Reflector::Impl::take_page(std::string_view body) {
  Status all = ok_status();
  auto meta = decode_list(body, [&](std::string_view item) {
    const auto name = read_object_name(item);
    if (name)
      present(*name, item);
    else
      all = name.error();
  });
  if (!all) return all.error();
  if (meta && meta->resource_version.empty()) return invalid("a list without a resourceVersion");
  return meta;
}

void Reflector::Impl::finish_list() {
  for (auto at = known.begin(); at != known.end();) {
    if (at->second.list == lists) {
      ++at;
      continue;
    }
    const auto gone = known.extract(at++);
    const std::string_view text = gone.key();
    const auto slash = text.find('/');
    tell(Kind::Deleted,
         {text.substr(slash + 1), text.substr(0, slash), gone.mapped().uid,
          gone.mapped().resource_version},
         {});
  }
  page = options.page;
  failures = 0;
  is_synced = true;
  set_trouble({});
  if (is_stopped) return;
  ObjectChange synced;
  synced.resource_version = resource_version;
  handler(synced);
  go_on();
}

// What it would list may be installed later.
void Reflector::Impl::not_served() {
  if (!is_synced.exchange(true)) {
    ObjectChange synced;
    handler(synced);
  }
  if (is_stopped) return;
  timer = loop.after(options.look_again, [self = shared_from_this()] { self->go_on(); });
}

void Reflector::Impl::set_trouble(std::string text) {
  const std::lock_guard lock(mutex);
  trouble = std::move(text);
}

// ------------------------------------------------------------------------------------- watching

void Reflector::Impl::watch() {
  WatchOptions wanted;
  wanted.label_selector = options.label_selector;
  wanted.field_selector = options.field_selector;
  wanted.resource_version = resource_version;
  wanted.timeout =
      milliseconds(rng.between(options.watch_timeout.ms, 2 * options.watch_timeout.ms));
  ++watches;
  lines.clear();
  has_frames = is_broken = false;
  why.reset();
  watch_began = EventLoop::Clock::now();
  call = api.watch(
      watch_objects(options.resource, options.name_space, wanted),
      [self = shared_from_this()](std::string_view piece) { self->received(piece); },
      [self = shared_from_this()](ApiAnswer answer) {
        if (!self->is_stopped) self->watch_ended(std::move(answer));
      },
      wanted.timeout + options.stall);
}

void Reflector::Impl::received(std::string_view piece) {
  const bool is_good = lines.feed(piece, [&](std::string_view line) {
    if (!is_broken && !is_stopped) take_frame(line);
  });
  if (!is_good && !is_broken) leave_watch();
}

void Reflector::Impl::leave_watch() {
  is_broken = true;
  api.cancel(call);
}

void Reflector::Impl::take_frame(std::string_view line) {
  const auto event = decode_watch_event(line);
  if (event && event->type == WatchType::Error) {
    why = read_api_error(200, event->object, {});
    return leave_watch();
  }
  const auto name = event ? read_object_name(event->object) : event.error();
  if (!name) {
    log_warn("a watch brought what is no event",
             {{"resource", options.resource.text()}, {"error", name.error().message}});
    return leave_watch();
  }
  has_frames = true;
  failures = 0;
  if (!name->resource_version.empty()) resource_version = name->resource_version;
  if (event->type == WatchType::Deleted)
    absent(*name, event->object);
  else if (event->type != WatchType::Bookmark)
    present(*name, event->object);
}

void Reflector::Impl::watch_ended(ApiAnswer answer) {
  call.reset();
  const std::optional<ApiError>& error = why ? why : answer.error;
  if (error && error->reason == ApiReason::Expired) {
    // The events since then are not kept any more. Usual after an outage; no failure.
    log_info("a watch is too old, the list is read again",
             {{"resource", options.resource.text()}, {"resource_version", resource_version}});
    resource_version.clear();
    return failures == 0 ? (++failures, go_on()) : pause_and_go_on();
  }
  if (error || is_broken) {
    failed_once(error ? *error : ApiError{});
    return pause_and_go_on(error ? error->retry_after : Duration{});
  }
  // A server that ends every watch at once must not be asked in a hurry.
  const auto lived = EventLoop::Clock::now() - watch_began;
  if (!has_frames && lived < std::chrono::seconds(1)) return pause_and_go_on();
  go_on();
}

void Reflector::Impl::failed_once(const ApiError& error) {
  ++failed;
  set_trouble(error.reason == ApiReason::NotFound
                  ? options.resource.text() + " is not served by the API server"
                  : options.resource.text() + ": " + error.message);
  if (failures > 0) return;  // said once for each outage
  log_warn("following a resource was interrupted", {{"resource", options.resource.text()},
                                                    {"reason", to_string(error.reason)},
                                                    {"error", error.message}});
}

void Reflector::Impl::pause_and_go_on(Duration at_least) {
  ++failures;
  const Duration wait = backoff(options.first_wait, options.longest_wait, failures, rng);
  timer = loop.after(std::max(wait, at_least), [self = shared_from_this()] { self->go_on(); });
}

// ------------------------------------------------------------------------------------- outside

Reflector::Reflector(Api& api, ReflectorOptions options, Handler handler)
    : impl_(std::make_shared<Impl>(api, std::move(options), std::move(handler))) {}

Reflector::~Reflector() { stop(); }

void Reflector::start() {
  impl_->loop.post([impl = impl_] { impl->go_on(); });
}

void Reflector::stop() {
  if (impl_->is_stopped.exchange(true)) return;
  impl_->loop.post([impl = impl_] {
    impl->loop.cancel(impl->timer);
    if (impl->call) impl->api.cancel(impl->call);
    impl->call.reset();
  });
}

ReflectorFigures Reflector::figures() const {
  const std::lock_guard lock(impl_->mutex);
  return {impl_->lists,  impl_->watches,   impl_->failed,
          impl_->events, impl_->is_synced, impl_->trouble};
}

}  // namespace gs::kube
