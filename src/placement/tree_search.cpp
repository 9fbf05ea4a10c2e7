#include "placement/tree_search.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/check.hpp"

namespace gs {

// The order in which several domains are filled.
bool TreeSearch::fuller(const Entry& a, const Entry& b) {
  if (a.score != b.score) return a.score > b.score;
  if (a.units != b.units) return a.units > b.units;
  if (a.tasks != b.tasks) return a.tasks < b.tasks;
  return a.index < b.index;
}

// The order in which domains of the start row are offered the leader.
bool TreeSearch::better_for_leader(const Entry& a, const Entry& b) {
  if (a.score != b.score) return a.score > b.score;
  if (a.units_beside != b.units_beside) return a.units_beside > b.units_beside;
  if (a.tasks_beside != b.tasks_beside) return a.tasks_beside < b.tasks_beside;
  return a.index < b.index;
}

bool TreeSearch::equal_room(const Entry& a, const Entry& b) {
  return a.score == b.score && a.units == b.units && a.tasks == b.tasks;
}

TreeSearch::Entry TreeSearch::entry(int row, std::uint32_t i, bool by_slices) const {
  const TreeCounts& c = *counts_;
  const std::int32_t tasks = c.tasks(row, i);
  const std::int32_t beside = c.tasks_beside(row, i);
  const std::int32_t unit = c.unit(row);
  return {c.score(row, i),
          by_slices ? c.slices(row, i) : tasks / unit,
          by_slices ? c.slices_beside(row, i) : beside / unit,
          tasks,
          beside,
          i,
          c.leader(row, i)};
}

void TreeSearch::collect(int row, SpotRange range, bool by_slices) {
  const bool all = counts_->with_leader();  // a full domain may still have the leader's score rank
  for (std::uint32_t i = range.begin; i < range.end; ++i)
    if (all || counts_->tasks(row, i) > 0) entries_.push_back(entry(row, i, by_slices));
}

// Without scores and a leader, on the row of the slices: fewest tasks that are enough, one array.
std::optional<std::uint32_t> TreeSearch::tightest_plain(int row, SpotRange range,
                                                        std::int32_t need) const {
  constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();
  const std::int32_t enough = need * counts_->slice_layers().front().size;
  const std::int32_t* tasks = counts_->tasks_row(row).data();
  std::int32_t best = kNone;
  for (std::uint32_t i = range.begin; i < range.end; ++i)
    best = std::min(best, tasks[i] >= enough ? tasks[i] : kNone);
  if (best == kNone) return std::nullopt;
  const auto* found = std::find(tasks + range.begin, tasks + range.end, best);
  return static_cast<std::uint32_t>(found - tasks);
}

// The domain for everything: of those that hold it the highest score, then the tightest.
std::optional<std::uint32_t> TreeSearch::tightest(int row, SpotRange range,
                                                  std::int32_t need) const {
  const TreeCounts& c = *counts_;
  if (!c.with_leader() && !c.scored() && row == c.slice_layers().front().row)
    return tightest_plain(row, range, need);
  std::optional<Entry> best;
  for (std::uint32_t i = range.begin; i < range.end; ++i) {
    if (c.slices_beside(row, i) < need || (c.with_leader() && !c.leader(row, i))) continue;
    const Entry e = entry(row, i, true);
    if (!best || std::tuple(-e.score, e.units_beside, e.tasks_beside) <
                     std::tuple(-best->score, best->units_beside, best->tasks_beside))
      best = e;
  }
  return best ? std::optional(best->index) : std::nullopt;
}

TreeSearch::Found TreeSearch::find_one(const SearchAsk& ask, int row, SpotRange range,
                                       std::int32_t need) {
  if (const auto one = tightest(row, range, need)) {
    chosen_.assign(1, {*one, need, counts_->with_leader()});
    return Found::One;
  }
  if (ask.reach == Reach::Required || row <= ask.limit) return Found::No;
  const int outermost = ask.within ? ask.within->row : 0;
  return ask.reach == Reach::Preferred && row > outermost ? Found::FurtherOut : Found::Several;
}

bool TreeSearch::start(const SearchAsk& ask, std::int32_t need, int& row) {
  const TreeLayout& layout = counts_->layout();
  row = std::max(ask.row, ask.limit);
  if (ask.within) row = std::max(row, ask.within->row);
  for (;; --row) {
    const bool near = ask.reach != Reach::Anywhere || row < layout.leaf_row();
    const SpotRange range = ask.within ? layout.below(*ask.within, row)
                            : near     ? layout.places(row)
                                       : layout.whole_row(row);
    const Found found = find_one(ask, row, range, need);
    if (found == Found::One) return true;
    if (found == Found::FurtherOut) continue;
    const SpotRange all = ask.within ? range : layout.whole_row(row);
    if (found == Found::Several && several(row, all, need)) return true;
    note_shortage(found == Found::No, row, found == Found::No ? range : all);
    return false;
  }
}

bool TreeSearch::several(int row, SpotRange range, std::int32_t need) {
  entries_.clear();
  chosen_.clear();
  collect(row, range, true);
  if (counts_->with_leader() && !seat_leader(need, better_for_leader, chosen_)) return false;
  return fill(row, need, chosen_);
}

// Gives the leader the first domain, in this order, that leaves room enough for the workers over
// all. If that one holds the workers as well, the tightest such domain of the same score takes all.
bool TreeSearch::seat_leader(std::int32_t& need, Order order, std::vector<Share>& out) {
  std::int64_t total = 0;
  std::int64_t top_score = std::numeric_limits<std::int64_t>::min();
  for (const Entry& e : entries_) {
    total += e.units;
    top_score = std::max(top_score, e.score);
  }
  const Entry* seat = nullptr;
  for (const Entry& e : entries_)
    if (e.leader && total - e.units + e.units_beside >= need &&
        (seat == nullptr || order(e, *seat)))
      seat = &e;
  if (seat == nullptr) return false;
  if (seat->units_beside >= need && seat->score == top_score) {
    const Entry* first = seat;
    for (const Entry& e : entries_) {
      if (!e.leader || e.score != top_score || e.units_beside < need) continue;
      const bool tie = e.units_beside == seat->units_beside && seat != first && fuller(e, *seat);
      if (e.units_beside < seat->units_beside || tie) seat = &e;
    }
  }
  const std::int32_t taken = std::min(need, seat->units_beside);
  need -= taken;
  out.push_back({seat->index, taken, true});
  entries_.erase(entries_.begin() + (seat - entries_.data()));
  return true;
}

// Whole domains in order, until one holds the rest; then the tightest of its score that does.
bool TreeSearch::fill(int row, std::int32_t need, std::vector<Share>& out) {
  if (need == 0) return true;
  std::erase_if(entries_, [](const Entry& e) { return e.units == 0; });
  // Every domain takes at least one, so no more than `need` of them are looked at in order.
  const std::size_t sorted = std::min(entries_.size(), static_cast<std::size_t>(need) + 1);
  const auto middle = entries_.begin() + static_cast<std::ptrdiff_t>(sorted);
  if (sorted < entries_.size()) std::nth_element(entries_.begin(), middle, entries_.end(), fuller);
  std::sort(entries_.begin(), middle, fuller);
  for (std::size_t i = 0; i < sorted;) {
    const Entry front = entries_[i];
    std::size_t end = i;
    while (end < sorted && equal_room(entries_[end], front)) ++end;
    const auto whole = static_cast<std::size_t>((need - 1) / front.units);
    if (end - i > whole) {  // not all of these equals are needed
      entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(i));
      const std::int32_t rest = need - static_cast<std::int32_t>(whole) * front.units;
      const bool even = rest == front.units;
      take_neighbours(row, front, whole + (even ? 1 : 0), out);
      if (!even) take_rest(row, front.score, rest, out);
      return true;
    }
    for (; i < end; ++i) {
      out.push_back({entries_[i].index, front.units, false});
      need -= front.units;
    }
  }
  return false;
}

// So many of the domains that have just as much room as `like`: those that lie closest together.
void TreeSearch::take_neighbours(int row, const Entry& like, std::size_t count,
                                 std::vector<Share>& out) {
  if (count == 0) return;
  equals_.clear();
  for (const Entry& e : entries_)
    if (equal_room(e, like)) equals_.push_back(e.index);
  std::sort(equals_.begin(), equals_.end());
  const TreeLayout& layout = counts_->layout();
  std::size_t best = 0;
  std::uint32_t best_cost = std::numeric_limits<std::uint32_t>::max();
  for (std::size_t i = 0; i + count <= equals_.size(); ++i) {
    const std::uint32_t first = equals_[i];
    const std::uint32_t last = equals_[i + count - 1];
    const bool apart = row > 0 && layout.parent(row, first) != layout.parent(row, last);
    const std::uint32_t cost = last - first + (apart ? layout.width(row) : 0);
    if (cost < best_cost) best = i, best_cost = cost;
  }
  for (std::size_t i = best; i < best + count; ++i) out.push_back({equals_[i], like.units, false});
  std::erase_if(entries_, [&](const Entry& e) {
    return equal_room(e, like) && e.index >= equals_[best] && e.index <= equals_[best + count - 1];
  });
}

// The rest goes to the tightest domain of this score that holds it; among equals to the one that
// lies nearest to those chosen so far, under the same parent if there is one.
void TreeSearch::take_rest(int row, std::int64_t score, std::int32_t need,
                           std::vector<Share>& out) {
  const TreeLayout& layout = counts_->layout();
  std::uint32_t low = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t high = 0;
  for (const Share& share : out)
    low = std::min(low, share.index), high = std::max(high, share.index);
  const auto distance = [&](std::uint32_t i) -> std::uint32_t {
    if (out.empty() || (low < i && i < high)) return 0;
    const std::uint32_t nearest = i < low ? low : high;
    const bool apart = row > 0 && layout.parent(row, i) != layout.parent(row, nearest);
    return (i < low ? low - i : i - high) + (apart ? layout.width(row) : 0);
  };
  const auto key = [&](const Entry& e) {
    return std::tuple(e.units, e.tasks, distance(e.index), e.index);
  };
  const Entry* best = nullptr;
  for (const Entry& e : entries_) {
    if (e.score != score || e.units < need) continue;
    if (best == nullptr || key(e) < key(*best)) best = &e;
  }
  CHECK(best != nullptr);
  out.push_back({best->index, need, false});
}

// Splits what `chosen_` was given at `row` over the rows below. The counts promise that it fits.
void TreeSearch::descend(int row, std::int32_t need) {
  const TreeCounts& c = *counts_;
  const TreeLayout& layout = c.layout();
  const SliceLayer& outer = c.slice_layers().front();
  for (; row < outer.row; ++row) {
    entries_.clear();
    next_.clear();
    for (const Share& share : chosen_) collect(row + 1, layout.children(row, share.index), true);
    std::int32_t left = need;
    CHECK(!c.with_leader() || seat_leader(left, fuller, next_));
    CHECK(fill(row + 1, left, next_));
    chosen_.swap(next_);
  }
  for (Share& share : chosen_) share.units *= outer.size;
  for (; row < layout.leaf_row(); ++row) {
    const std::int32_t unit = c.unit(row + 1);
    next_.clear();
    std::vector<Share>& out = split_;
    for (const Share& share : chosen_) {
      entries_.clear();
      out.clear();
      collect(row + 1, layout.children(row, share.index), false);
      std::int32_t left = share.units / unit;
      CHECK(!share.leader || seat_leader(left, fuller, out));
      CHECK(fill(row + 1, left, out));
      for (Share& part : out) part.units *= unit;
      next_.insert(next_.end(), out.begin(), out.end());
    }
    chosen_.swap(next_);
  }
}

void TreeSearch::note_shortage(bool one_domain, int row, SpotRange range) {
  const TreeCounts& c = *counts_;
  const std::int64_t size = c.slice_layers().front().size;
  shortage_ = {};
  shortage_.leader_fits = !c.with_leader();
  std::int32_t best = -1;
  for (std::uint32_t i = range.begin; i < range.end; ++i) {
    shortage_.leader_fits = shortage_.leader_fits || c.leader(row, i);
    if (!one_domain) {
      shortage_.tasks += c.slices(row, i) * size;
    } else if (c.slices_beside(row, i) > best) {
      best = c.slices_beside(row, i);
      shortage_.where = Spot{row, i};
    }
  }
  if (shortage_.where) shortage_.tasks = best * size;
}

bool TreeSearch::find(const TreeCounts& counts, const SearchAsk& ask) {
  counts_ = &counts;
  const SliceLayer& outer = counts.slice_layers().front();
  CHECK(ask.count % outer.size == 0 && ask.row <= outer.row);
  CHECK(!ask.within || ask.within->row <= outer.row);
  parts_.clear();
  const std::int32_t need = ask.count / outer.size;
  int row = 0;
  if (!start(ask, need, row)) return false;
  descend(row, need);
  for (const Share& share : chosen_)
    if (share.units > 0 || share.leader) parts_.push_back({share.index, share.units, share.leader});
  std::sort(parts_.begin(), parts_.end(),
            [](const SearchPart& a, const SearchPart& b) { return a.leaf < b.leaf; });
  return true;
}

}  // namespace gs
