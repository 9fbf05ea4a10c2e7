// Mirror: the world as somebody sees it who reads nothing but commands and effects. The checkers
// judge the engine by it, so it shares no books and no arithmetic with the Cluster.
//
// Invariants: a task stands in its job's list and in its node's list from the StartTasks that
// starts it to the TaskEnded or RemoveNode that ends it; tenants count the tasks that have not been
// told to stop.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "model/config.hpp"
#include "sim/world.hpp"

namespace gs {

struct MirrorJob;
struct MirrorNode;

using Rank = std::pair<int, int>;  // group, rank

struct MirrorTask {
  Rank rank;
  TaskPlace place;
  MirrorJob* job = nullptr;
  MirrorNode* node = nullptr;
  bool stopping = false;
  Instant since;
};

struct MirrorNode {
  Node spec;
  std::vector<bool> hot;           // per GPU
  std::vector<MirrorTask*> tasks;  // those that are stopping too
};

// What tasks count for in a tenant's quota.
struct Taken {
  std::int64_t gpu_milli = 0, gpu_memory_mib = 0, cpu_milli = 0, memory_bytes = 0;
  void add(const Taken& other, int sign);
};

struct MirrorTenant {
  Tenant spec;
  MirrorTenant* parent = nullptr;
  Taken taken, taken_unpreemptible;
  std::map<std::string, std::int64_t> milli_by_model;
  int running_jobs = 0;
};

struct MirrorJob {
  Job spec;
  MirrorTenant* tenant = nullptr;
  std::string state;
  std::map<Rank, MirrorTask> tasks;
  std::map<Rank, TaskPlace> nominated;  // may be given up without a word
  std::set<Rank> succeeded;
  Instant submitted;
  Instant waiting_since;
  Instant started;
  std::optional<Instant> promised;   // the reserved start that it was told last
  std::set<std::string> overtakers;  // jobs behind it that have started since it was told so
  int active = 0;                    // tasks that have not been told to stop
  bool admitted = false;  // had promises when quotas changed: those were within what held then
};

class Mirror {
 public:
  // Takes note of what was told (accepted or not) before its effects are looked at.
  void told(const Command& command, Instant now);
  void start(MirrorJob& job, const TaskPlace& place, Instant now);
  void stop(MirrorJob& job, Rank rank);
  void nominate(MirrorJob& job, const TaskPlace& place);
  void changed(const JobChanged& change, Instant now);

  MirrorJob* find_job(const std::string& id);
  MirrorNode* find_node(const std::string& name);
  MirrorTenant* find_tenant(const std::string& id);
  const std::map<std::string, MirrorJob>& jobs() const { return jobs_; }
  std::map<std::string, MirrorJob>& jobs() { return jobs_; }
  const std::map<std::string, MirrorNode>& nodes() const { return nodes_; }
  const std::map<std::string, MirrorTenant>& tenants() const { return tenants_; }
  const Config& config() const { return config_; }
  const std::vector<std::string>& levels() const { return levels_; }
  // 0: outermost ... levels().size(): the node itself; -1: no such level.
  int level_index(const std::string& name) const;
  // Name of the domain of that level around the node; empty if it takes part in no level.
  std::string domain_of(const MirrorNode& node, int level) const;

 private:
  void put_node(const PutNode& command);
  void heat(MirrorNode& node, int gpu, int temperature_c);
  void ended(const TaskEnded& command);
  void erase(MirrorTask& task);
  void charge(const MirrorTask& task, int sign);

  Config config_;
  std::vector<std::string> levels_;
  std::map<std::string, MirrorNode> nodes_;
  std::map<std::string, MirrorTenant> tenants_;
  std::map<std::string, MirrorJob> jobs_;  // those that have not ended
};

// What a task on this node counts for; and the compute of each of its GPUs, in milli.
Taken taken_by(const TaskRequest& request, const TaskPlace& place, const Node& node);
std::pair<std::int64_t, std::int64_t> part_of(const GpuRequest& request, std::int64_t memory_mib);
bool is_final_state(const std::string& state);

}  // namespace gs
