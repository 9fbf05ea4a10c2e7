// Server: every part of the standalone service, in the order in which they stand on each other.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "model/settings.hpp"

namespace gs {

class Server {
 public:
  // Opens the store and every port, then serves.
  static Result<std::unique_ptr<Server>> start(const Settings& settings,
                                               const std::string& state_dir);
  ~Server();

  int http_port() const;
  int grpc_port() const;
  // For an agent on this machine: a socket in the state directory where its path is short enough,
  // which needs no certificate and stays the same when ports change.
  const std::string& agent_address() const;
  int metrics_port() const;  // 0: none
  Status reload(const Settings& settings);
  void stop();

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace gs
