// FreeState: what is left of a node, as far as it decides what else fits there: CPU, the GPUs that
// are whole, and the parts of GPUs that are left. Two nodes with the same FreeState are equally
// good for everything that may come, so answers about one are kept for the other.
//
// Invariants: part[0..parts) descends, each in 1..999; beyond, zero. At most kMaxParts parts are
// kept, the largest: a node with more GPUs in use by sharing tasks is judged by those.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "cluster/cluster.hpp"

namespace gs {

struct FreeState {
  static constexpr int kMaxParts = 16;
  std::int64_t cpu_milli = 0;
  std::uint32_t kind = 0;  // which GPUs these are: a number of Kinds
  std::uint16_t whole = 0;
  std::uint16_t parts = 0;
  std::array<std::uint16_t, kMaxParts> part{};
  bool operator==(const FreeState&) const = default;

  void add_part(int milli);
  void remove_part(int milli);  // one of this size, if it is there
  // A task takes `milli` of a GPU of which `free` is left.
  void use_part(int free, int milli);
  std::int64_t gpu_milli() const;
};

// Layouts as small numbers, in the order in which they are met. Never part of a decision.
class Kinds {
 public:
  std::uint32_t of(const Layout* layout);
  const Layout& at(std::uint32_t kind) const { return *layouts_[kind]; }
  std::size_t size() const { return layouts_.size(); }

 private:
  std::vector<const Layout*> layouts_;
  std::unordered_map<const Layout*, std::uint32_t> numbers_;
  const Layout* last_ = nullptr;
  std::uint32_t last_kind_ = 0;
};

// What of this GPU a task may still take, in milli; its memory counts as well as its compute.
int free_part(const NodeState& node, int gpu, View view);
FreeState free_state(const NodeState& node, View view, std::uint32_t kind);
// The shape's part of this GPU of the node goes; returns how much that is, in milli.
int use_gpu(const NodeState& node, const Shape& shape, View view, int gpu, FreeState& state);

// FreeStates as small numbers, so that whoever keeps answers about them needs only a vector.
class FreeStates {
 public:
  std::uint32_t intern(const FreeState& state);
  const FreeState& at(std::uint32_t id) const { return states_[id]; }
  std::size_t size() const { return states_.size(); }
  void clear();

 private:
  void grow();
  std::vector<FreeState> states_;
  std::vector<std::uint32_t> slots_;  // open addressing; a power of two; id + 1, 0: empty
};

}  // namespace gs
