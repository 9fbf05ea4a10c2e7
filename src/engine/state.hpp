// The engine's inside: the books and what turns facts and decisions into states and effects.
// One file per command family works on it: nodes.cpp, tenants.cpp, jobs.cpp, tasks.cpp.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "cycle/cycle.hpp"
#include "engine/engine.hpp"
#include "queue/queue.hpp"

namespace gs {

struct Engine::Impl {
  Cluster cluster;
  Config config;
  Placer placer{cluster, config};
  Queue queue{cluster};
  Cycle cycle{cluster, config, placer, queue};
  Instant now;
  bool dirty = false;  // something happened since the last tick
  // (when, seq) of time-outs and time limits. An entry may be out of date; it is checked when due.
  std::set<std::tuple<Instant, std::uint64_t, JobId>> deadlines;
  std::map<JobId, Why> endings;  // why the jobs end that are Stopping, where there is a reason
  Effects effects;               // of the turn under way
  // Held jobs, of a tenant and all below it, and in all: they wait too where a queue is limited.
  std::map<TenantId, int> held_jobs;
  int all_held = 0;

  // --- commands; an error changes nothing ---
  Status apply(const SetConfig& command);
  Status apply(const SetTopology& command);
  Status apply(const PutNode& command);
  Status apply(const RemoveNode& command);
  Status apply(const CordonNode& command);
  Status apply(const ReportGpu& command);
  Status apply(const PutTenant& command);
  Status apply(const RemoveTenant& command);
  Status apply(const SubmitJob& command);
  Status apply(const CancelJob& command);
  Status apply(const HoldJob& command);
  Status apply(const SetPriority& command);
  Status apply(const MembersArrived& command);
  Status apply(const TaskStarted& command);
  Status apply(const TaskEnded& command);
  Status apply(const AdoptTask& command);

  // --- states ---
  // The state follows from the tasks; a change is told in an effect.
  void refresh(JobId job);
  void set_state(JobId job, JobState state, std::optional<Why> why = {});
  void count_held(TenantId tenant, int change);
  Status room_in_queue(TenantId tenant) const;
  void end_job(JobId job, JobState state, std::optional<Why> why);  // final: told and forgotten
  void requeue(JobId job);
  // Stops what runs and gives up what is nominated; the job ends as `ends_as` once all has gone.
  void stop_job(JobId job, JobState ends_as, StopReason reason, std::optional<Why> why);
  // A task lost its place (node gone, GPU broken, drained): the gang is mended in the next cycle.
  void lose_task(TaskId task, std::optional<StopReason> stop);
  void note_success(JobId job, int group, int rank);
  bool holds_without_promises(JobId job, int group, const Allocation& place);
  void check_deadline(JobId job);
  void watch_deadline(JobId job);

  // --- decisions -> effects ---
  void emit(const std::vector<Decision>& decisions);
  TaskPlace place_value(const Task& task) const;
  TaskRef ref(const Task& task) const;

  std::optional<Why> refusal_of(JobId job);  // never: why it can't run at all
  // `reason`: known to the caller; null: as the last cycle saw it.
  Why why_waiting(JobId job, const WaitReason* reason = nullptr);
  void forecast_start(JobId job, Explanation& answer);
  void describe(const DryOutcome& outcome, JobId job, DryRun& answer) const;
  void report(NodeId node, int gpu, Health health, int temperature_c);
  void lose_users(NodeId node, int gpu);
  void restore(const JobSnapshot& value);
  WaitSnapshot wait_value(JobId job) const;
  void restore_wait(JobId job, const WaitSnapshot& value);
  bool too_hot(const NodeState& node, int gpu, int temperature_c) const;
  TaskId find_task(JobId job, int group, int rank) const;  // the one that holds devices
};

}  // namespace gs
