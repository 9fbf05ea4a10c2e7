// What makes a node a good place for a task. Each part is 0..1, weighted by the configuration.
//
//   resourceAvailability   by strategy: consolidated - the fullest node; distributed - the
//                          emptiest; balanced - as the node policy says (policies/)
//   topologyAlignment      how well the GPUs that the task would get are connected
//   domainUtilization      busy leaves first (distributed, latency-sensitive: idle ones)
//   historicalPerformance  tasks rarely fail there because of the node
//
// On top, and stronger than all of these: node affinity, the preferred domain, nodes without GPUs
// for tasks without; for consolidated also a shared GPU for a task that shares.
#pragma once

#include <cstdint>

#include "cluster/cluster.hpp"
#include "model/config.hpp"
#include "model/why.hpp"
#include "placement/policies/policy.hpp"

namespace gs {

class Scorer {
 public:
  explicit Scorer(const Config& config) : config_(config) {}

  void use(NodePolicy* policy) { policy_ = policy; }
  // The policy that judges nodes and GPUs for tasks of this shape; null: the strategy does.
  NodePolicy* policy_for(const Shape& shape) const;
  Strategy strategy_of(const Shape& shape) const;
  // Everything but the domain's part. The node has room for the task.
  ScoreCard parts(const NodeState& node, const Shape& shape, View view) const;
  // Whether a shared request finds its part on a GPU that others share already.
  static bool joins_others(const NodeState& node, const Shape& shape, View view);
  // 0..1 from the share of the domain's GPUs that is taken.
  double domain_part(const Shape& shape, double taken) const;
  const ScoringWeights& weights() const { return config_.weights; }

 private:
  double availability(const NodeState& node, const Shape& shape, View view) const;
  const Config& config_;
  NodePolicy* policy_ = nullptr;
};

}  // namespace gs
