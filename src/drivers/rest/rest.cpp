// Routes, and the way of a request through them: who calls, how often, which route, what answer.
#include "drivers/rest/rest.hpp"

#include <chrono>

#include "base/hash.hpp"
#include "drivers/rest/impl.hpp"
#include "net/error_codes.hpp"

namespace gs {
namespace {

struct Route {
  const char* method;
  const char* pattern;
  void (Rest::Impl::*handler)(const CallPtr&);
  const char* parameters = "";  // of the query, separated by blanks
  bool open = false;            // without saying who calls
};

using I = Rest::Impl;
constexpr Route kRoutes[] = {
    {"GET", "/health", &I::health, "", true},
    {"GET", "/api/v1/health", &I::health, "", true},
    {"GET", "/ready", &I::ready, "", true},
    {"GET", "/api/v1/openapi.json", &I::openapi, "", true},
    {"GET", "/api/v1/cluster/status", &I::cluster_status},
    {"POST", "/api/v1/jobs", &I::submit_job, "dry_run"},
    {"GET", "/api/v1/jobs", &I::list_jobs,
     "tenant_id state name label array_id sort limit offset cursor"},
    {"POST", "/api/v1/jobs/batch", &I::submit_batch},
    {"GET", "/api/v1/jobs/{job_id}", &I::get_job},
    {"DELETE", "/api/v1/jobs/{job_id}", &I::cancel_job},
    {"PATCH", "/api/v1/jobs/{job_id}", &I::change_job},
    {"POST", "/api/v1/jobs/{job_id}/hold", &I::hold_job},
    {"POST", "/api/v1/jobs/{job_id}/release", &I::release_job},
    {"POST", "/api/v1/jobs/{job_id}/requeue", &I::requeue_job},
    {"GET", "/api/v1/jobs/{job_id}/explain", &I::explain_job},
    {"GET", "/api/v1/jobs/{job_id}/events", &I::job_events, "limit"},
    {"GET", "/api/v1/jobs/{job_id}/logs", &I::job_logs, "tail offset rank follow"},
    {"POST", "/api/v1/tenants", &I::create_tenant},
    {"GET", "/api/v1/tenants", &I::list_tenants},
    {"GET", "/api/v1/tenants/{tenant_id}", &I::get_tenant},
    {"PUT", "/api/v1/tenants/{tenant_id}", &I::update_tenant},
    {"PATCH", "/api/v1/tenants/{tenant_id}", &I::update_tenant},
    {"DELETE", "/api/v1/tenants/{tenant_id}", &I::delete_tenant},
    {"GET", "/api/v1/tenants/{tenant_id}/usage", &I::tenant_usage, "from to"},
    {"GET", "/api/v1/usage", &I::usage, "from to"},
    {"GET", "/api/v1/nodes", &I::list_nodes},
    {"GET", "/api/v1/nodes/{node}", &I::get_node},
    {"DELETE", "/api/v1/nodes/{node}", &I::delete_node},
    {"POST", "/api/v1/nodes/{node}/drain", &I::drain_node, "keep_jobs"},
    {"POST", "/api/v1/nodes/{node}/undrain", &I::undrain_node},
    {"GET", "/api/v1/gpus", &I::list_gpus},
    {"GET", "/api/v1/events", &I::events, "after tenant_id job_id type limit"},
};

// Whether the path is of this pattern; what stands for {names} is captured.
bool matches(std::string_view pattern, std::string_view path, std::vector<std::string>& captured) {
  captured.clear();
  while (!pattern.empty() && !path.empty()) {
    const std::string_view want = pattern.substr(1, pattern.find('/', 1) - 1);
    const std::string_view have = path.substr(1, path.find('/', 1) - 1);
    if (want.starts_with('{')) {
      if (have.empty()) return false;
      captured.emplace_back(have);
    } else if (want != have) {
      return false;
    }
    pattern.remove_prefix(std::min(pattern.size(), want.size() + 1));
    path.remove_prefix(std::min(path.size(), have.size() + 1));
  }
  return pattern.empty() && path.empty();
}

// A parameter that nobody reads is a typing error; it must not change what is done.
Status check_parameters(const Route& route, const HttpRequest& request) {
  const std::string known = std::string(" ") + route.parameters + " ";
  for (const auto& [key, value] : request.query)
    if (key.empty() || key.find(' ') != std::string::npos ||
        known.find(" " + key + " ") == std::string::npos)
      return invalid("'" + key + "' is not a parameter of this request");
  return ok_status();
}

Instant steady_now() {
  return Instant{std::chrono::duration_cast<std::chrono::milliseconds>(
                     std::chrono::steady_clock::now().time_since_epoch())
                     .count()};
}

// "http://localhost:3000" -> "localhost"
std::string_view host_of(std::string_view origin) {
  if (const std::size_t scheme = origin.find("://"); scheme != std::string_view::npos)
    origin.remove_prefix(scheme + 3);
  if (origin.starts_with('[')) return origin.substr(0, origin.find(']') + 1);
  return origin.substr(0, origin.find(':'));
}

bool is_this_machine(std::string_view host) {
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

// The origin of the page that asks, if pages from there may.
std::string allowed_origin(const RestOptions& options, std::string_view origin) {
  if (!options.cors || origin.empty()) return {};
  std::string_view list = options.cors_origins;
  if (list == "*" && options.only_own_pages)
    return is_this_machine(host_of(origin)) ? std::string(origin) : std::string{};
  if (list == "*") return "*";
  while (!list.empty()) {
    std::string_view one = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), one.size() + 1));
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (one == origin) return std::string(origin);
  }
  return {};
}

// Whether a header such as `"a", W/"b"` or `*` names this tag.
bool names_tag(std::string_view header, std::string_view tag) {
  while (!header.empty()) {
    std::string_view one = header.substr(0, header.find(','));
    header.remove_prefix(std::min(header.size(), one.size() + 1));
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (one.starts_with("W/")) one.remove_prefix(2);
    if (one == tag || one == "*") return true;
  }
  return false;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> rest_routes() {
  std::vector<std::pair<std::string, std::string>> routes;
  for (const Route& route : kRoutes) routes.emplace_back(route.method, route.pattern);
  return routes;
}

std::set<std::string> rest_parameters(std::string_view method, std::string_view pattern) {
  std::set<std::string> names;
  for (const Route& route : kRoutes) {
    if (method != route.method || pattern != route.pattern) continue;
    std::string_view rest = route.parameters;
    while (!rest.empty()) {
      const std::string_view word = rest.substr(0, rest.find(' '));
      names.emplace(word);
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    }
  }
  return names;
}

Rest::Rest(RestParts parts, RestOptions options)
    : impl_(std::make_shared<Impl>(std::move(parts), std::move(options))) {
  Metrics& metrics = impl_->parts.metrics;
  impl_->requests = &metrics.counters("http_requests_total", "Requests by route, method and status",
                                      {"route", "method", "status"});
}

Rest::~Rest() { stop(); }

void Rest::stop() { impl_->readers.join(); }

void Rest::handle(std::shared_ptr<Exchange> exchange) {
  auto call = std::make_shared<Call>();
  call->exchange = std::move(exchange);
  const HttpRequest& request = call->request();
  const std::string_view method = request.method();
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  const Route* found = nullptr;
  std::string allowed;
  for (const Route& route : kRoutes) {
    if (!matches(route.pattern, request.path, call->captured)) continue;
    allowed.append(allowed.empty() ? "" : ", ").append(route.method);
    if (wanted == route.method) {
      found = &route;
      break;
    }
  }
  if (method == "OPTIONS" && !allowed.empty()) {
    HttpResponse response;
    response.status = 204;
    response.content_type.clear();
    response.headers = {{"Allow", allowed + ", OPTIONS"},
                        {"Access-Control-Allow-Methods", allowed + ", OPTIONS"},
                        {"Access-Control-Allow-Headers",
                         "Content-Type, Authorization, X-API-Key, Idempotency-Key, If-None-Match"},
                        {"Access-Control-Max-Age", "600"}};
    return impl_->finish(*call, std::move(response));
  }
  if (found == nullptr && !allowed.empty()) {
    HttpResponse response;
    response.status = 405;
    response.headers = {{"Allow", allowed + ", OPTIONS"}};
    response.body = Json{{"error", "this path takes " + allowed}}.dump();
    return impl_->finish(*call, std::move(response));
  }
  if (found == nullptr) return impl_->fail(*call, not_found("there is nothing at " + request.path));
  call->route = found->pattern;
  // Also a name that a stranger's DNS points to this machine is a stranger's.
  const std::string_view origin = request.header("Origin");
  if (impl_->options.only_own_pages &&
      ((!origin.empty() && allowed_origin(impl_->options, origin).empty()) ||
       (!origin.empty() && !is_this_machine(host_of(request.header("Host"))))))
    return impl_->fail(*call, Error{ErrorCode::PermissionDenied,
                                    "pages of " + std::string(origin) +
                                        " may not use this server: set api.cors_origins"});
  if (!found->open) {
    Result<Caller> caller =
        impl_->parts.identify(request.header("Authorization"), request.header("X-API-Key"));
    if (!caller) return impl_->fail(*call, caller.error());
    call->caller = std::move(*caller);
    if (impl_->options.limit_rate) {
      const Duration wait = impl_->parts.limiter.take(call->caller.name, steady_now());
      if (wait.ms > 0)
        return impl_->fail(
            *call, Error{ErrorCode::QueueFull, "too many requests; try again in " +
                                                   std::to_string((wait.ms + 999) / 1000) + " s"});
    }
    if (Status s = check_parameters(*found, request); !s) return impl_->fail(*call, s.error());
  }
  (impl_.get()->*found->handler)(call);
}

// ---------------------------------------------------------------- answering

void Rest::Impl::note(const Call& call, int status) {
  const std::string_view method = call.request().method().substr(0, 8);
  requests->with({call.route, method, std::to_string(status)}).add();
}

void Rest::Impl::allow_origin(const Call& call, HttpHeaders& headers) const {
  std::string origin = allowed_origin(options, call.request().header("Origin"));
  if (origin.empty()) return;
  headers.emplace_back("Access-Control-Allow-Origin", std::move(origin));
  headers.emplace_back("Vary", "Origin");
  headers.emplace_back("Access-Control-Expose-Headers", "ETag, Retry-After");
}

void Rest::Impl::finish(const Call& call, HttpResponse response) {
  allow_origin(call, response.headers);
  note(call, response.status);
  call.exchange->answer(std::move(response));
}

void Rest::Impl::finish(const Call& call, HttpStream stream) {
  allow_origin(call, stream.headers);
  note(call, 200);
  call.exchange->answer(std::move(stream));
}

void Rest::Impl::finish(const Call& call, WebSocketSession session) {
  note(call, 101);
  call.exchange->answer(std::move(session));
}

void Rest::Impl::reply_text(const Call& call, int status, std::string body) {
  HttpResponse response;
  response.status = status;
  response.body = std::move(body);
  finish(call, std::move(response));
}

void Rest::Impl::reply(const Call& call, int status, const Json& body) {
  reply_text(call, status, body.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void Rest::Impl::reply_cached(const Call& call, const Json& body) {
  HttpResponse response;
  response.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::string tag =
      "\"" + std::to_string(Hash{}.add(std::string_view(response.body)).value()) + "\"";
  response.headers = {{"ETag", tag}, {"Cache-Control", "no-cache"}};
  if (names_tag(call.request().header("If-None-Match"), tag)) {
    response.status = 304;
    response.body.clear();
    response.content_type.clear();
  }
  finish(call, std::move(response));
}

void Rest::Impl::fail(const Call& call, const Error& error) {
  HttpResponse response;
  response.status = outside_code(error.code).http;
  Json body{{"error", error.message}};
  response.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (response.status == 401)
    response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"gpu-scheduler\"");
  if (response.status == 429 || response.status == 503)
    response.headers.emplace_back("Retry-After", "1");
  finish(call, std::move(response));
}

// ---------------------------------------------------------------- the service itself

void Rest::Impl::health(const CallPtr& call) {
  read(
      call, [](Reader& reader) { return reader.ping(); },
      [self = shared_from_this(), call](const Done&) {
        self->reply(*call, 200, Json{{"status", "healthy"}, {"version", self->options.version}});
      });
}

void Rest::Impl::ready(const CallPtr& call) {
  if (!parts.service.leads())
    return fail(*call, Error{ErrorCode::Unavailable, "this server does not lead"});
  reply(*call, 200, Json{{"status", "ready"}});
}

}  // namespace gs
