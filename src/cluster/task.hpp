// A Task that has a place: which node, which devices, and how firm the place is.
#pragma once

#include <cstdint>
#include <vector>

#include "base/gpu_mask.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"

namespace gs {

// Now: what is free this instant and promised to nobody. Future: also what is being freed, less
// what is promised already.
enum class View : std::uint8_t { Now, Future };

enum class TaskState : std::uint8_t {
  Running,    // holds its devices
  Releasing,  // told to stop; still holds its devices until the driver says it is gone
  Nominated,  // will have these devices as soon as what is releasing there has gone
};

// One MIG instance of a task. `id` names the instance on its GPU for as long as it exists.
struct MigPick {
  std::uint8_t gpu = 0;
  std::int8_t start = -1;
  std::uint8_t size = 1;  // memory slots
  std::uint16_t id = 0;
  std::uint32_t profile = 0;  // interned name
  bool create = false;        // does not exist yet: cut it (over unused instances if need be)
};

struct Allocation {
  NodeId node;
  GpuMask gpus = 0;
  std::vector<MigPick> mig;
};

struct Task {
  JobId job;
  std::uint16_t group = 0;
  TaskState state = TaskState::Running;
  int rank = 0;  // index inside the group
  Allocation place;
  Instant since;         // placed at
  bool started = false;  // the driver has confirmed it
};

}  // namespace gs
