// What would have to move so that tasks which don't fit now do: the nodes that come closest, and
// what runs there on the devices that they lack. Nothing is moved, and only the GPUs are counted
// that those tasks need elsewhere: whether they have other wishes is not looked at.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cluster/cluster.hpp"
#include "model/why.hpp"

namespace gs {

struct MoveAsk {
  const Shape* shape = nullptr;  // of every task
  std::int64_t tasks = 1;
  std::function<bool(NodeId)> allowed;  // a filter may have refused the node
  std::function<std::int64_t(NodeId)>
      at_most;  // tasks of this kind on the node if nothing else ran
};

// Nothing where moving is not enough.
std::optional<WouldMove> would_move(const Cluster& cluster, const MoveAsk& ask);

std::string move_words(const WouldMove& moves);

}  // namespace gs
