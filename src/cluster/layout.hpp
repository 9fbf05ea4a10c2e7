// Layout: what is fixed about the GPUs of a node. Machines bought together share one Layout, and
// with it every answer about their devices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/gpu_mask.hpp"
#include "cluster/names.hpp"
#include "model/node.hpp"

namespace gs {

// Between GPUs of different islands where no matrix is known: a PCIe 4.0 x16 link, both directions
// together, as all bandwidths.
inline constexpr int kPcieGBps = 64;

struct Layout {
  int count = 0;
  std::vector<std::uint32_t> model;      // interned, per GPU
  std::vector<std::int64_t> memory_mib;  // per GPU
  std::vector<std::uint8_t> island;      // dense island number, per GPU; none is its own
  std::vector<std::uint8_t> numa;        // dense NUMA number, per GPU
  std::vector<int> bandwidth;            // GB/s between i and j at [i * count + j]
  int islands = 0;
  bool operator==(const Layout&) const = default;

  int between(int a, int b) const { return bandwidth[static_cast<std::size_t>(a * count + b)]; }
  GpuMask of_island(int number) const;
  GpuMask of_model(std::uint32_t id) const;
};

Layout layout_of(const Node& node, Names& models);

}  // namespace gs
