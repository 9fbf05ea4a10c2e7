// Holds: the room on the nodes that reservations keep free while others are placed behind them.
//
// A reservation was found to fit at its start with all reservations before it in place, whenever
// those start. So it needs on its nodes what all of them and itself need there, less what will have
// come free by its start. Of several reservations on a node the largest need counts for each
// resource: it contains the others.
//
// Invariant: what is held is in the books once, and nothing of it after the end of this object.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "cluster/cluster.hpp"

namespace gs {

// At least the need, of each resource.
void raise_to(Hold& hold, const Hold& need);

class Holds {
 public:
  using Need = std::pair<NodeId, Hold>;

  explicit Holds(Cluster& cluster) : cluster_(cluster) {}
  ~Holds() { lift(); }
  Holds(const Holds&) = delete;
  Holds& operator=(const Holds&) = delete;

  void add(Instant start, std::vector<Need> needs);
  // From now on these and no others are held: the needs of reservations that start before `end`.
  void put_up(Instant end = Instant::never());
  // Only the MIG GPUs of all reservations.
  void put_up_mig();
  void lift();

 private:
  struct Reserved {
    Instant start;
    std::vector<Need> needs;
  };
  const std::vector<Need>& most_before(Instant end);
  void hold(const std::vector<Need>& needs);

  Cluster& cluster_;
  std::vector<Reserved> reserved_;
  std::map<std::vector<bool>, std::vector<Need>> most_;  // by who takes part
  std::vector<Need> mig_;
  const std::vector<Need>* up_ = nullptr;  // in the books
};

}  // namespace gs
