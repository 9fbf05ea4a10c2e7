// How many tasks of one kind, and how many whole slices of them, each domain of the tree can hold.
//
// Kept by difference: a node that changed costs one step per level, so a search reads counts that
// are exact and never walks the nodes. With a leader (one task of another kind that sits together
// with the workers) it also keeps what is left beside the leader at its best place.
//
// Invariants, for a domain d of row k with children c; z, S = size and row of the outermost slice:
//   tasks(d)  = sum of tasks(c), each rounded down to whole inner slices where k >= S
//   slices(d) = tasks(d) / z where k == S, sum of slices(c) where k < S; no slice lies "nowhere"
//   *_beside(d) = the same, less the smallest loss over the children where the leader fits
//   (0 where it fits nowhere; equal to tasks / slices if there is no leader)
#pragma once

#include <cstdint>
#include <vector>

#include "placement/tree_layout.hpp"

namespace gs {

// Tasks in packs of `size`, each inside one domain of this row.
struct SliceLayer {
  int row = 0;
  int size = 1;
  bool operator==(const SliceLayer&) const = default;
};

struct LeafCount {
  std::int32_t tasks = 0;
  std::int32_t beside = 0;  // tasks that fit next to the leader; = tasks if it does not fit
  bool leader = false;      // the leader fits
  std::int64_t score = 0;   // preferred affinity
};

class TreeCounts {
 public:
  // `slices` outermost first, at least one; the last row with size 1 stands for "no slices".
  TreeCounts(const TreeLayout& layout, std::vector<SliceLayer> slices, bool with_leader);

  void set(std::uint32_t leaf, const LeafCount& count);  // visible after settle()
  void settle();

  const TreeLayout& layout() const { return *layout_; }
  const std::vector<SliceLayer>& slice_layers() const { return slices_; }
  bool with_leader() const { return with_leader_; }
  bool scored() const { return scored_leaves_ > 0; }
  // Size of the packs that a domain of `row` hands out; 1 where tasks go one by one.
  std::int32_t unit(int row) const { return unit_[at(row)]; }

  std::int32_t tasks(int row, std::uint32_t i) const { return rows_[at(row)].tasks[i]; }
  std::int32_t slices(int row, std::uint32_t i) const { return rows_[at(row)].slices[i]; }
  std::int32_t tasks_beside(int row, std::uint32_t i) const {
    return with_leader_ ? rows_[at(row)].tasks_beside[i] : tasks(row, i);
  }
  std::int32_t slices_beside(int row, std::uint32_t i) const {
    return with_leader_ ? rows_[at(row)].slices_beside[i] : slices(row, i);
  }
  bool leader(int row, std::uint32_t i) const {
    return with_leader_ && rows_[at(row)].leader[i] != 0;
  }
  std::int64_t score(int row, std::uint32_t i) const { return rows_[at(row)].score[i]; }
  const std::vector<std::int32_t>& tasks_row(int row) const { return rows_[at(row)].tasks; }

  void verify() const;  // recomputes everything; aborts on a difference

 private:
  struct Row {
    std::vector<std::int32_t> tasks, slices;  // slices: rows down to the outermost slice's
    std::vector<std::int64_t> score;
    // Only with a leader:
    std::vector<std::int32_t> tasks_beside, slices_beside;
    std::vector<std::uint8_t> leader;
    std::vector<std::uint8_t> dirty;  // the parts beside the leader are to be recomputed
    std::vector<std::uint32_t> dirty_list;
  };
  static std::size_t at(int row) { return static_cast<std::size_t>(row); }
  int slice_row() const { return slices_.front().row; }
  std::int32_t whole(int row, std::int32_t tasks) const {
    return tasks / unit_[at(row)] * unit_[at(row)];
  }
  std::int32_t packs(std::uint32_t i,
                     std::int32_t tasks) const;  // slices of a domain of slice_row()
  void add_score(std::uint32_t leaf, std::int64_t gain);
  void mark(int row, std::uint32_t i);
  void recompute_beside(int row, std::uint32_t i);

  const TreeLayout* layout_;
  std::vector<SliceLayer> slices_;
  std::vector<std::int32_t> unit_;  // by row
  std::vector<Row> rows_;
  bool with_leader_;
  std::uint32_t scored_leaves_ = 0;
};

}  // namespace gs
