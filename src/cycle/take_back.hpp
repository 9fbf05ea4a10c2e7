// Taking back: what one phase of a cycle has decided and a later one has made needless did not
// happen. Nobody was told yet.
#pragma once

#include "cycle/cycle.hpp"

namespace gs {

// Whom one plan evicted, the next may have made room for: then it stays after all.
void take_back_evictions(CycleContext& context);
// What one phase started and a later one evicted has not started: its place is free at once. True:
// there was such a one.
bool take_back_starts(CycleContext& context);
// A promise that was taken back, or kept at once, was not made; who left for it, left for whoever
// has the room in the end.
void forget_promises(CycleContext& context);

}  // namespace gs
