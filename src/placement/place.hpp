// Where do the tasks of a job go? All of them, or none.
//
// A single task goes to the node with the best score. A gang goes to the smallest domain of the
// network tree that holds it (tree.hpp), its sets each inside their own domain; the exact devices
// come last. Everything happens inside the caller's Trial: on failure nothing of it is left.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cluster/trial.hpp"
#include "model/config.hpp"
#include "model/why.hpp"
#include "placement/demand.hpp"

namespace gs {

struct GroupTasks {
  int group = 0;
  std::vector<int> ranks;  // ascending
};

enum class Firmness : std::uint8_t {
  StartNow,         // only on what is free now
  StartOrNominate,  // now where it fits, else nominated onto what is being freed
  Nominate,         // nominated, also where it would fit now: somebody is evicted for it
};

// Restricts a search to some nodes; bit per node id.
using NodeSet = std::vector<bool>;

struct PlaceAsk {
  JobId job;
  std::vector<GroupTasks> tasks;
  Firmness firmness = Firmness::StartNow;
  const NodeSet* among = nullptr;  // null: all nodes
  Instant now;
};

class Placer {
 public:
  Placer(Cluster& cluster, const Config& config);
  ~Placer();

  // True: the tasks are placed in the trial. False: the trial is as it was.
  bool place(Trial& trial, const PlaceAsk& ask);
  // Whether the tasks of a job of one group may lie wherever they harm others least: nothing else
  // is said about it (least_harm.hpp).
  bool lies_freely(JobId job);
  // Of the last place(): what the place costs by that rule, if it was chosen by it.
  std::optional<double> cost() const;
  // What it would cost to put one task of the job on each of these nodes.
  double cost_of(JobId job, const std::vector<NodeId>& nodes);
  // Why the tasks can't be placed now: which filter took how many nodes, the best candidate and
  // what it lacks. Costs no more than a placement.
  Why explain(const PlaceAsk& ask);
  // Whether a task that runs there already (found after a restart) fits the books; an error says
  // why not.
  Status can_hold(JobId job, int group, const Allocation& place) const;
  // Whether exactly these devices can take the task, seen so.
  bool will_fit(JobId job, int group, const Allocation& place, View view) const;
  // The configuration has changed: kept scores are worth nothing now.
  void reconfigured();

  // The job is asked for: places are kept for more of its kind.
  void observe(JobId job);
  // Takes in what has been observed. Between cycles only: within one, equal books give equal
  // answers.
  void refresh();
  const Demand& demand() const;
  void set_demand(DemandState state);

  // The parts of the score that a task of this shape gives to a node.
  ScoreCard score_card(ShapeId shape, NodeId node);
  // Could it be placed if nothing else ran? False: never, in this cluster.
  bool fits_empty_cluster(const PlaceAsk& ask);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gs
