#include "drivers/kubernetes/elector.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <random>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/check.hpp"
#include "base/log.hpp"
#include "wire/clock_json.hpp"

namespace gs::kube {
namespace {

using Json = nlohmann::json;
using Clock = EventLoop::Clock;

constexpr Duration kReleaseTimeout = seconds(2);

std::chrono::milliseconds chrono(Duration duration) {
  return std::chrono::milliseconds(duration.ms);
}

// Kubernetes wants microseconds, all six digits of them.
std::string micro_time() {
  const Instant now{std::chrono::duration_cast<std::chrono::milliseconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count()};
  std::string text = time_text(now);
  text.insert(text.size() - 1, "000");
  return text;
}

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::int64_t number_at(const Json& object, const char* key, std::int64_t otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>()
                                                             : otherwise;
}

}  // namespace

struct Elector::Impl : std::enable_shared_from_this<Elector::Impl> {
  Impl(Api& the_api, ElectorOptions the_options, Callbacks the_callbacks)
      : api(the_api),
        loop(the_api.loop()),
        options(std::move(the_options)),
        callbacks(std::move(the_callbacks)),
        rng(std::random_device{}()) {}

  Api& api;
  EventLoop& loop;
  const ElectorOptions options;
  const Callbacks callbacks;

  // --- the loop's
  Rng rng;
  Json seen;                     // the lease as it was last seen; null: not yet, or not there
  Clock::time_point changed_at;  // when it was last seen to change
  Clock::time_point asked_at;    // when the renewal under way was sent
  Clock::time_point renewed_at;
  std::string last_error;
  bool is_leading = false, is_stopped = false;
  EventLoop::TimerId next_timer = 0, deadline_timer = 0;
  Api::CallPtr call;
  std::function<void()> released;

  std::atomic<Clock::rep> leads_until = 0;
  mutable std::mutex mutex;  // of holder and trouble
  std::string holder, trouble;

  void try_now();
  void ask();
  void answered(const ApiAnswer& answer);
  void observe(Json lease);
  bool is_free() const;
  Clock::time_point over_at() const;
  void take(bool is_there);
  void taken(const ApiAnswer& answer);
  void lead();
  void stop_leading(const std::string& why);
  void watch_deadline();
  void plan_next();
  void end();
  void give_back();

  const Json& spec() const {
    static const Json none = Json::object();
    const auto found = seen.find("spec");
    return seen.is_object() && found != seen.end() && found->is_object() ? *found : none;
  }
  void set_trouble(std::string text) {
    const std::lock_guard lock(mutex);
    trouble = std::move(text);
  }
  void remember_holder() {
    const std::lock_guard lock(mutex);
    trouble.clear();
    holder = text_at(spec(), "holderIdentity");
  }
  ApiRequest prepared(ApiRequest request) const {
    request.lane = Lane::Urgent;
    request.again = Again::Never;  // the next round is the next try, with what is known by then
    request.timeout = milliseconds(std::max(options.retry.ms, options.renew_deadline.ms / 2));
    return request;
  }
};

// A leader renews without reading: it knows the lease unless somebody else has written to it.
void Elector::Impl::try_now() {
  if (is_stopped) return;
  if (is_leading && seen.is_object()) return take(true);
  ask();
}

void Elector::Impl::ask() {
  call = api.call(prepared(read_object(leases(), options.name_space, options.name)),
                  [self = shared_from_this()](const ApiAnswer& answer) { self->answered(answer); });
}

void Elector::Impl::answered(const ApiAnswer& answer) {
  call.reset();
  if (is_stopped) return end();
  if (!answer.ok() && answer.error->reason == ApiReason::NotFound) {
    seen = nullptr;
    return take(false);
  }
  Json lease = answer.ok() ? Json::parse(answer.body, nullptr, false) : Json();
  if (!lease.is_object()) {
    last_error = answer.ok() ? "the lease could not be read" : answer.error->message;
    set_trouble("lease " + options.name_space + "/" + options.name + ": " + last_error);
    return plan_next();
  }
  observe(std::move(lease));
  if (is_free()) return take(true);
  plan_next();
}

void Elector::Impl::observe(Json lease) {
  const auto version = [](const Json& object) {
    const auto metadata = object.is_object() ? object.find("metadata") : object.end();
    return object.is_object() && metadata != object.end() && metadata->is_object()
               ? text_at(*metadata, "resourceVersion")
               : std::string();
  };
  if (version(lease) != version(seen)) changed_at = Clock::now();
  seen = std::move(lease);
  remember_holder();
}

// Whether we may write our name into the lease that was seen.
bool Elector::Impl::is_free() const {
  const std::string by = text_at(spec(), "holderIdentity");
  return by.empty() || by == options.identity || Clock::now() >= over_at();
}

// When the lease of somebody who shows no more signs of life is over.
Clock::time_point Elector::Impl::over_at() const {
  return changed_at +
         std::chrono::seconds(number_at(spec(), "leaseDurationSeconds", options.lease.ms / 1000));
}

void Elector::Impl::take(bool is_there) {
  Json lease = is_there ? seen : Json::object();
  Json& new_spec = lease["spec"];
  if (!new_spec.is_object()) new_spec = Json::object();
  const std::string now = micro_time();
  if (text_at(new_spec, "holderIdentity") != options.identity) {
    new_spec["acquireTime"] = now;
    new_spec["leaseTransitions"] =
        number_at(new_spec, "leaseTransitions", 0) + static_cast<int>(is_there);
  }
  new_spec["holderIdentity"] = options.identity;
  new_spec["leaseDurationSeconds"] = (options.lease.ms + 999) / 1000;
  new_spec["renewTime"] = now;
  ApiRequest request;
  if (is_there) {
    request = update_object(leases(), options.name_space, options.name, text_of(lease));
  } else {
    lease["apiVersion"] = "coordination.k8s.io/v1";
    lease["kind"] = "Lease";
    lease["metadata"] = {{"name", options.name}, {"namespace", options.name_space}};
    request = create_object(leases(), options.name_space, text_of(lease));
  }
  asked_at = Clock::now();
  call = api.call(prepared(std::move(request)),
                  [self = shared_from_this()](const ApiAnswer& answer) { self->taken(answer); });
}

void Elector::Impl::taken(const ApiAnswer& answer) {
  call.reset();
  Json lease = answer.ok() ? Json::parse(answer.body, nullptr, false) : Json();
  const bool is_ours = lease.is_object();
  if (is_ours) {
    observe(std::move(lease));
    renewed_at = asked_at;
  }
  if (is_stopped) return end();
  if (is_ours) {
    lead();
    return plan_next();
  }
  last_error = answer.ok() ? "the lease could not be read" : answer.error->message;
  set_trouble(!answer.ok() && answer.error->reason == ApiReason::NotFound
                  ? "namespace " + options.name_space +
                        " does not exist: kubectl create namespace " + options.name_space
                  : last_error);
  const bool was_written = !answer.ok() && (answer.error->reason == ApiReason::Conflict ||
                                            answer.error->reason == ApiReason::AlreadyExists ||
                                            answer.error->reason == ApiReason::NotFound);
  if (was_written && is_leading) {  // by somebody: perhaps only a label, so look before giving up
    seen = nullptr;
    return ask();
  }
  plan_next();
}

void Elector::Impl::lead() {
  leads_until = (renewed_at + chrono(options.renew_deadline)).time_since_epoch().count();
  watch_deadline();
  if (std::exchange(is_leading, true)) return;
  log_info("this process leads", {{"lease", options.name}, {"identity", options.identity}});
  if (callbacks.gained) callbacks.gained();
}

void Elector::Impl::watch_deadline() {
  loop.cancel(deadline_timer);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      renewed_at + chrono(options.renew_deadline) - Clock::now());
  deadline_timer = loop.after(
      milliseconds(std::max<std::int64_t>(0, left.count())), [self = shared_from_this()] {
        self->stop_leading("the lease could not be renewed in time: " + self->last_error);
      });
}

void Elector::Impl::stop_leading(const std::string& why) {
  if (!std::exchange(is_leading, false)) return;
  leads_until = 0;
  loop.cancel(deadline_timer);
  log_warn("this process does not lead any more", {{"lease", options.name}, {"why", why}});
  if (callbacks.lost) callbacks.lost(why);
}

void Elector::Impl::plan_next() {
  const std::string by = text_at(spec(), "holderIdentity");
  if (is_leading && seen.is_object() && by != options.identity)
    stop_leading("the lease belongs to '" + by + "'");
  Duration wait = options.retry;
  if (!is_leading) {
    // Candidates come at different times, or they would all come at once; but none comes later than
    // it has to.
    wait = wait + milliseconds(rng.between(0, options.retry.ms / 5));
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(over_at() - Clock::now());
    if (!by.empty() && left.count() > 0) wait = std::min(wait, milliseconds(left.count()));
  }
  loop.cancel(next_timer);
  next_timer = loop.after(wait, [self = shared_from_this()] { self->try_now(); });
}

// After stop(), when no call is under way.
void Elector::Impl::end() {
  const bool is_ours = seen.is_object() && text_at(spec(), "holderIdentity") == options.identity;
  if (is_ours && released) return give_back();
  if (auto done = std::exchange(released, {})) done();
}

void Elector::Impl::give_back() {
  Json lease = std::exchange(seen, nullptr);
  Json& new_spec = lease["spec"];
  new_spec["holderIdentity"] = "";
  new_spec["leaseDurationSeconds"] = 1;
  new_spec["renewTime"] = micro_time();
  ApiRequest request =
      prepared(update_object(leases(), options.name_space, options.name, text_of(lease)));
  request.timeout = kReleaseTimeout;
  call = api.call(std::move(request), [self = shared_from_this()](const ApiAnswer&) {
    self->call.reset();
    if (auto done = std::exchange(self->released, {})) done();
  });
}

Elector::Elector(Api& api, ElectorOptions options, Callbacks callbacks)
    : impl_(std::make_shared<Impl>(api, std::move(options), std::move(callbacks))) {
  const ElectorOptions& o = impl_->options;
  CHECK(!o.identity.empty() && !o.name.empty());
  CHECK(o.retry.ms > 0 && o.retry < o.renew_deadline && o.renew_deadline < o.lease);
}

Elector::~Elector() {
  impl_->loop.post([impl = impl_] {
    impl->is_stopped = true;
    impl->is_leading = false;
    impl->loop.cancel(impl->next_timer);
    impl->loop.cancel(impl->deadline_timer);
  });
  impl_->leads_until = 0;
}

void Elector::start() {
  impl_->loop.post([impl = impl_] { impl->try_now(); });
}

void Elector::stop(std::function<void()> done) {
  impl_->loop.post([impl = impl_, done = std::move(done)] {
    if (impl->is_stopped) {
      if (done) done();
      return;
    }
    impl->is_stopped = true;
    impl->loop.cancel(impl->next_timer);
    impl->stop_leading("it was stopped");
    impl->released = done ? done : [] {};
    if (!impl->call) impl->end();
  });
}

bool Elector::is_leader() const {
  return Clock::now().time_since_epoch().count() < impl_->leads_until;
}

std::string Elector::trouble() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->trouble;
}

std::string Elector::leader() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->holder;
}

}  // namespace gs::kube
