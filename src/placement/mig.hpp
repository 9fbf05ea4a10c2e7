// MIG instances for a task: existing free ones first, then new ones where the geometry allows.
#pragma once

#include <optional>
#include <vector>

#include "cluster/cluster.hpp"

namespace gs {

// Picks for one task, or nothing. New instances are cut only on GPUs that say mig_dynamic, at the
// legal start that leaves most room; unused instances there may be destroyed for it.
std::optional<std::vector<MigPick>> choose_mig(const NodeState& node, const Shape& shape,
                                               View view);
// The picks for instances at these very places, for a task that is found running on them; nothing
// where one of them is taken or can't be there.
std::optional<std::vector<MigPick>> mig_at(const NodeState& node, const std::vector<MigPlace>& at,
                                           Names& resources);
int mig_slots(const NodeState& node, const Shape& shape, View view, int at_most);

}  // namespace gs
