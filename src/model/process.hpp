// The tasks of a job that lie on one node run as one process. A try to run a job (an attempt) is
// one process a node.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "model/command.hpp"

namespace gs {

enum class ProcessState : std::uint8_t {
  Assigned,  // its agent is to start it
  Running,
  Stopping,  // its agent is to stop it
  Ended,     // well; the others of its attempt go on
};

struct Process {
  std::string allocation;  // "job-17.2.0": job, attempt, rank; never used again
  std::string node;
  int rank = 0;
  ProcessState state = ProcessState::Assigned;
  std::vector<int> gpus;
  std::vector<std::string> gpu_ids;  // UUIDs of `gpus`
  std::vector<MigPlace> mig;
  std::vector<std::pair<int, int>> tasks;  // group, rank of the engine's tasks that it stands for
  Instant since;                           // holds its GPUs since
  bool operator==(const Process&) const = default;
};

}  // namespace gs
