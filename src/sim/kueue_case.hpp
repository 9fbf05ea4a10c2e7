// One case of suite kueue-tas: nodes in a tree of domains, what runs there, and a job to place.
//
// Where the innermost level is not `host`, all nodes of one path are one pool: one node here, with
// the sum of their room, whose labels and taints nobody asks about.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "model/job.hpp"
#include "model/node.hpp"

namespace gs {

using DomainPath = std::vector<std::string>;
// How many tasks of each group lie on each leaf; no zeros.
using TaskLayout = std::map<std::string, std::map<DomainPath, int>>;

struct KueueLeaf {
  DomainPath path;  // all levels, the host included
  Node node;
};

struct KueueCase {
  std::vector<std::string> levels;
  bool hosts = true;  // the innermost level is the host
  std::vector<KueueLeaf> leaves;
  struct Use {
    DomainPath path;
    TaskRequest request;
  };
  std::vector<Use> used;
  Job job;
  struct Kept {
    DomainPath path;
    int tasks = 0;
    bool lost = false;  // its node failed or is not there any more
  };
  std::map<std::string, std::vector<Kept>> previous;  // tasks placed before, by group
  std::vector<std::string> keys;  // labels and levels that some selector or affinity names

  bool feasible = true;
  std::string compare;
  TaskLayout expected;
  std::vector<TaskLayout> any_of;

  const KueueLeaf* find(const DomainPath& path) const;  // by full path or host; null: takes no part
};

KueueCase read_kueue_case(const nlohmann::json& c);

}  // namespace gs
