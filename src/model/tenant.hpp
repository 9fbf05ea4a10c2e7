// A Tenant owns quota and weight. Tenants form a tree; jobs belong to leaves or inner tenants
// alike.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace gs {

// Of weights only the proportions count; products of them have to fit into 128 bits.
inline constexpr std::int64_t kMaxWeight = 1'000'000'000'000;
inline constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max() / 4;

enum class Tier : std::uint8_t { Low, Medium, High, Critical };

// The resources in which shares are counted.
struct Share {
  std::int64_t gpu_milli = 0;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
  bool operator==(const Share&) const = default;
};
inline constexpr Share kUnlimitedShare{kUnlimited, kUnlimited, kUnlimited};

// Hard caps; kUnlimited where there is none.
struct Quota {
  std::int64_t gpu_milli = kUnlimited;
  std::int64_t gpu_memory_mib = kUnlimited;
  std::int64_t cpu_milli = kUnlimited;
  std::int64_t memory_bytes = kUnlimited;
  std::int64_t running_jobs = kUnlimited;                           // max_concurrent_jobs
  std::vector<std::pair<std::string, std::int64_t>> gpus_by_model;  // model, whole GPUs
  bool operator==(const Quota&) const = default;
};

struct Tenant {
  std::string id;
  std::string name;
  std::string parent;  // empty: top
  int priority = 100;  // higher is served first from what is left over
  Tier tier = Tier::Medium;
  // Nobody takes this away; kUnlimited: as much as there is. Zero: lives on what is left over.
  Share guaranteed{0, kUnlimited, kUnlimited};
  Quota limit;
  std::int64_t over_quota_weight = 1;  // share of what is left over after all guarantees
  bool allow_preemption = true;        // its jobs may be evicted for others
  bool can_preempt_others = true;      // its jobs may evict others
  std::int64_t max_queue = kUnlimited;
  int created_order = 0;  // ties in every order end here, then in the id
};

Status validate(const Tenant& tenant);

}  // namespace gs
