// LeastHarm: how a gang that wishes nothing about its place is laid out over the network tree.
//
// The fewest and then the nearest domains, and among such places the one whose loss hurts least
// those who come later. Of all placements it takes the one with the least cost, the sum of
//   spread    per row of the tree: domains used / domains that would do in an empty cluster;
//             rows further out than the innermost domains weigh far more: fewest of those first
//   distance  mean switch hops between two tasks
//   harm      per domain touched: V(free before) - V(free after). V is convex: room in one piece is
//             worth more than the same room in pieces, so full and broken domains are used up
//             first and whole ones stay whole. It is measured by the largest gang that is known:
//             room beyond that is worth no more per task, and a row whose domains no gang needs
//             (the next one in holds them all) decides ties only.
// One domain that holds all goes before several. All parts are sums over domains, so the least
// cost is found exactly, by dynamic programming from the nodes outwards. Where that would take too
// long (kMaxWork) it looks at the most promising domains only, or says that it does not know.
//
// Costs are whole numbers, so sums are exact and ties are real: domains that are alike are taken
// where they are neighbours, and then by the earlier name.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "placement/tree_counts.hpp"
#include "placement/tree_search.hpp"

namespace gs {

// What the rule measures by.
struct HarmScale {
  std::vector<std::int32_t> capacity;  // per row: tasks in its largest domain, if it were empty
  std::int64_t largest_gang = 1;       // in tasks of this kind
};

class LeastHarm {
 public:
  // Fills parts() and cost() and returns true. False: it does not fit into the places of the tree,
  // or the question is too large.
  bool find(const TreeCounts& counts, const HarmScale& scale, std::int32_t count,
            std::optional<Spot> within);
  const std::vector<SearchPart>& parts() const { return parts_; }  // by leaf, ascending
  // Comparable between placements of the same gang.
  double cost() const { return cost_; }

  // The cost of a placement that is given: tasks by leaf, which fit.
  double cost_of(const TreeCounts& counts, const HarmScale& scale,
                 const std::vector<SearchPart>& parts);

 private:
  using Costs = std::vector<double>;  // by number of tasks
  struct RowRule {
    double spread = 0;  // of one domain
    double harm = 0;    // weight of V
    double size = 1;    // V's unit
    Costs values;       // V by room, as far as it was asked for
  };
  // Children that are alike: as much room, and the same cost for any share of it.
  struct Kind {
    std::int32_t room = 0;
    std::vector<std::uint32_t> members;  // in tree order
    Costs costs;
  };
  struct Candidate {
    double bound = 0;
    std::uint32_t index = 0;
  };

  void prepare(const TreeCounts& counts, const HarmScale& scale, std::int32_t count);
  double value(int row, std::int32_t room);
  double term(int row, std::int32_t room, std::int32_t tasks);
  double terms_above(int row, std::uint32_t index, std::int32_t tasks);
  bool flat(int row) const;
  double least_inside(int row, std::uint32_t index);

  std::vector<Candidate> candidates(int row, SpotRange range);
  bool find_one(int row, SpotRange range);
  bool find_lone();
  bool find_several();
  Costs inside(int row, std::uint32_t index, std::int32_t most);
  Costs share_out(int row, SpotRange range, std::int32_t most, std::vector<std::size_t>* items,
                  std::vector<Costs>* stages);
  std::vector<Kind> kinds(int row, SpotRange range, std::int32_t most);
  void hand_out(int row, SpotRange range, std::int32_t tasks);

  const TreeCounts* counts_ = nullptr;
  std::int32_t count_ = 0;
  std::vector<RowRule> rules_;   // by row
  Costs near_;                   // by tasks: what their pairs are worth inside one domain
  bool one_task_nodes_ = false;  // no node holds two
  std::int64_t work_ = 0;
  bool too_large_ = false;
  std::vector<std::int32_t> rooms_;
  std::vector<SearchPart> parts_;
  double cost_ = 0;
};

}  // namespace gs
