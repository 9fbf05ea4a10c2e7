// Finding and ending processes by what /proc says of them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "agent/task_files.hpp"

namespace gs::agent {

// The variable that every process of a task inherits; its value is the allocation's id.
inline constexpr const char* kMarker = "GPU_SCHEDULER_ALLOCATION_ID";

struct Process {
  int pid = 0, parent = 0, group = 0, session = 0;
  char state = '?';
};

std::vector<Process> all_processes();
// All below `root` in the tree of processes, not counting itself.
std::vector<int> descendants(int root);

// Ends all that a task without its supervisor has left: what is in its cgroups, in its session, or
// carries its marker. Returns when none is left; false if some did not die within `patience_ms`.
bool kill_leftovers(const TaskOrder& order, const TaskStatus& status, std::int64_t supervisor_pid,
                    std::int64_t patience_ms);

struct Usage {
  std::int64_t cpu_ms = 0, memory_mb = 0;  // memory: resident
  std::set<int> pids;
};
// Of all below each of these processes, which don't count themselves.
std::vector<Usage> usage_below(const std::vector<int>& roots);

}  // namespace gs::agent
