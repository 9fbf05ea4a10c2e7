// Attempt: try to give the next members of a job their places, inside the quota of its tenants.
#pragma once

#include <vector>

#include "cycle/cycle.hpp"
#include "queue/members.hpp"

namespace gs {

struct Attempt {
  bool placed = false;
  WaitReason reason;  // if not
};

// In the trial: all of `members`, or none and the trial is as it was.
Attempt attempt(CycleContext& context, Trial& trial, JobId job, const std::vector<Member>& members,
                Firmness firmness, const NodeSet* among);

// In the trial: the members exactly where their reservation has planned them, now or once
// everything has gone that is told to stop. False, and the trial is as it was, if there is no plan
// or no room.
bool place_as_planned(CycleContext& context, Trial& trial, JobId job,
                      const std::vector<Member>& members, View view);

// The quota that keeps these members from starting wherever they lie, and the one that they exceed
// where they have been placed since `mark`.
std::optional<QuotaState> over_quota(const Cluster& cluster, JobId job,
                                     const std::vector<Member>& members);
std::optional<QuotaState> over_quota_since(Trial& trial, JobId job, std::size_t mark);

// If part of what was placed since `mark` has to wait for room and a group is not whole without it,
// the rest waits too: a gang starts at once or not at all.
void wait_as_one(Trial& trial, JobId job, std::size_t mark);

}  // namespace gs
