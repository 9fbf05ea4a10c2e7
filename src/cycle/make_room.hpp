// Making room: which running jobs have to leave or move so that a waiting one can start?
//
// One search serves all three phases; they differ in who may be asked (the stream of units) and in
// what a plan must look like (the verdict). Victims are added unit by unit in the order of
// victims.hpp; after each, subsets of them that could do are simulated (simulate.hpp): first those
// around one node, then those of several nodes. A gang is solved for one member, two, four, ...:
// what had to leave for the first members leaves for the others too. Nobody is evicted before a
// whole plan has been found to work. When a first plan has failed, it is asked whether the job
// would fit if everybody left that may be asked: if not, no plan can work, and the search ends.
//
// No two jobs evict each other in turn:
//   - Whatever may be asked from whom, a job never asks one that it was evicted for itself,
//   directly
//     or through others, until that one has ended or one of them has got another priority
//     (eviction_order.hpp). So "was evicted for" has no cycles, whatever shares and demand do.
//   - That is the guard. Mostly it is not needed: preempt takes only from strictly lower priorities
//     of the same tenant, and these are constant; reclaim takes only from tenants above their share
//     or guarantee, and the taker is within its own afterwards (queue/reclaim.hpp). But shares move
//     with demand and use, and a gang that leaves as a whole may take its tenant below its share.
//   - consolidate: everybody that leaves has a new place in the same plan, so nobody is evicted.
//   - Room for which somebody lost its place in a round is not passed on in the same round, and
//   what
//     a tenant got in a round does not make it lose what it had before.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cycle/cycle.hpp"
#include "cycle/simulate.hpp"
#include "cycle/victims.hpp"

namespace gs {

struct RoomAsk {
  JobId job;
  std::vector<Member> members;
  // About the first `count` members and what the simulation came to.
  std::function<bool(std::size_t count, const Simulation&)> verdict;
  bool nobody_lost = false;  // a plan that loses anybody is worth nothing
};

class RoomMaker {
 public:
  RoomMaker(CycleContext& context, UnitStream& units, const RoomAsk& ask);

  // True: the plan was kept, and the evicted jobs are in evicted().
  bool run();
  const std::vector<JobId>& evicted() const { return evicted_; }
  int simulations() const { return simulations_; }

 private:
  using Chosen = std::vector<const Unit*>;  // units that stand or fall together
  enum class Reach : std::uint8_t { OneNode, ManyNodes };

  bool solve(Reach reach);
  bool probe(std::size_t count, Reach reach);
  void start_probe();
  void add_unit(const Unit& unit);
  bool is_recorded(const Unit& unit) const;
  bool enough_for(std::size_t count) const;
  bool greedy_match(std::size_t count) const;
  bool try_one_node(std::size_t count);
  bool try_many_nodes(std::size_t count);
  std::vector<Chosen> units_on(const std::unordered_set<NodeId>& nodes) const;
  bool could_do(const std::vector<Chosen>& chosen, std::size_t count) const;
  bool simulate(const std::vector<Chosen>& chosen, std::size_t count);
  void record_needed();
  bool is_hopeless();
  std::int64_t free_of(NodeId node) const;  // if the recorded units leave
  std::int64_t slots_of(std::int64_t milli) const { return need_ > 0 ? milli / need_ : 0; }

  struct Tally {
    std::int64_t freed = 0;
    std::size_t first_seen = 0;
    std::vector<JobId> jobs;  // in order of appearance
  };

  CycleContext& context_;
  UnitStream& stream_;
  const RoomAsk& ask_;
  Simulation simulation_;
  Trial trial_;
  std::vector<std::int64_t> needs_;     // GPU milli of each member
  std::int64_t need_ = 0;               // the same for all members, or 0
  std::vector<std::int64_t> capacity_;  // GPU milli free in the future, by node
  NodeSet base_;                        // nodes with room even if nobody leaves
  std::int64_t base_slots_ = 0;         // members that fit there, by GPUs alone

  // Units that leave in any case, for members solved before.
  std::vector<Chosen> recorded_;
  TaskMarks recorded_tasks_;
  std::unordered_map<NodeId, std::int64_t> recorded_freed_;

  // Of the probe at hand.
  std::vector<const Unit*> added_;
  std::unordered_map<NodeId, Tally> tally_;
  std::unordered_map<JobId, Chosen> by_job_;
  std::int64_t slots_ = 0;  // members that fit if all added units leave

  std::vector<Chosen> last_;                  // of the last simulation, recorded ones included
  std::unordered_set<std::uint64_t> failed_;  // scenarios that did not work
  int simulations_ = 0;
  std::optional<bool> hopeless_;
  std::vector<JobId> evicted_;
};

}  // namespace gs
