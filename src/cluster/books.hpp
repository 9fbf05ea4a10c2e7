// Records of jobs and tenants as the engine keeps them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "cluster/node_state.hpp"
#include "model/job.hpp"
#include "model/tenant.hpp"
#include "model/why.hpp"

namespace gs {

enum class JobState : std::uint8_t {
  Waiting,   // in the queue
  Held,      // in no queue until released
  Starting,  // told to start (or nominated), not all of it runs yet
  Running,
  Evicting,  // told to stop in order to make room; goes back to Waiting when it is gone
  Stopping,  // cancelled or timed out; ends when it is gone
  Completed,
  Failed,
  Cancelled,
};
const char* to_string(JobState state);
inline bool is_final(JobState s) { return s >= JobState::Completed; }

inline constexpr std::int64_t kUnknownDuration = -1;

// A Job without its groups (those are in its JobShape): small, since there may be a million.
struct JobRecord {
  std::string id;
  std::string name;
  TenantId tenant;
  JobShapeId shape;
  std::uint64_t seq = 0;  // order of arrival; the last word in every tie
  int priority = 0;
  int arrived = -1;
  Instant submitted;
  Instant started;  // of the current run
  Instant waiting_since;
  std::int64_t expected_runtime_ms = kUnknownDuration;
  std::int64_t max_runtime_ms = kUnknownDuration;
  std::int64_t min_runtime_ms = 0;
  std::int64_t start_timeout_ms = kUnknownDuration;
  std::int64_t ran_ms = 0;  // in earlier runs
  int preemptions = 0;
  int max_preemptions = 0;
  int disruption_budget = 0;
  JobState state = JobState::Waiting;
  JobState ends_as = JobState::Cancelled;  // Stopping: what it is when the last task has gone
  bool preemptible = true;
  bool can_preempt_others = true;
  bool checkpointable = false;
  bool movable = false;
  std::vector<TaskId> tasks;                         // with a place, in any state
  std::vector<std::uint16_t> active;                 // per group: Running or Nominated tasks
  std::vector<std::pair<std::uint16_t, int>> ended;  // group and rank of tasks that have succeeded
  Labels labels;
  int active_tasks = 0;  // sum of `active`
  int nominated_tasks = 0;
  int started_tasks = 0;  // confirmed by the driver, in any state
  int releasing_tasks = 0;

  // When what it holds comes free, as far as anybody knows.
  Instant expected_end() const {
    const std::int64_t runtime = expected_runtime_ms >= 0 ? expected_runtime_ms : max_runtime_ms;
    return runtime < 0 ? Instant::never() : Instant{started.ms + runtime};
  }
};

struct TenantRecord {
  Tenant spec;
  TenantId parent;
  std::vector<TenantId> children;            // by created_order, then id
  Usage used;                                // Running and Nominated tasks of it and all below it
  Usage used_unpreemptible;                  // the part of `used` that can't be taken away again
  int running_jobs = 0;                      // jobs with an active task
  int waiting_jobs = 0;                      // of it and all below it
  int jobs = 0;                              // its own, in any state that is not final
  std::vector<std::int64_t> milli_by_model;  // by interned model
  double decayed_gpu_hours = 0;  // usage with half-life, brought up to date at `decayed_at`
  Instant decayed_at;
  bool gone = false;
};

}  // namespace gs
