// Snapshot: the whole state of an engine as plain values, without internal numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/config.hpp"
#include "model/effect.hpp"
#include "model/job.hpp"
#include "model/node.hpp"
#include "model/tenant.hpp"
#include "model/why.hpp"
#include "placement/demand.hpp"

namespace gs {

struct NodeSnapshot {
  Node node;
  std::uint64_t hot_gpus = 0;
  double performance = 1.0;
  std::vector<MigPlace> mig;  // all instances that there are, used or not
};

struct TenantSnapshot {
  Tenant tenant;
  double decayed_gpu_hours = 0;
  Instant decayed_at;
};

struct TaskSnapshot {
  int group = 0;
  int rank = 0;
  std::uint8_t state = 0;  // TaskState
  std::string node;
  std::uint64_t gpus = 0;
  std::vector<MigPlace> mig;
  std::vector<int> mig_instance;  // which instance of its GPU, for each of `mig`
  Instant since;
  bool started = false;  // the driver has confirmed it
};

// Why a job waited, and its reservation if it had one, as the last cycle left it.
struct WaitSnapshot {
  std::optional<Constraint> constraint;
  std::optional<QuotaState> quota;
  bool searched = false;  // a reservation was looked for
  std::optional<Instant> start;
  std::vector<std::string> nodes;
  std::vector<TaskSnapshot> plan;  // where it was to lie
};

struct JobSnapshot {
  Job job;
  std::uint64_t seq = 0;
  std::uint8_t state = 0;     // JobState
  std::uint8_t ends_as = 0;   // JobState
  std::optional<Why> ending;  // why it ends, while it is being stopped
  Instant started;
  Instant waiting_since;
  std::int64_t ran_ms = 0;
  int preemptions = 0;
  std::vector<std::uint64_t> evicted_for;  // seq of jobs that it may not evict in turn
  WaitSnapshot wait;
  bool queued = false;
  bool broken = false;  // lost members that the next cycle has to replace
  std::vector<TaskSnapshot> tasks;
  std::vector<std::pair<int, int>> ended;  // group, rank of tasks that have succeeded
};

struct Snapshot {
  Instant now;
  std::uint64_t next_seq = 1;
  bool dirty = false;
  Config config;
  DemandState demand;
  std::vector<std::string> levels;
  std::vector<NodeSnapshot> nodes;      // in order of first appearance
  std::vector<TenantSnapshot> tenants;  // parents before children
  std::vector<JobSnapshot> jobs;        // by seq
};

}  // namespace gs
