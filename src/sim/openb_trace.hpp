// The openb benchmark (Weng et al., USENIX ATC 2023) as its folder has it: nodes, pod lists, orders
// of arrival, and the published figures.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "model/config.hpp"

namespace gs::openb {

struct TraceNode {
  std::string name;
  std::string model;
  std::int64_t cpu_milli = 0, memory_mib = 0;
  int gpus = 0;
};

struct Pod {
  std::int64_t cpu_milli = 0, memory_mib = 0;
  int gpus = 0;
  int milli = 0;                    // of each GPU
  std::vector<std::string> models;  // any of these; empty: any
  std::string spec;                 // `models` as the file has them
  std::int64_t gpu_milli() const { return std::int64_t{gpus} * milli; }
};

struct Workload {
  std::string name;
  std::vector<Pod> pods;  // by name
  // Per seed: numbers of pods in the order of arrival; numbers of nodes, the preferred first.
  std::map<int, std::vector<std::uint32_t>> arrivals;
  std::map<int, std::vector<std::uint32_t>> node_order;
  std::vector<TypicalTask> typical;  // the most frequent kinds that make up 95 % of the pods
};

// Per percent of the GPUs that demand has arrived for, 0..130; NaN where there is no figure.
constexpr int kBins = 131;
using Curve = std::array<double, kBins>;

struct Published {
  // By workload, policy (as ours are called) and seed.
  using Key = std::tuple<std::string, std::string, int>;
  std::map<Key, Curve> allocation;     // % of all GPUs
  std::map<Key, Curve> fragmentation;  // % of all GPUs
};

Result<std::vector<TraceNode>> read_nodes(const std::filesystem::path& folder);
Result<std::vector<std::string>> list_workloads(const std::filesystem::path& folder);
Result<Workload> read_workload(const std::filesystem::path& folder, const std::string& name);
// Empty where the folder has none.
Result<Published> read_published(const std::filesystem::path& folder);

}  // namespace gs::openb
