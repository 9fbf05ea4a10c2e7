// A client of a Kubernetes API server: many calls in flight, tried again where that is safe, with
// credentials that stay fresh.
//
// call(), watch() and cancel() may be used from any thread. Callbacks come on the loop's thread,
// each exactly once, also when it is stopped; stop() before the loop is finished, and the loop
// outlives the Api.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "drivers/kubernetes/api_error.hpp"
#include "drivers/kubernetes/api_request.hpp"
#include "drivers/kubernetes/credentials.hpp"
#include "net/event_loop.hpp"
#include "net/http_pool.hpp"
#include "net/metrics.hpp"

namespace gs::kube {

struct ApiOptions {
  std::size_t connections = 64;   // half as many bind a tenth fewer pods a second with leases
  std::size_t for_ordinary = 48;  // of them; the rest is for leases and bindings
  RetryPolicy retry;
  std::string user_agent;  // empty: gpu-scheduler/VERSION
};

struct ApiAnswer {
  int code = 0;
  std::string body;
  std::optional<ApiError> error;

  bool ok() const { return !error; }
};

class Api {
 public:
  struct Call;  // to cancel it by
  using CallPtr = std::shared_ptr<Call>;
  using Callback = std::function<void(ApiAnswer)>;
  using Piece = std::function<void(std::string_view)>;

  // Reads the credentials, which may run an exec plugin; asks the server nothing yet. `metrics`
  // may be null.
  static Result<std::unique_ptr<Api>> create(EventLoop& loop, ClusterAccess access,
                                             ApiOptions options, Metrics* metrics);
  ~Api();
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  CallPtr call(ApiRequest request, Callback done);
  // Never tried again by itself. `idle`: ends when nothing has come for so long.
  CallPtr watch(ApiRequest request, Piece piece, Callback done, Duration idle);
  void cancel(const CallPtr& call);

  void stop();

  EventLoop& loop();
  PoolFigures figures() const;
  const std::string& name_space() const;  // of the context, or of the pod that we are

 private:
  struct Impl;
  explicit Api(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace gs::kube
