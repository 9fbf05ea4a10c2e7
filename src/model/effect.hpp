// Effects: what a driver has to do, and what it may tell people. In the order in which they
// happened.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/time.hpp"
#include "model/command.hpp"
#include "model/why.hpp"

namespace gs {

struct TaskPlace {
  TaskRef task;
  std::string node;
  std::vector<int> gpus;
  std::vector<MigPlace> mig;
  bool operator==(const TaskPlace&) const = default;
};

enum class StopReason : std::uint8_t {
  Preempted,
  Reclaimed,
  Moved,
  Shrunk,
  Unhealthy,
  Drained,
  Cancelled,
  TimeLimit,
  GangBroken
};
const char* to_string(StopReason reason);

struct StartTasks {
  std::string job;
  std::vector<TaskPlace> tasks;
};
struct StopTasks {
  std::string job;
  std::vector<TaskRef> tasks;
  StopReason reason = StopReason::Preempted;
  std::string for_job;  // who gets the room; empty: nobody
};
// Will start there as soon as what is stopping there has gone.
struct NominateTasks {
  std::string job;
  std::vector<TaskPlace> tasks;
};
// The job is now in this state ("waiting", "running", "completed", ...). `why` explains a wait or
// an end; few changes have one, and it would make every effect eight times as large.
struct JobChanged {
  std::string job;
  std::string state;
  std::shared_ptr<const Why> why;
};

using Effect = std::variant<StartTasks, StopTasks, NominateTasks, JobChanged>;
using Effects = std::vector<Effect>;

}  // namespace gs
