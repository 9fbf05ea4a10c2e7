// Where in the tree does a group go? Best fit on every level, from exact counts: a "no" is a proof.
//
//   1. One domain of the row asked for that holds everything: of the highest affinity score, and
//      of those the tightest.
//   2. Else, unless the row is required, one row further out, and at the end several domains: the
//      fullest first, for the rest the tightest that holds it; among equals neighbours.
//   3. The same down to the nodes. Down to the row of the slices the children of all chosen domains
//      compete; below it every domain splits its own share.
// Every tie ends in the earlier name.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "placement/tree_counts.hpp"
#include "placement/tree_layout.hpp"

namespace gs {

enum class Reach : std::uint8_t {
  Required,   // one domain of the row, or nothing
  Preferred,  // one domain of the row, else of the next one out, else several of the outermost
  Anywhere,   // one domain of the row, else several of it
};

struct SearchAsk {
  std::int32_t count = 0;  // a multiple of the outermost slice
  Reach reach = Reach::Anywhere;
  int row = 0;                 // to start from; not further in than the outermost slice
  std::optional<Spot> within;  // only here; not further in than the outermost slice
  // Preferred: no further out than this row, where one domain is required. -1: no bound.
  int limit = -1;
};

struct SearchPart {
  std::uint32_t leaf = 0;
  std::int32_t tasks = 0;  // 0: the leader alone
  bool leader = false;
};

// Why not: the domain that comes closest, and how many tasks it takes in whole slices. For asks
// that may spread, the sum over all domains instead (no `where`).
struct SearchShortage {
  std::optional<Spot> where;
  std::int64_t tasks = 0;
  bool leader_fits = true;
};

class TreeSearch {
 public:
  // Fills parts() and returns true, or fills shortage().
  bool find(const TreeCounts& counts, const SearchAsk& ask);
  const std::vector<SearchPart>& parts() const { return parts_; }  // by leaf, ascending
  const SearchShortage& shortage() const { return shortage_; }

 private:
  struct Entry {
    std::int64_t score;
    std::int32_t units, units_beside;  // packs that fit; with the leader in it
    std::int32_t tasks, tasks_beside;
    std::uint32_t index;
    bool leader;
  };
  struct Share {
    std::uint32_t index;
    std::int32_t units;
    bool leader;
  };
  using Order = bool (*)(const Entry&, const Entry&);
  enum class Found : std::uint8_t { One, No, FurtherOut, Several };

  static bool fuller(const Entry& a, const Entry& b);
  static bool better_for_leader(const Entry& a, const Entry& b);
  static bool equal_room(const Entry& a, const Entry& b);

  bool start(const SearchAsk& ask, std::int32_t need, int& row);
  Found find_one(const SearchAsk& ask, int row, SpotRange range, std::int32_t need);
  std::optional<std::uint32_t> tightest(int row, SpotRange range, std::int32_t need) const;
  std::optional<std::uint32_t> tightest_plain(int row, SpotRange range, std::int32_t need) const;
  bool several(int row, SpotRange range, std::int32_t need);
  void descend(int row, std::int32_t need);

  Entry entry(int row, std::uint32_t index, bool by_slices) const;
  void collect(int row, SpotRange range, bool by_slices);
  bool seat_leader(std::int32_t& need, Order order, std::vector<Share>& out);
  bool fill(int row, std::int32_t need, std::vector<Share>& out);
  void take_neighbours(int row, const Entry& like, std::size_t count, std::vector<Share>& out);
  void take_rest(int row, std::int64_t score, std::int32_t need, std::vector<Share>& out);
  void note_shortage(bool one_domain, int row, SpotRange range);

  const TreeCounts* counts_ = nullptr;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> equals_;
  std::vector<Share> chosen_, next_, split_;
  std::vector<SearchPart> parts_;
  SearchShortage shortage_;
};

}  // namespace gs
