// Demand: what kinds of tasks come, learned from those that have come.
//
// Two things are kept: how often each kind of task was submitted, and the last kWindow of them in
// order. From time to time (often in the beginning, seldom later) both become the picture by which
// places are judged: batches of recent tasks, and the share of each kind in the GPUs asked for. The
// picture stands still in between, so that every answer drawn from it can be kept.
//
// Nothing here depends on time or chance: the same submissions give the same picture. The state is
// a plain value, and part of the engine's snapshot.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cluster/shapes.hpp"

namespace gs {

// A kind of task: all requests that look the same to the GPUs of a node.
struct DemandKind {
  std::int64_t cpu_milli = 0;
  int gpus = 0;   // 0: needs none
  int milli = 0;  // of each GPU; 0: follows from memory_mib
  std::int64_t memory_mib = 0;
  std::int64_t min_memory_mib = 0;
  std::vector<std::string> models;  // sorted; empty: any
  auto operator<=>(const DemandKind&) const = default;
};

struct DemandCount {
  DemandKind kind;
  std::int64_t tasks = 0;
};

// A kind as the picture has it.
struct DemandShare {
  DemandKind kind;
  std::int64_t tasks = 0;  // including those that are only supposed to come
  double weight = 0;       // share in the GPUs asked for
  double price = 0;        // of one more place for it, in GPU milli; set by who knows the cluster
};

struct DemandState {
  std::vector<DemandCount> counts;    // in the order of first appearance
  std::vector<std::uint32_t> recent;  // numbers in `counts`, oldest first
  std::uint64_t seen = 0;             // tasks, each group at most kOfOneGroup
  std::uint64_t learn_at = 1;         // in terms of `seen`
  std::uint64_t price_at = 0;
  // --- the picture ---
  std::vector<DemandShare> shares;  // of kinds with GPUs
  std::int64_t tasks_without_gpu = 0;
  std::vector<std::uint32_t> batches;  // numbers in `shares`; entry i belongs to batch i % kBatches
};

class Demand {
 public:
  static constexpr int kBatches = 16;
  static constexpr int kBatchSize = 60;
  static constexpr int kWindow = kBatches * kBatchSize;
  // A gang counts in full, but is no more than this many of the recent tasks.
  static constexpr int kOfOneGroup = 16;

  void observe(const Shape& shape, ShapeId id, int tasks);
  bool learn_due() const { return state_.seen >= state_.learn_at; }
  // Draws the picture anew. The next one is due after at least `every` more tasks.
  void learn(std::uint64_t every);

  bool price_due() const { return state_.seen >= state_.price_at; }
  // False: nearly as they were, so they stay as they were. Due again after `every` more tasks.
  bool set_prices(const std::vector<double>& prices, std::uint64_t every);

  const DemandState& state() const { return state_; }
  void set_state(DemandState state);
  std::uint64_t hash() const;

 private:
  std::uint32_t number_of(const DemandKind& kind);
  void fill_batches();
  void fade();

  DemandState state_;
  std::map<DemandKind, std::uint32_t> numbers_;  // of `counts`
  std::vector<std::uint32_t> by_shape_;          // number + 1; 0: not met yet
};

}  // namespace gs
