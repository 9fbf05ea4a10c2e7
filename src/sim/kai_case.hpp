// One case of suite kai: queues, nodes, jobs in some state, the phases to run and what must come of
// it. Queues are tenants; a gang part is a group, or a set of groups where its tasks differ.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "model/job.hpp"
#include "model/node.hpp"
#include "model/tenant.hpp"

namespace gs {

struct KaiTask {
  std::string name;
  int group = 0;
  int rank = 0;
  std::string state;  // before: "pending", "running", "releasing", "pipelined"
  std::string node;
  std::vector<std::string> gpu_groups;  // equal names on one node: the same GPU
};

struct KaiJob {
  Job job;
  std::vector<KaiTask> tasks;
  bool being_deleted = false;
};

struct KaiExpect {
  std::string state;
  std::string node;  // empty: not asserted
};

struct KaiNodeExpect {
  int idle_gpus = 0, releasing_gpus = 0;
};

struct KaiCase {
  std::vector<std::string> levels;
  std::vector<Node> nodes;
  std::vector<Tenant> tenants;  // parents before children
  std::vector<KaiJob> jobs;
  std::vector<std::string> actions;
  int rounds = 1, stable_rounds = 0;
  std::string compare;
  std::map<std::string, KaiExpect> tasks;                  // by task name
  std::map<std::string, std::int64_t> accepted_gpu_milli;  // by job name
  std::map<std::string, KaiNodeExpect> node_gpus;
};

KaiCase read_kai_case(const nlohmann::json& c);

}  // namespace gs
