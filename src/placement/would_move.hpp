// What would have to move so that tasks which don't fit now do: the nodes that come closest, and
// what runs there on the devices that they lack. Nothing is moved, and whether each of those tasks
// finds a place elsewhere is not worked out: only that as many GPUs are free there.
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

// Nothing for requests that any set of GPUs will not do for, or where moving is not enough.
std::optional<WouldMove> would_move(const Cluster& cluster, const MoveAsk& ask);

std::string move_words(const WouldMove& moves);

}  // namespace gs
