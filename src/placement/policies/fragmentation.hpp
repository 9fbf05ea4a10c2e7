// Fragmentation of a node, as defined by Weng et al., "Beware of Fragmentation", USENIX ATC 2023:
// what of its free GPU the typical tasks cannot use, in GPU milli, on average over their shares.
//
// For one typical task that is all of it if the task needs no GPU, may not run there or does not
// fit; else the GPUs with too little left.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/config.hpp"
#include "placement/free_state.hpp"
#include "placement/refill.hpp"

namespace gs {

class Fragmentation {
 public:
  explicit Fragmentation(const Names& models) : models_(models) {}

  void set_typical(std::vector<TypicalTask> typical);
  double of(const NodeState& node, View view) { return of(state_of(node, view)); }
  double of(const FreeState& state);
  FreeState state_of(const NodeState& node, View view) {
    return free_state(node, view, kinds_.of(node.layout));
  }

 private:
  double compute(const FreeState& state);
  const std::vector<std::optional<Offer>>& offers_on(std::uint32_t kind);

  const Names& models_;
  Kinds kinds_;
  std::vector<TypicalTask> typical_;
  std::vector<std::vector<std::optional<Offer>>> on_;  // by kind of node, by typical task
  FreeStates states_;
  std::vector<double> kept_;  // by state
};

}  // namespace gs
