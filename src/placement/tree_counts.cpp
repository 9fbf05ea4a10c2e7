#include "placement/tree_counts.hpp"

#include <algorithm>
#include <limits>

#include "base/check.hpp"

namespace gs {

TreeCounts::TreeCounts(const TreeLayout& layout, std::vector<SliceLayer> slices, bool with_leader)
    : layout_(&layout), slices_(std::move(slices)), with_leader_(with_leader) {
  CHECK(!slices_.empty() && slices_.back().row < layout.rows());
  unit_.assign(at(layout.rows()), 1);
  for (std::size_t l = slices_.size(); l-- > 1;) {
    CHECK(slices_[l - 1].row < slices_[l].row && slices_[l - 1].size % slices_[l].size == 0);
    for (int row = slices_[l - 1].row + 1; row <= slices_[l].row; ++row)
      unit_[at(row)] = slices_[l].size;
  }
  rows_.resize(at(layout.rows()));
  for (int k = 0; k < layout.rows(); ++k) {
    Row& row = rows_[at(k)];
    const std::size_t width = layout.width(k);
    row.tasks.assign(width, 0);
    row.score.assign(width, 0);
    if (k <= slice_row()) row.slices.assign(width, 0);
    if (!with_leader_) continue;
    row.tasks_beside.assign(width, 0);
    row.leader.assign(width, 0);
    row.dirty.assign(width, 0);
    if (k <= slice_row()) row.slices_beside.assign(width, 0);
  }
}

void TreeCounts::mark(int row, std::uint32_t i) {
  Row& r = rows_[at(row)];
  if (r.dirty[i] != 0) return;
  r.dirty[i] = 1;
  r.dirty_list.push_back(i);
}

void TreeCounts::add_score(std::uint32_t leaf, std::int64_t gain) {
  std::uint32_t i = leaf;
  for (int k = layout_->leaf_row();; --k) {
    rows_[at(k)].score[i] += gain;
    if (k == 0) return;
    i = layout_->parent(k, i);
  }
}

std::int32_t TreeCounts::packs(std::uint32_t i, std::int32_t tasks) const {
  const int row = slice_row();
  if (row < layout_->leaf_row() && layout_->nowhere(row, i)) return 0;
  return tasks / slices_.front().size;
}

void TreeCounts::set(std::uint32_t leaf, const LeafCount& count) {
  const int last = layout_->leaf_row();
  Row& leaves = rows_[at(last)];
  if (with_leader_) {
    leaves.leader[leaf] = count.leader ? 1 : 0;
    leaves.tasks_beside[leaf] = count.beside;
    mark(last, leaf);
  }
  if (const std::int64_t gain = count.score - leaves.score[leaf]; gain != 0) {
    scored_leaves_ += (count.score != 0 ? 1U : 0U) - (leaves.score[leaf] != 0 ? 1U : 0U);
    add_score(leaf, gain);
  }
  std::int32_t tasks = count.tasks;
  std::int32_t slice_gain = 0;
  std::uint32_t i = leaf;
  for (int k = last;; --k) {
    Row& row = rows_[at(k)];
    const std::int32_t before = row.tasks[i];
    const std::int32_t gain = whole(k, tasks) - whole(k, before);
    if (k == slice_row()) slice_gain = packs(i, tasks) - row.slices[i];
    if (tasks == before && slice_gain == 0) return;
    row.tasks[i] = tasks;
    if (k <= slice_row()) row.slices[i] += slice_gain;
    if (k == 0) return;
    i = layout_->parent(k, i);
    tasks = rows_[at(k - 1)].tasks[i] + gain;
  }
}

// From the children, which are settled. The leader goes where it costs least.
void TreeCounts::recompute_beside(int row, std::uint32_t i) {
  Row& r = rows_[at(row)];
  if (row < layout_->leaf_row()) {
    const Row& below = rows_[at(row + 1)];
    std::int32_t loss = std::numeric_limits<std::int32_t>::max();
    std::int32_t slice_loss = loss;
    bool fits = false;
    const SpotRange range = layout_->children(row, i);
    for (std::uint32_t c = range.begin; c < range.end; ++c) {
      if (below.leader[c] == 0) continue;
      fits = true;
      loss = std::min(loss, whole(row + 1, below.tasks[c]) - whole(row + 1, below.tasks_beside[c]));
      if (row < slice_row())
        slice_loss = std::min(slice_loss, below.slices[c] - below.slices_beside[c]);
    }
    r.leader[i] = fits ? 1 : 0;
    r.tasks_beside[i] = fits ? r.tasks[i] - loss : 0;
    if (row < slice_row()) r.slices_beside[i] = fits ? r.slices[i] - slice_loss : 0;
  }
  if (row == slice_row()) r.slices_beside[i] = packs(i, r.tasks_beside[i]);
}

void TreeCounts::settle() {
  if (!with_leader_) return;
  for (int k = layout_->leaf_row(); k >= 0; --k) {
    Row& row = rows_[at(k)];
    for (const std::uint32_t i : row.dirty_list) {
      recompute_beside(k, i);
      row.dirty[i] = 0;
      if (k > 0) mark(k - 1, layout_->parent(k, i));
    }
    row.dirty_list.clear();
  }
}

void TreeCounts::verify() const {
  TreeCounts fresh(*layout_, slices_, with_leader_);
  const int last = layout_->leaf_row();
  for (std::uint32_t i = 0; i < layout_->width(last); ++i)
    fresh.set(i, {tasks(last, i), tasks_beside(last, i), leader(last, i), score(last, i)});
  fresh.settle();
  for (int k = 0; k <= last; ++k) {
    const Row& a = rows_[at(k)];
    const Row& b = fresh.rows_[at(k)];
    CHECK(a.tasks == b.tasks && a.slices == b.slices && a.score == b.score);
    CHECK(a.tasks_beside == b.tasks_beside && a.slices_beside == b.slices_beside &&
          a.leader == b.leader);
  }
}

}  // namespace gs
