// SchedulerService over gRPC: the same service as REST, in messages.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "service/access.hpp"
#include "service/service.hpp"

namespace grpc {
class Service;
}

namespace gs {

struct SchedulerRpcParts {
  Service& service;
  Store& store;
  Reader& reader;
  // From the metadata `authorization` and `x-api-key`.
  std::function<Result<Caller>(std::string_view, std::string_view)> identify;
  Service::Clock clock;
  // Metrics whose names begin with this.
  std::function<std::map<std::string, double>(std::string_view)> metrics;
  int default_priority = 100;
};

class SchedulerRpc {
 public:
  explicit SchedulerRpc(SchedulerRpcParts parts);
  ~SchedulerRpc();
  grpc::Service& rpc();
  void stop();  // ends the streams

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gs
