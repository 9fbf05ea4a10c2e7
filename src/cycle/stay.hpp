// Stay: whoever left although nobody took its old place stays there.
//
// A plan is made with everybody out of the way who could make room; some of them turn out not to be
// in anybody's. Those that are served first have the first say; it is asked again as long as
// somebody goes home, because that frees where it was to go. Of a job whose members lie together
// nobody stays while others of it move; nobody stays below its minimum.
#pragma once

#include <vector>

#include "cluster/trial.hpp"
#include "cycle/victims.hpp"

namespace gs {

// Whether where one member lies says something about where the others may lie.
bool lies_together(const JobShape& shape);

// `victims` in the order in which they left; `gets`: who gets room. `give_up`: members of a gang
// may give up a place elsewhere so that others of it can stay together. Returns those that have no
// place in the end.
std::vector<const VictimTask*> let_stay(Trial& trial, const std::vector<VictimTask>& victims,
                                        const std::vector<JobId>& gets, bool give_up = true);

}  // namespace gs
