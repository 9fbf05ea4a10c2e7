// The rules of places in a second hand: what a node may hold, written again from the promises of
// the model and not from the engine's code. Slow and plain on purpose.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/mirror.hpp"

namespace gs {

// A task at its place, there or thought to be there.
struct Use {
  const std::string* job = nullptr;
  const TaskRequest* request = nullptr;
  const TaskPlace* place = nullptr;
};

Use use_of(const MirrorTask& task);
std::vector<Use> uses_on(const MirrorNode& node);

// What these tasks together have too much of, or nothing if the node can hold them all. Of CPU,
// memory and named resources only those count that are `asked` for.
std::optional<std::string> overuse(const Node& node, const std::vector<Use>& uses,
                                   const Resources& asked);

// Why this task may not start at this place whatever else runs there, or nothing.
std::optional<std::string> forbidden(const MirrorNode& node, const TaskRequest& request,
                                     const TaskPlace& place);

// Why no task of this kind may start on the node at all, or nothing: readiness, labels, taints,
// fabric. Devices are looked at by slots().
std::optional<std::string> closed(const Node& node, const TaskRequest& request);

// Requests for which counting says exactly how many tasks fit.
bool is_countable(const TaskRequest& request);
// How many further tasks of a countable request the node can hold.
int slots(const MirrorNode& node, const TaskRequest& request, const std::vector<Use>& uses);

// Whether the job is of a kind for which fits() is exact.
bool is_countable(const Mirror& mirror, const Job& job);
// Whether the whole of a countable job (or its minimum) finds room beside what is there.
bool fits(const Mirror& mirror, const Job& job, bool empty_cluster);

}  // namespace gs
