// Figures: what the service tells about itself in numbers. Its one writer keeps them up to date
// and publishes a copy after each turn; a copy never changes, so readers need no lock.
//
// Totals only grow, from the start of the process on.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "service/records.hpp"

namespace gs {

// How values are spread: counts below bounds that never change.
struct Distribution {
  Distribution() = default;
  explicit Distribution(std::vector<double> upper_bounds)
      : bounds(std::move(upper_bounds)), counts(bounds.size() + 1) {}

  void observe(double value) {
    const auto at = std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin();
    if (counts.size() != bounds.size() + 1) counts.resize(bounds.size() + 1);
    ++counts[static_cast<std::size_t>(at)];
    sum += value;
  }

  std::vector<double> bounds;         // upper ones, inclusive, rising
  std::vector<std::uint64_t> counts;  // one more than bounds: the last is for what is above all
  double sum = 0;
};

// Seconds: from 100 microseconds to 10 s, and from a second to a week.
inline std::vector<double> short_times() {
  return {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
          0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};
}
inline std::vector<double> long_times() {
  return {1, 5, 15, 60, 300, 900, 3600, 14'400, 43'200, 86'400, 259'200, 604'800};
}

struct GpuFigures {
  int index = 0;
  std::string model;
  bool healthy = true;
  bool available = true;  // healthy, on a node that takes work, and nothing runs on it
  double utilization_percent = 0;
  double temperature_c = 0;  // 0: not known
  double power_watts = 0;    // 0: not known
  std::int64_t memory_used_mb = 0;
  std::int64_t memory_total_mb = 0;
};

struct NodeFigures {
  std::string name;
  bool online = false;
  bool cordoned = false;
  Duration agent_lag;  // since its last heartbeat
  std::vector<GpuFigures> gpus;
};

struct TenantFigures {
  std::string id;
  std::int64_t gpu_milli = 0;  // in use
  std::int64_t running = 0, waiting = 0;
  std::int64_t gpu_ms = 0;  // used over all time
};

inline constexpr std::size_t kRunStates = 7;

struct Figures {
  Instant time;  // when they were published
  std::uint64_t turn = 0;
  bool leader = false;

  std::array<std::uint64_t, kRunStates> jobs_total{};  // times that a job came into the state
  std::array<std::int64_t, kRunStates> jobs{};         // that are in the state now
  std::int64_t queue_size = 0;
  std::uint64_t preemptions_total = 0;
  std::map<std::string, std::uint64_t> rejections_total;  // by reason, e.g. "quota", "queue_full"

  Distribution scheduling_latency{short_times()};  // of a cycle
  Distribution queue_wait{long_times()};           // from submission to the first GPUs
  std::map<std::string, Distribution> phases;      // parts of a turn, by name
  Distribution commit{short_times()};
  std::uint64_t commit_failures_total = 0;

  std::int64_t inbox_depth = 0, inbox_capacity = 0;
  std::vector<NodeFigures> nodes;      // by name
  std::vector<TenantFigures> tenants;  // by id
};

}  // namespace gs
