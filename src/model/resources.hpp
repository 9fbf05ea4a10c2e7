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

inline constexpr std::int64_t kMiB = 1024 * 1024;
inline constexpr int kWholeGpu = 1000;  // milli-GPU

}  // namespace gs
