// What lies in the directory of one task, written by the agent (order, stop) and by the
// supervisor (status, log), so that each finds it again after the other was restarted.
//
//   order.json      what to run
//   lock            held by the supervisor as long as it lives; its content is the supervisor's pid
//   status.json     how the task is: running, or how it ended
//   stop            how long to wait between SIGTERM and SIGKILL, in ms: please stop
//   log.<offset>    its output from that byte on; older files are dropped
//   scratch/        its working directory, where the order names none
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace gs::agent {

struct TaskOrder {
  std::string allocation_id, job_id;
  std::vector<std::string> command;
  std::string script;  // instead of a command
  std::string image;   // run in a container, where a runtime is given
  std::map<std::string, std::string> environment;
  std::string working_dir, user;
  std::string default_user;  // for orders without a user, when we are root
  bool allow_root = false;
  std::int64_t cpu_milli = 0, memory_mb = 0;
  std::int64_t max_runtime_ms = 0, grace_ms = 0;
  std::string lease_file;
  std::int64_t log_bytes = 0;  // of one file
  int log_files = 0;
  std::string cgroup_root;  // "none": without; empty: wherever the system has it
  std::string container_runtime;
  std::vector<std::string> container_args;
  std::vector<std::string> devices;  // UUIDs that a container gets
  std::vector<int> gpus;             // indexes of what it was given, also where only a part
  std::string boot_id;               // the boot of the machine that it was ordered in
  std::string note;                  // for the report's message
};

struct TaskStatus {
  std::string state;  // "running", "exited", "refused"; empty: nothing known yet
  std::int64_t pid = 0, supervisor_pid = 0;
  std::int64_t started_at_ms = 0, finished_at_ms = 0;
  int exit_code = 0, signal = 0;
  bool out_of_memory = false, timed_out = false, stopped = false, lease_lost = false;
  std::string message;
  std::vector<std::string> cgroups;

  bool ended() const { return state == "exited" || state == "refused"; }
};

std::string order_path(const std::string& directory);
std::string lock_path(const std::string& directory);
std::string status_path(const std::string& directory);
std::string stop_path(const std::string& directory);

std::string to_json(const TaskOrder& order);
std::string to_json(const TaskStatus& status);
Result<TaskOrder> read_order(const std::string& directory);
// A file that is missing or broken says nothing: the state stays empty.
TaskStatus read_status(const std::string& directory);

}  // namespace gs::agent
