#include "drivers/kubernetes/api.hpp"

#include <atomic>
#include <random>
#include <set>
#include <utility>

#include "base/log.hpp"
#include "base/version.hpp"
#include "drivers/kubernetes/identity_keeper.hpp"

namespace gs::kube {

struct Api::Call {
  ApiRequest request;
  Callback done;
  int tries = 0;
  bool was_unauthorized = false;
  EventLoop::Clock::time_point started;
  std::atomic<bool> is_cancelled = false;
  std::atomic<HttpPool::RequestId> in_pool = 0;
  EventLoop::TimerId timer = 0;  // while it waits for its next try
};

struct Api::Impl : std::enable_shared_from_this<Api::Impl> {
  Impl(EventLoop& the_loop, ClusterAccess access, Identity identity, ApiOptions the_options)
      : loop(the_loop),
        options(std::move(the_options)),
        name_space(access.name_space),
        keeper(loop, std::move(access), std::move(identity),
               [this](const TlsOptions& tls) { renew_tls(tls); }),
        rng(std::random_device{}()) {}

  EventLoop& loop;
  const ApiOptions options;
  const std::string name_space;
  std::unique_ptr<HttpPool> pool;
  IdentityKeeper keeper;
  Rng rng;                     // of the loop
  std::set<CallPtr> sleeping;  // of the loop: those that wait for their next try
  bool is_stopped = false;     // of the loop
  Family<Counter>* requests = nullptr;
  Family<Counter>* retries = nullptr;
  Family<Histogram>* latency = nullptr;

  void count(const Call& call, int code) const;
  void renew_tls(const TlsOptions& tls) const;
  PoolRequest pool_request(const Call& call) const;
  void send(const CallPtr& call);
  ApiAnswer answer_of(const Call& call, PoolResult result) const;
  void answered(const CallPtr& call, PoolResult result);
  std::optional<Duration> next_try(Call& call, const ApiError& error);
  void sleep(const CallPtr& call, Duration wait);
  void end_all();
};

namespace {

ApiError cancelled() {
  ApiError error;
  error.reason = ApiReason::Cancelled;
  error.message = "the call was cancelled";
  return error;
}

// Ids rise, and the call's newest request is the one to cancel.
void remember(std::atomic<HttpPool::RequestId>& newest, HttpPool::RequestId id) {
  HttpPool::RequestId known = newest.load();
  while (known < id && !newest.compare_exchange_weak(known, id)) {
  }
}

}  // namespace

void Api::Impl::count(const Call& call, int code) const {
  if (requests == nullptr) return;
  const ApiRequest& request = call.request;
  std::string resource = request.resource.text();
  if (!request.subresource.empty()) resource += "/" + request.subresource;
  requests->with({request.verb, resource, std::to_string(code)}).add();
  if (request.verb == "watch") return;  // how long it lives says nothing
  const std::chrono::duration<double> took = EventLoop::Clock::now() - call.started;
  latency->with({request.verb}).observe(took.count());
}

void Api::Impl::renew_tls(const TlsOptions& tls) const {
  if (const Status s = pool->renew_tls(tls); !s)
    log_warn("new certificates for the API server can't be used", {{"error", s.error().message}});
}

PoolRequest Api::Impl::pool_request(const Call& call) const {
  PoolRequest out;
  out.method = call.request.method;
  out.target = call.request.target();
  out.body = call.request.body;
  out.content_type = call.request.content_type;
  out.lane = call.request.lane;
  out.timeout = call.request.timeout;
  if (const auto bearer = keeper.bearer()) out.headers.emplace_back("Authorization", *bearer);
  return out;
}

void Api::Impl::send(const CallPtr& call) {
  call->started = EventLoop::Clock::now();
  ++call->tries;
  auto done = [self = shared_from_this(), call](PoolResult result) {
    self->answered(call, std::move(result));
  };
  remember(call->in_pool, pool->send(pool_request(*call), std::move(done)));
}

ApiAnswer Api::Impl::answer_of(const Call& call, PoolResult result) const {
  ApiAnswer answer;
  if (result.answer.ok()) {
    ClientResponse& response = *result.answer;
    answer.code = response.status;
    if (!response.ok())
      answer.error = read_api_error(response.status, response.body, response.header("Retry-After"));
    answer.body = std::move(response.body);
    return answer;
  }
  if (is_stopped || call.is_cancelled) {
    answer.error = cancelled();
  } else {
    answer.error.emplace();
    answer.error->reason = ApiReason::NotAnswered;
    answer.error->message = result.answer.error().message;
  }
  answer.error->may_be_done = result.sent;
  return answer;
}

std::optional<Duration> Api::Impl::next_try(Call& call, const ApiError& error) {
  if (is_stopped || call.is_cancelled) return std::nullopt;
  if (error.reason == ApiReason::Unauthorized) {
    keeper.refused();
    // Once more with what may be newer by then.
    if (!keeper.may_change() || std::exchange(call.was_unauthorized, true)) return std::nullopt;
    return seconds(1);
  }
  return wait_before_again(call.request, error, call.tries, options.retry, rng);
}

void Api::Impl::answered(const CallPtr& call, PoolResult result) {
  ApiAnswer answer = answer_of(*call, std::move(result));
  count(*call, answer.code);
  if (answer.error)
    if (const auto wait = next_try(*call, *answer.error)) return sleep(call, *wait);
  call->done(std::move(answer));
}

void Api::Impl::sleep(const CallPtr& call, Duration wait) {
  if (retries != nullptr) retries->with({call->request.verb}).add();
  sleeping.insert(call);
  call->timer = loop.after(wait, [this, call] {
    sleeping.erase(call);
    if (call->is_cancelled) return call->done({0, "", cancelled()});
    send(call);
  });
}

void Api::Impl::end_all() {
  is_stopped = true;
  keeper.stop();
  for (const CallPtr& call : std::exchange(sleeping, {})) {
    loop.cancel(call->timer);
    call->done({0, "", cancelled()});
  }
}

Result<std::unique_ptr<Api>> Api::create(EventLoop& loop, ClusterAccess access, ApiOptions options,
                                         Metrics* metrics) {
  auto identity = identify(access);
  if (!identity) return identity.error();
  HttpPoolOptions pool_options;
  pool_options.tls = identity->tls;
  pool_options.connections = options.connections;
  pool_options.for_ordinary = options.for_ordinary;
  pool_options.user_agent =
      options.user_agent.empty() ? "gpu-scheduler/" + std::string(kVersion) : options.user_agent;
  pool_options.kept_headers = {"Retry-After"};
  auto pool = HttpPool::create(loop, access.server, std::move(pool_options));
  if (!pool) return invalid(access.source + ": " + pool.error().message);
  auto impl =
      std::make_shared<Impl>(loop, std::move(access), std::move(*identity), std::move(options));
  impl->pool = std::move(*pool);
  if (metrics != nullptr) {
    impl->requests = &metrics->counters("kube_requests_total",
                                        "Requests to the Kubernetes API server; code 0: no answer",
                                        {"verb", "resource", "code"});
    impl->retries = &metrics->counters("kube_retries_total",
                                       "Requests that were sent again after a failure", {"verb"});
    impl->latency = &metrics->histograms(
        "kube_request_seconds",
        "Time until the API server answered, with the wait for a connection", {"verb"},
        {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30});
  }
  loop.post([impl] { impl->keeper.start(); });
  return std::unique_ptr<Api>(new Api(std::move(impl)));
}

Api::Api(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Api::~Api() { stop(); }

Api::CallPtr Api::call(ApiRequest request, Callback done) {
  auto call = std::make_shared<Call>();
  call->request = std::move(request);
  call->done = std::move(done);
  impl_->send(call);
  return call;
}

Api::CallPtr Api::watch(ApiRequest request, Piece piece, Callback done, Duration idle) {
  auto call = std::make_shared<Call>();
  call->request = std::move(request);
  call->request.again = Again::Never;
  call->done = std::move(done);
  call->started = EventLoop::Clock::now();
  auto ended = [impl = impl_, call](PoolResult result) {
    ApiAnswer answer = impl->answer_of(*call, std::move(result));
    impl->count(*call, answer.code);
    if (answer.error && answer.error->reason == ApiReason::Unauthorized) impl->keeper.refused();
    call->done(std::move(answer));
  };
  remember(call->in_pool, impl_->pool->stream(impl_->pool_request(*call), std::move(piece),
                                              std::move(ended), idle));
  return call;
}

void Api::cancel(const CallPtr& call) {
  call->is_cancelled = true;
  impl_->pool->cancel(call->in_pool);
  impl_->loop.post([impl = impl_, call] {
    if (impl->sleeping.erase(call) == 0) return;
    impl->loop.cancel(call->timer);
    call->done({0, "", cancelled()});
  });
}

void Api::stop() {
  impl_->loop.post([impl = impl_] { impl->end_all(); });
  impl_->pool->stop();
}

EventLoop& Api::loop() { return impl_->loop; }
PoolFigures Api::figures() const { return impl_->pool->figures(); }
const std::string& Api::name_space() const { return impl_->name_space; }

}  // namespace gs::kube
