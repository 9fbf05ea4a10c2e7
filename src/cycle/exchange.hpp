// Exchange: of places that are alike, everybody keeps its own.
//
// A plan may send a task to a place that is just like the one it has, and give that one to somebody
// else. Then the two change places in the plan: the task stays, and what others get is as good.
#pragma once

#include "cluster/trial.hpp"
#include "cycle/victims.hpp"

namespace gs {

// The member's task in this state; invalid if there is none.
TaskId place_of(const Cluster& cluster, JobId job, int group, int rank, TaskState state);
TaskId place_of(const Cluster& cluster, const VictimTask& member, TaskState state);
// Left and has no other place.
bool is_lost(const Cluster& cluster, const VictimTask& task);
// Whether everybody who is to be on this task's node and devices has room there.
bool is_sound(const Cluster& cluster, const Task& task);
bool shares_devices(const Task& a, const Task& b);

// With a member of the same group that is to move to where this one is.
void exchange_with_sibling(Trial& trial, const VictimTask& task);
// With whoever is to get a MIG instance of this task: they get another of the same kind on the same
// GPU. False if there is none for somebody; the trial is then to be rolled back.
bool exchange_instances(Trial& trial, TaskId stays);

}  // namespace gs
