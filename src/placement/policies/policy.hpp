// NodePolicy: how the strategy `balanced` judges a node, and the GPUs on it, for one task.
//
// A policy is one file here and one row in the table. It sees what is free, and the learned demand;
// it never changes the books. Answers may depend on the demand only through refresh(), which is
// called between cycles: inside a cycle, equal books give equal answers.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cluster/cluster.hpp"
#include "model/config.hpp"
#include "placement/demand.hpp"

namespace gs {

class NodePolicy {
 public:
  // Points by GPU; only those of the GPUs asked about count.
  using GpuPoints = std::array<std::int64_t, kMaxGpusPerNode>;

  virtual ~NodePolicy() = default;
  // 0..1, the best is the highest. The node has room for the task.
  virtual double value(const NodeState& node, const Shape& shape, View view) = 0;
  // For a task that takes a part of one GPU: which of `gpus`, each with room, it should get. The
  // highest points win, the lowest index among equals.
  virtual void rate_gpus(const NodeState& node, const Shape& shape, View view, GpuMask gpus,
                         GpuPoints& points) = 0;
  // Takes in what has been learned since the last time.
  virtual void refresh() {}
  // Changes with every refresh() that changed any answer.
  std::uint64_t version() const { return version_; }

 protected:
  std::uint64_t version_ = 1;
};

struct PolicyContext {
  const Cluster& cluster;
  const Config& config;
  Demand& demand;
};

struct PolicyRow {
  const char* name;  // as a user writes it
  const char* help;
  std::unique_ptr<NodePolicy> (*make)(const PolicyContext&);
};

const std::vector<PolicyRow>& node_policies();
const PolicyRow* find_node_policy(const std::string& name);  // null: there is none

std::unique_ptr<NodePolicy> make_default_policy(const PolicyContext& context);
std::unique_ptr<NodePolicy> make_fgd_policy(const PolicyContext& context);
std::unique_ptr<NodePolicy> make_bestfit_policy(const PolicyContext& context);

}  // namespace gs
