// A node as it would be if nothing ran there: what can never fit does not fit there either.
#pragma once

#include "cluster/node_state.hpp"

namespace gs {

// The node as if nothing ran there and everything were in order.
NodeState emptied(const NodeState& node);

}  // namespace gs
