// What users submit to the standalone service: a job and a tenant in the vocabulary of its API.
// `to_job` and `to_tenant` turn them into what the engine decides about; what a job runs (command,
// image, environment) is of no interest to the engine and stays here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/job.hpp"
#include "model/tenant.hpp"

namespace gs {

struct Dependency {
  std::string job;
  bool any_end = false;  // after it ended in any way; else after it completed
  bool operator==(const Dependency&) const = default;
};

// All amounts are totals of the job. Zero: not asked for.
struct JobSpec {
  std::string tenant_id;
  std::string name;
  int priority = 100;
  int gpu_count = 0;
  std::int64_t gpu_memory_mb = 0;
  int gpu_milli = 0;  // a part of each GPU; 0: whole ones
  std::string gpu_model;
  std::string mig_profile;  // gpu_count instances of it
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mb = 0;

  // gang_scheduling: the GPUs may lie on several nodes, one process on each. With `nodes` there are
  // exactly so many processes of gpu_count / nodes GPUs each; else the fewest nodes.
  bool gang_scheduling = false;
  int nodes = 0;
  int gpus_per_node = 0;

  std::vector<std::string> command, args;
  std::string script;  // instead of a command
  std::string image;
  Labels environment;  // sorted by key, as labels are
  std::string working_dir;
  std::string user;
  bool checkpoint = false;  // loses no work when it is stopped
  std::string checkpoint_path;

  int max_runtime_minutes = 0;
  int expected_runtime_minutes = 0;
  bool allow_preemption = true;
  bool held = false;
  std::vector<Dependency> depends_on;
  int array_size = 0;    // > 0: so many jobs like this one
  int array_index = -1;  // which one of them this is
  std::string array_id;  // the first of them
  Labels labels;
  Labels node_selector;
  bool operator==(const JobSpec&) const = default;
};

// Rules about single fields and fields together; the message names the field and the rule.
Status validate(const JobSpec& spec);

// The engine's view of it. A gang without `nodes` becomes one task a GPU, so that the engine may
// lay it over the fewest nodes; the tasks that come to lie on one node are one process.
Job to_job(const JobSpec& spec, const std::string& id, Instant submitted);

struct TenantSpec {
  std::string name;
  std::string email, organization;
  std::int64_t max_gpus = 0;
  std::int64_t max_gpu_memory_mb = 0;
  std::int64_t max_cpu_cores = 0;
  std::int64_t max_memory_mb = 0;
  std::int64_t max_concurrent_jobs = 0;
  Tier priority_tier = Tier::Medium;
  double fair_share_weight = 1.0;
  std::int64_t guaranteed_gpus = 0;
  std::vector<std::pair<std::string, std::int64_t>> max_gpus_by_model;
  std::int64_t max_queued_jobs = 0;  // 0: no bound of its own
  bool allow_preemption = true;
  bool can_preempt_others = true;
  int max_preemptions = 0;  // of each of its jobs; 0: no bound
  double cost_per_gpu_hour = 0;
  bool operator==(const TenantSpec&) const = default;
};

Status validate(const TenantSpec& spec);
Tenant to_tenant(const TenantSpec& spec, const std::string& id);

}  // namespace gs
