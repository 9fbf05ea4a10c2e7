// Commands: everything that can be told to the engine. The log of commands is the engine's history:
// played again with the same instants, it gives the same effects.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "model/config.hpp"
#include "model/job.hpp"
#include "model/node.hpp"
#include "model/tenant.hpp"

namespace gs {

// --- the cluster ---
struct SetConfig {
  Config config;
};
struct SetTopology {
  std::vector<std::string> levels;  // outermost first, without the node level
};
struct PutNode {  // appears, or reports itself anew
  Node node;
};
struct RemoveNode {  // disappeared: what ran there is lost
  std::string name;
};
struct CordonNode {
  std::string name;
  bool cordoned = true;
  bool drain = false;  // also move what runs there
};
struct ReportGpu {
  std::string node;
  int gpu = 0;
  Health health = Health::Healthy;
  int temperature_c = 0;
};

// --- tenants ---
struct PutTenant {
  Tenant tenant;
};
struct RemoveTenant {
  std::string id;
};

// --- jobs ---
struct SubmitJob {
  Job job;
};
struct CancelJob {
  std::string id;
};
struct HoldJob {
  std::string id;
  bool held = true;
};
struct SetPriority {
  std::string id;
  int priority = 0;
};
struct MembersArrived {  // of a gang whose members arrive one by one
  std::string id;
  int arrived = 0;  // in all
};

// --- facts about tasks ---
struct MigPlace {
  int gpu = 0;
  std::string profile;
  int start = -1;
  bool create = false;  // cut it first
  bool operator==(const MigPlace&) const = default;
};
struct TaskRef {
  std::string job;
  int group = 0;
  int rank = 0;
  bool operator==(const TaskRef&) const = default;
};
struct TaskStarted {
  TaskRef task;
};
enum class Outcome : std::uint8_t {
  Succeeded,
  Failed,    // by its own fault
  NodeLost,  // by the node's fault
  Stopped,   // as it was told to
};
struct TaskEnded {
  TaskRef task;
  Outcome outcome = Outcome::Succeeded;
};
// A task that the driver finds running although the engine did not start it in this life.
struct AdoptTask {
  TaskRef task;
  std::string node;
  std::vector<int> gpus;
  std::vector<MigPlace> mig;
  Instant since;
  bool succeeded = false;  // it has ended well already: it holds nothing and needs nothing more
};

using Command = std::variant<SetConfig, SetTopology, PutNode, RemoveNode, CordonNode, ReportGpu,
                             PutTenant, RemoveTenant, SubmitJob, CancelJob, HoldJob, SetPriority,
                             MembersArrived, TaskStarted, TaskEnded, AdoptTask>;

}  // namespace gs
