// REST: the HTTP API under /api/v1. Writes go to the Service and are answered when they are
// durable; reads go to the Reader, on threads of their own.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "net/http.hpp"
#include "net/metrics.hpp"
#include "net/rate_limit.hpp"
#include "service/access.hpp"
#include "service/logs.hpp"
#include "service/service.hpp"

namespace gs {

struct RestOptions {
  int default_priority = 100;
  bool cors = true;
  std::string cors_origins = "*";
  bool limit_rate = false;  // only where callers say who they are
  // Nobody says who they are: then pages of other sites must not act for the person at the browser.
  bool only_own_pages = false;
  std::size_t max_batch = 10'000;
  int reader_threads = 2;
  std::string version;
};

// What it stands on; all of it outlives it.
struct RestParts {
  Service& service;
  Store& store;  // for the writer's thread: idempotency keys
  Reader& reader;
  Logs& logs;
  RateLimiter& limiter;
  Metrics& metrics;
  // From the headers Authorization and X-API-Key.
  std::function<Result<Caller>(std::string_view, std::string_view)> identify;
  Service::Clock clock;
};

class Rest {
 public:
  Rest(RestParts parts, RestOptions options);
  ~Rest();
  Rest(const Rest&) = delete;
  Rest& operator=(const Rest&) = delete;

  void handle(std::shared_ptr<Exchange> exchange);
  // Answers what is being read; nothing is answered after that. Before the server goes away.
  void stop();

  struct Impl;  // its routes, in files of their own

 private:
  std::shared_ptr<Impl> impl_;
};

// "POST /api/v1/jobs", ...: every route, in the order in which they are tried.
std::vector<std::pair<std::string, std::string>> rest_routes();
// Names of what the query of a route may have.
std::set<std::string> rest_parameters(std::string_view method, std::string_view pattern);

}  // namespace gs
