// NodeReporter: keeps the GpuNodeStatus of one node as its agent last described it.
//
// Written by server-side apply when something changed, and otherwise as a heartbeat now and then.
// The object belongs to the Node and goes with it. While the API server is away, or refuses, it is
// tried again with growing pauses, always with the newest description.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "drivers/kubernetes/api.hpp"

namespace gs::kube {

struct GpuNodeStatus;

inline constexpr const char* kAgentManager = "gpu-scheduler-agent";  // of the fields that we own

struct NodeReporterOptions {
  std::string node;
  Duration heartbeat = seconds(30);
  Duration stale = seconds(20);  // a description older than this is not repeated
  Duration first_wait = milliseconds(500), longest_wait = seconds(15);  // between failures
};

struct NodeReport {
  std::optional<Instant> written;  // when the last one was
  std::string problem;             // why the newest could not be written; empty: it could
  std::uint64_t changes = 0, heartbeats = 0, failures = 0;
};

// Whether `now` says something that is worth a write before the next heartbeat. Of temperatures
// only steps of kTemperatureStepC, and the crossing of kHotC by more than a flicker.
bool is_news(const GpuNodeStatus& written, const GpuNodeStatus& now);
inline constexpr int kTemperatureStepC = 5;
inline constexpr int kHotC = 85, kFlickerC = 2;

class NodeReporter {
 public:
  using Clock = std::function<Instant()>;  // of heartbeatTime

  NodeReporter(Api& api, NodeReporterOptions options, Clock clock);
  ~NodeReporter();
  NodeReporter(const NodeReporter&) = delete;
  NodeReporter& operator=(const NodeReporter&) = delete;

  // From any thread. The first one begins it.
  void offer(GpuNodeStatus now);
  NodeReport report() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace gs::kube
