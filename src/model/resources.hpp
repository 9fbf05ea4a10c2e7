// Quantities of what a node has and a task needs besides GPUs. Integers only: milli-cores, bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gs {

struct NamedAmount {
  std::string name;
  std::int64_t amount = 0;
  bool operator==(const NamedAmount&) const = default;
};

struct Resources {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
  std::vector<NamedAmount> named;  // further resources, e.g. "pods", "ephemeral-storage"; any order
  bool operator==(const Resources&) const = default;
};

// Nobody has or asks for more of anything: so sums over any cluster, and a thousand times an
// amount, stay well within 64 bits.
inline constexpr std::int64_t kMaxAmount = 100'000'000'000'000;
constexpr bool is_amount(std::int64_t amount) { return amount >= 0 && amount <= kMaxAmount; }
inline constexpr const char* kMustBeAmount = " must not be negative nor above 100000000000000";

inline constexpr std::int64_t kMiB = 1024 * 1024;
inline constexpr int kWholeGpu = 1000;  // milli-GPU

}  // namespace gs
