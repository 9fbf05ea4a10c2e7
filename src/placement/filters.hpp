// What about a node itself rules it out for a request, whatever is free there.
#pragma once

#include "base/gpu_mask.hpp"
#include "cluster/cluster.hpp"
#include "model/why.hpp"

namespace gs {

// Constraint::None if the node may be used; else the first filter that refuses, in a fixed order.
Constraint refusal(const NodeState& node, const Shape& shape);

// GPUs of the right model and size, free or not.
GpuMask eligible_gpus(const Layout& layout, const Shape& shape);

// Sum of the weights of the preferred terms that hold, less one for each PreferNoSchedule taint
// that is not tolerated, plus one for each preferred fabric feature present.
int affinity_score(const NodeState& node, const Shape& shape);

}  // namespace gs
