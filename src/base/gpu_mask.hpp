// A set of GPU indexes of one node, as 64 bits.
#pragma once

#include <bit>
#include <cstdint>

namespace gs {

using GpuMask = std::uint64_t;
inline constexpr int kMaxGpusPerNode = 64;

constexpr GpuMask gpu_bit(int gpu) { return GpuMask{1} << gpu; }
constexpr GpuMask first_gpus(int count) {
  return count >= 64 ? ~GpuMask{0} : (GpuMask{1} << count) - 1;
}
constexpr int gpu_count(GpuMask mask) { return std::popcount(mask); }

template <typename Visit>
void for_each_gpu(GpuMask mask, Visit&& visit) {
  for (; mask != 0; mask &= mask - 1) visit(std::countr_zero(mask));
}

}  // namespace gs
