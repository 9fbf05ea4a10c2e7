#include "cluster/layout.hpp"

#include <algorithm>
#include <utility>

namespace gs {
namespace {

template <typename Key>
std::vector<std::uint8_t> dense(const std::vector<Gpu>& gpus, Key key) {
  std::vector<decltype(key(gpus[0]))> seen;
  std::vector<std::uint8_t> numbers;
  for (const Gpu& gpu : gpus) {
    const auto value = key(gpu);
    const auto it = std::find(seen.begin(), seen.end(), value);
    numbers.push_back(static_cast<std::uint8_t>(it - seen.begin()));
    if (it == seen.end()) seen.push_back(value);
  }
  return numbers;
}

// A GPU that is in no island is connected with nobody: it has a number of its own.
std::vector<std::uint8_t> island_numbers(const std::vector<Gpu>& gpus) {
  return dense(gpus, [](const Gpu& gpu) {
    return std::pair(gpu.island, gpu.island.empty() ? gpu.index : -1);
  });
}

}  // namespace

GpuMask Layout::of_island(int number) const {
  GpuMask mask = 0;
  for (int i = 0; i < count; ++i)
    if (island[static_cast<std::size_t>(i)] == number) mask |= gpu_bit(i);
  return mask;
}

GpuMask Layout::of_model(std::uint32_t id) const {
  GpuMask mask = 0;
  for (int i = 0; i < count; ++i)
    if (model[static_cast<std::size_t>(i)] == id) mask |= gpu_bit(i);
  return mask;
}

Layout layout_of(const Node& node, Names& models) {
  Layout layout;
  const auto& gpus = node.gpus;
  layout.count = static_cast<int>(gpus.size());
  if (gpus.empty()) return layout;
  layout.island = island_numbers(gpus);
  layout.numa = dense(gpus, [](const Gpu& gpu) { return gpu.numa; });
  layout.islands = 1 + *std::max_element(layout.island.begin(), layout.island.end());
  for (const Gpu& gpu : gpus) {
    layout.model.push_back(models.intern(gpu.model));
    layout.memory_mib.push_back(gpu.memory_mib);
  }
  layout.bandwidth = node.peer_bandwidth_gbps;
  if (layout.bandwidth.empty())
    for (std::size_t i = 0; i < gpus.size(); ++i)
      for (std::size_t j = 0; j < gpus.size(); ++j)
        layout.bandwidth.push_back(layout.island[i] == layout.island[j]
                                       ? std::min(gpus[i].bandwidth_gbps, gpus[j].bandwidth_gbps)
                                       : std::min({kPcieGBps, std::max(gpus[i].bandwidth_gbps, 1),
                                                   std::max(gpus[j].bandwidth_gbps, 1)}));
  return layout;
}

}  // namespace gs
