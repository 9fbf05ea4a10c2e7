// What the service tells agents and hears from them. Orders are repeated until they are reported
// on, so sending one twice, or into the void, does no harm.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/time.hpp"
#include "model/node.hpp"
#include "model/process.hpp"
#include "model/spec.hpp"

namespace gs {

struct StartOrder {
  Process process;
  std::shared_ptr<const JobSpec> spec;
  std::string job;
  int attempt = 1;
  int world_size = 1;
  std::string master_addr;
  int master_port = 0;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mb = 0;
  Duration max_runtime;  // 0: no limit
  Duration grace;
};
struct StopOrder {
  std::string allocation;
  Duration grace;
  std::string reason;
};
struct ForgetOrder {  // its end is recorded
  std::string allocation;
};
using AgentOrder = std::variant<StartOrder, StopOrder, ForgetOrder>;

struct Outgoing {
  std::string node;
  AgentOrder order;
};

struct TaskReport {
  enum class State : std::uint8_t { Running, Exited, Refused };
  std::string allocation;
  State state = State::Running;
  int exit_code = 0;
  int signal = 0;
  bool out_of_memory = false;
  bool timed_out = false;
  bool stopped = false;     // because it was told to
  bool lease_lost = false;  // because the scheduler was out of reach
  std::string message;
  std::vector<int> gpus;  // that it was given, by index
  Duration ended_ago{};   // it may have ended while nobody was there to hear of it
};

struct GpuReport {
  int index = 0;
  Health health = Health::Healthy;
  int temperature_c = 0;
  double utilization = 0;  // percent
  double power_w = 0;
  std::int64_t memory_used_mb = 0;
  int error_count = 0;
  std::string last_error;
};

struct NodeReport {
  std::vector<GpuReport> gpus;
  double cpu_utilization = 0, memory_utilization = 0;  // percent
};

// Takes orders to agents; never blocks. What goes to an agent that is out of touch is dropped.
class Fleet {
 public:
  virtual ~Fleet() = default;
  virtual void send(const Outgoing& order) = 0;
};

}  // namespace gs
