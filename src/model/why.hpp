// Why a job waits, will never run, or broke: structured for programs, one sentence for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace gs {

enum class Verdict : std::uint8_t { NotNow, Never, Broken };

// The constraint that decides. One word each; the word is what users see and filter by.
enum class Constraint : std::uint8_t {
  None,
  Capacity,
  GpuModel,
  GpuMemory,
  Mig,
  Devices,
  Bandwidth,
  Selector,
  Affinity,
  Taint,
  NodeNotReady,
  NodeName,
  Fabric,
  Network,
  Topology,
  LeafLimit,
  Quota,
  FairShare,
  QueueFull,
  GangIncomplete,
  Held,
  Reservation,
  Order,
  Timeout,
  Evicted,
  Invalid,
};
const char* to_string(Constraint constraint);

struct FilterCount {
  Constraint filter = Constraint::None;
  int nodes = 0;
};

struct Candidate {
  std::string node;  // or domain
  std::int64_t has = 0;
  std::int64_t needs = 0;
  std::string of;  // "free GPUs", "GPUs in one island", ...
};

struct QuotaState {
  std::string tenant;
  std::string resource;
  std::int64_t requested = 0, limit = 0, current = 0;
};

struct Reserved {
  Instant start;
  std::vector<std::string> nodes;
};

// What would have to go elsewhere so that the job fits.
struct WouldMove {
  std::int64_t tasks = 0, gpus = 0;  // to be moved
  std::vector<std::string> nodes;    // off these
  std::int64_t free_elsewhere = 0;   // GPUs
};

struct Why {
  Verdict verdict = Verdict::NotNow;
  Constraint constraint = Constraint::None;
  std::vector<FilterCount> filters;  // how many nodes each filter took away, in filter order
  std::optional<Candidate> best;
  std::optional<QuotaState> quota;
  std::optional<Reserved> reservation;
  std::optional<WouldMove> moves;
  std::string sentence;
};

// How a placed job's node was chosen: each part weighted, the sum, and where it came in.
struct ScoreCard {
  double resource_availability = 0, topology_alignment = 0, domain_utilization = 0,
         historical_performance = 0, affinity = 0, total = 0;
};

}  // namespace gs
