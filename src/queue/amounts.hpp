// Amounts: the three resources in which shares are counted, as an array that rules can walk.
//
// kUnlimited is larger than every real amount and stays so when amounts are added to it once, so
// plain comparison does the right thing.
#pragma once

#include <array>
#include <cstdint>

#include "cluster/node_state.hpp"
#include "model/tenant.hpp"

namespace gs {

inline constexpr int kShareGpu = 0, kShareCpu = 1, kShareMemory = 2, kShareCount = 3;
using Amounts = std::array<std::int64_t, kShareCount>;

constexpr Amounts amounts(const Usage& u) { return {u.gpu_milli, u.cpu_milli, u.memory_bytes}; }
constexpr Amounts amounts(const Share& s) { return {s.gpu_milli, s.cpu_milli, s.memory_bytes}; }
inline Amounts limits(const Quota& q) { return {q.gpu_milli, q.cpu_milli, q.memory_bytes}; }

constexpr Amounts operator+(const Amounts& a, const Amounts& b) {
  return {a[0] + b[0], a[1] + b[1], a[2] + b[2]};
}
constexpr Amounts operator-(const Amounts& a, const Amounts& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
// At most `b` in every resource.
constexpr bool within(const Amounts& a, const Amounts& b) {
  return a[0] <= b[0] && a[1] <= b[1] && a[2] <= b[2];
}

}  // namespace gs
