// What is durable about tenants, jobs, nodes and events: the rows of the store. They are written by
// turns and read by everybody; nothing else about the service needs to survive.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "model/node.hpp"
#include "model/spec.hpp"

namespace gs {

// The states that users see.
enum class RunState : std::uint8_t {
  Pending,
  Scheduled,  // has its GPUs, has not been seen running yet
  Running,
  Completed,
  Failed,
  Cancelled,
  Preempted,  // gave its GPUs to others, waits to go on
};
const char* to_string(RunState state);
std::optional<RunState> run_state_of(const std::string& text);
constexpr bool is_final(RunState state) {
  return state == RunState::Completed || state == RunState::Failed || state == RunState::Cancelled;
}

// Ids are a kind and a number that grows with time ("job-1765705491822858545") and is never used
// again. Rows are keyed by the number.
std::string job_id(std::int64_t seq);
std::string tenant_id(std::int64_t seq);
std::optional<std::int64_t> job_seq(const std::string& id);  // none: not such an id
std::optional<std::int64_t> tenant_seq(const std::string& id);

// What a job that is on its way out will be, once its processes have gone.
enum class Ending : std::uint8_t { None, Cancel, Fail, Requeue };

struct JobRow {
  // --- never changes ---
  std::int64_t seq = 0;
  std::string tenant;
  std::string name;
  int gpu_count = 0;
  std::string spec;      // JobSpec as JSON
  Labels labels;         // those of the spec, to be found by
  std::string array_id;  // that of the spec, to be found by
  Instant submitted;
  // --- changes ---
  RunState state = RunState::Pending;
  int priority = 0;
  bool held = false;  // by its owner
  Ending ending = Ending::None;
  Instant scheduled, started, completed;  // 0: not yet; of the last attempt
  int attempt = 0;                        // times that it was given GPUs
  int preempted_count = 0;
  std::optional<int> exit_code;
  int signal = 0;
  std::string message;      // why it ended so, or what is remarkable about it
  std::string placement;    // JSON: its processes, as wire/placement_json writes them
  std::int64_t gpu_ms = 0;  // GPU time used by all attempts that have ended, in GPU-milliseconds
};

struct TenantRow {
  std::int64_t seq = 0;
  TenantSpec spec;
  bool active = true;
  Instant created, updated;
  // Totals over all time.
  std::int64_t total_jobs = 0, successful_jobs = 0, failed_jobs = 0;
  std::int64_t gpu_ms = 0;
  double total_cost = 0;
  // What is in use now; recorded for people who look into the database.
  std::int64_t current_gpu_milli = 0, current_gpu_memory_mb = 0, current_cpu_milli = 0,
               current_memory_mb = 0, current_jobs = 0;
};

struct NodeRow {
  Node node;  // as its agent reported it last
  std::string address;
  std::string version;   // of the agent
  std::string instance;  // tells agents of one name apart; empty: not known
  std::string container_runtime;
  bool simulated = false;
  bool cordoned = false;
  bool draining = false;
  Instant registered;
};

struct EventRow {
  std::uint64_t id = 0;  // grows by one
  Instant time;
  std::string type;  // "job.started"
  std::int64_t job = 0;
  std::string tenant;
  std::string node;
  std::string message;
  std::string data;  // JSON object with more, or empty
};

// GPU time of a tenant in one hour; commits add to what is there.
struct UsageRow {
  std::string tenant;
  Instant hour;
  std::int64_t gpu_ms = 0;
  std::int64_t jobs_ended = 0;
  double cost = 0;
};

// A submission that may come twice: the same key gets the same answer.
struct KeyRow {
  std::string tenant;
  std::string key;
  std::uint64_t body_hash = 0;
  std::string answer;  // JSON
  Instant time;
};

}  // namespace gs
