// How many tasks of a shape fit on a node, one after another.
#pragma once

#include <limits>

#include "cluster/cluster.hpp"

namespace gs {

inline constexpr int kManySlots = 1 << 20;

// Counts what is free only; refusal() is asked separately. Exact: the device chooser manages just
// so many, except for shared requests over several devices, where it may be more than that.
int slots(const Cluster& cluster, const NodeState& node, const Shape& shape, View view,
          int at_most = kManySlots);

// Whether CPU, memory and named resources do for one task; devices are not looked at.
bool amounts_fit(const NodeState& node, const Shape& shape, View view);

}  // namespace gs
