// Agents: the scheduler's end of AgentService. Reports of agents become work for the Service; its
// orders go down the stream of the agent they are for. One stream an agent: a newer one replaces
// an older one.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/result.hpp"
#include "service/access.hpp"
#include "service/fleet.hpp"
#include "service/logs.hpp"
#include "service/service.hpp"

namespace grpc {
class Service;
}

namespace gs {

struct AgentsOptions {
  Duration lease = seconds(60);
  Duration heartbeat = seconds(5);
};

class Agents : public Fleet, public Logs {
 public:
  explicit Agents(AgentsOptions options);
  ~Agents() override;

  // The service that its reports go to, and who agents must prove to be. Before any of them calls.
  void connect(Service& service, std::function<Result<Caller>(std::string_view)> identify);
  grpc::Service& rpc();
  void stop();  // ends all streams

  void send(const Outgoing& order) override;
  std::unique_ptr<LogReading> read(const LogAsk& ask, std::function<void(LogPiece)> piece) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gs
