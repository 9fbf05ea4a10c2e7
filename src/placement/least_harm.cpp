#include "placement/least_harm.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/check.hpp"

namespace gs {
namespace {

// Weights of the parts of the cost, found on the trace of docs/placement-gangs.md and on other
// loads, mixes and trees; results move little between half and twice of each.
constexpr double kSpread = 1.0;
constexpr double kFurtherOut = 30.0;  // spread of a row against that of the row inside it
constexpr double kHop = 3.0;
constexpr double kHarm = 0.8;
constexpr double kTie = 1e-3;  // harm of a row that no gang needs
constexpr double kUnit = 1 << 20;

constexpr std::int64_t kMaxWork = std::int64_t{1} << 20;  // steps of the innermost loop
constexpr double kNever = std::numeric_limits<double>::infinity();

double pairs(double tasks) { return tasks * (tasks - 1) / 2; }
double whole(double cost) { return std::nearbyint(cost * kUnit); }

// Where in this ascending list so many begin that lie closest together; the first such place.
std::size_t closest(const std::vector<std::uint32_t>& members, std::size_t count) {
  std::size_t best = 0;
  for (std::size_t i = 1; count > 0 && i + count <= members.size(); ++i)
    if (members[i + count - 1] - members[i] < members[best + count - 1] - members[best]) best = i;
  return best;
}

}  // namespace

void LeastHarm::prepare(const TreeCounts& counts, const HarmScale& scale, std::int32_t count) {
  counts_ = &counts;
  count_ = count;
  work_ = 0;
  too_large_ = false;
  const TreeLayout& layout = counts.layout();
  const int last = layout.leaf_row();
  const auto capacity = [&](int row) {
    return std::max<std::int64_t>(1, scale.capacity[static_cast<std::size_t>(row)]);
  };
  const std::int64_t gang = std::max<std::int64_t>(scale.largest_gang, count);
  rules_.resize(static_cast<std::size_t>(layout.rows()));
  double spread = kSpread;
  for (int row = last; row >= 0; --row) {
    RowRule& rule = rules_[static_cast<std::size_t>(row)];
    if (row < last - 1) spread *= kFurtherOut;
    const std::int64_t fewest = (count + capacity(row) - 1) / capacity(row);
    rule.spread = whole(spread / static_cast<double>(fewest));
    const double harm = row == last || gang > capacity(row + 1) ? kHarm : kTie;
    const auto size = static_cast<double>(std::min(capacity(row), gang));
    if (rule.harm != harm || rule.size != size) rule.values.clear();
    rule.harm = harm;
    rule.size = size;
  }
  near_.resize(static_cast<std::size_t>(count) + 1);
  for (std::size_t c = 0; c < near_.size(); ++c)
    near_[c] = count > 1 ? whole(2 * kHop * pairs(static_cast<double>(c)) / pairs(count)) : 0;
  one_task_nodes_ = capacity(last) == 1;
}

double LeastHarm::value(int row, std::int32_t room) {
  RowRule& rule = rules_[static_cast<std::size_t>(row)];
  for (std::size_t r = rule.values.size(); r <= static_cast<std::size_t>(room); ++r) {
    const double x = static_cast<double>(r) / rule.size;
    // Beyond its size by exact steps: there all domains are equally good, and the tie counts.
    rule.values.push_back(x <= 1 ? whole(rule.harm * x * x)
                                 : rule.values.back() + whole(2 * rule.harm / rule.size));
  }
  return rule.values[static_cast<std::size_t>(room)];
}

// What it costs to put so many tasks into a domain with this room, as far as its row is concerned.
double LeastHarm::term(int row, std::int32_t room, std::int32_t tasks) {
  if (tasks == 0) return 0;
  return rules_[static_cast<std::size_t>(row)].spread - near_[static_cast<std::size_t>(tasks)] +
         value(row, room) - value(row, room - tasks);
}

double LeastHarm::terms_above(int row, std::uint32_t index, std::int32_t tasks) {
  double sum = 0;
  for (; row >= 0; --row) {
    sum += term(row, counts_->tasks(row, index), tasks);
    if (row > 0) index = counts_->layout().parent(row, index);
  }
  return sum;
}

// Whether all that can happen inside a domain of this row costs the same per task.
bool LeastHarm::flat(int row) const {
  const int last = counts_->layout().leaf_row();
  return row == last || (row == last - 1 && one_task_nodes_);
}

// A bound from below of what happens inside: for spread and distance the roomiest children first
// are best, for harm the fullest first.
double LeastHarm::least_inside(int row, std::uint32_t index) {
  const TreeLayout& layout = counts_->layout();
  rooms_.clear();
  const SpotRange range = layout.children(row, index);
  for (std::uint32_t i = range.begin; i < range.end; ++i)
    if (counts_->tasks(row + 1, i) > 0) rooms_.push_back(counts_->tasks(row + 1, i));
  std::sort(rooms_.begin(), rooms_.end());
  double bound = 0;
  std::int32_t left = count_;
  for (auto room = rooms_.rbegin(); left > 0; ++room) {
    const std::int32_t taken = std::min(left, *room);
    bound +=
        rules_[static_cast<std::size_t>(row + 1)].spread - near_[static_cast<std::size_t>(taken)];
    left -= taken;
  }
  left = count_;
  for (auto room = rooms_.begin(); left > 0; ++room) {
    const std::int32_t taken = std::min(left, *room);
    bound += std::floor(value(row + 1, *room) * taken / *room);
    left -= taken;
  }
  if (flat(row + 1)) return bound + inside(row + 1, 0, count_).back();
  for (int inner = row + 2; inner < layout.rows(); ++inner) bound -= near_.back();
  return bound;
}

std::vector<LeastHarm::Kind> LeastHarm::kinds(int row, SpotRange range, std::int32_t most) {
  std::vector<Kind> kinds;
  std::map<std::int32_t, std::size_t> by_room;
  for (std::uint32_t i = range.begin; i < range.end; ++i) {
    const std::int32_t room = counts_->tasks(row, i);
    if (room == 0) continue;
    const auto [it, added] =
        flat(row) ? by_room.try_emplace(room, kinds.size()) : std::pair(by_room.end(), true);
    if (!added) {
      kinds[it->second].members.push_back(i);
      continue;
    }
    Costs costs = inside(row, i, std::min(room, most));
    for (std::size_t c = 1; c < costs.size(); ++c)
      costs[c] += term(row, room, static_cast<std::int32_t>(c));
    kinds.push_back({room, {i}, std::move(costs)});
  }
  return kinds;
}

// The least cost of every number of tasks up to `most` inside the domain, its own term left out.
LeastHarm::Costs LeastHarm::inside(int row, std::uint32_t index, std::int32_t most) {
  if (!flat(row))
    return share_out(row + 1, counts_->layout().children(row, index), most, nullptr, nullptr);
  const double each = row == counts_->layout().leaf_row() ? 0 : term(row + 1, 1, 1);
  Costs costs(static_cast<std::size_t>(most) + 1);
  for (std::size_t c = 0; c < costs.size(); ++c) costs[c] = each * static_cast<double>(c);
  return costs;
}

// The least cost of every number of tasks over these domains of a row. Of alike ones no more are
// looked at than could be full, and one: what a domain costs grows ever slower with its share, so
// two that are alike are never both used in part.
LeastHarm::Costs LeastHarm::share_out(int row, SpotRange range, std::int32_t most,
                                      std::vector<std::size_t>* items, std::vector<Costs>* stages) {
  const std::vector<Kind> all = kinds(row, range, most);
  const auto size = static_cast<std::size_t>(most) + 1;
  Costs best(size, kNever);
  best[0] = 0;
  std::size_t reach = 0;
  for (std::size_t k = 0; k < all.size(); ++k) {
    const Kind& kind = all[k];
    const std::size_t share = kind.costs.size() - 1;
    const std::size_t copies =
        std::min(kind.members.size(), static_cast<std::size_t>(most / kind.room) + 1);
    for (std::size_t i = 0; i < copies; ++i) {
      if (stages != nullptr) {
        stages->push_back(best);
        items->push_back(k);
      }
      Costs next = best;
      const std::size_t before = reach;
      reach = std::min(size - 1, reach + share);
      for (std::size_t c = 1; c <= share; ++c) {
        const double cost = kind.costs[c];
        const std::size_t end = std::min(before + c, size - 1);
        for (std::size_t h = c; h <= end; ++h) next[h] = std::min(next[h], best[h - c] + cost);
        work_ += static_cast<std::int64_t>(end - c + 1);
      }
      best = std::move(next);
    }
  }
  return best;
}

// The tasks onto these domains of a row and on down to the nodes, the way share_out() counted.
void LeastHarm::hand_out(int row, SpotRange range, std::int32_t tasks) {
  const TreeLayout& layout = counts_->layout();
  const auto below = [&](std::uint32_t index, std::int32_t share) {
    if (row == layout.leaf_row())
      parts_.push_back({index, share, false});
    else
      hand_out(row + 1, layout.children(row, index), share);
  };
  if (row == layout.leaf_row() && one_task_nodes_) {
    // The scale is that of an empty cluster; a GPU that was hot or cut then may hold more now.
    std::int32_t nodes = 0;
    for (std::uint32_t i = range.begin; i < range.end; ++i) nodes += counts_->tasks(row, i) > 0;
    std::int32_t extra = std::max(0, tasks - nodes);
    for (std::uint32_t i = range.begin; i < range.end && tasks > 0; ++i) {
      const std::int32_t room = counts_->tasks(row, i);
      if (room == 0) continue;
      const std::int32_t more = std::min(extra, room - 1);
      below(i, 1 + more);
      extra -= more;
      tasks -= 1 + more;
    }
    CHECK(tasks == 0);
    return;
  }
  std::vector<std::size_t> items;  // the kind of each
  std::vector<Costs> stages;
  const Costs best = share_out(row, range, tasks, &items, &stages);
  const std::vector<Kind> all = kinds(row, range, tasks);
  double cost = best[static_cast<std::size_t>(tasks)];
  auto left = static_cast<std::size_t>(tasks);
  std::vector<std::vector<std::int32_t>> shares(all.size());  // by kind
  for (std::size_t i = items.size(); i-- > 0 && left > 0;) {
    const Costs& costs = all[items[i]].costs;
    std::size_t share = 0;
    while (share < costs.size() && share <= left && stages[i][left - share] + costs[share] != cost)
      ++share;
    CHECK(share < costs.size() && share <= left);
    left -= share;
    cost = stages[i][left];
    if (share > 0) shares[items[i]].push_back(static_cast<std::int32_t>(share));
  }
  CHECK(left == 0);
  for (std::size_t k = 0; k < all.size(); ++k) {
    const std::size_t first = closest(all[k].members, shares[k].size());
    for (std::size_t i = 0; i < shares[k].size(); ++i)
      below(all[k].members[first + i], shares[k][i]);
  }
}

// The domains of a row that hold everything, the most promising first.
std::vector<LeastHarm::Candidate> LeastHarm::candidates(int row, SpotRange range) {
  std::vector<Candidate> found;
  for (std::uint32_t i = range.begin; i < range.end; ++i) {
    const std::int32_t room = counts_->tasks(row, i);
    if (room < count_) continue;
    const double bound = terms_above(row, i, count_);
    if (!flat(row)) {
      too_large_ = too_large_ || std::int64_t{room} * count_ > 4 * kMaxWork;
      if (too_large_) return {};
      found.push_back({bound + least_inside(row, i), i});
    } else if (found.empty() || bound < found[0].bound) {  // exact: only the best counts
      found.assign(1, {bound, i});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Candidate& a, const Candidate& b) { return a.bound < b.bound; });
  return found;
}

// One domain of the row for all of it.
bool LeastHarm::find_one(int row, SpotRange range) {
  cost_ = kNever;
  std::uint32_t chosen = 0;
  for (const Candidate& candidate : candidates(row, range)) {
    // The others can't be better, or there is no time to find out.
    if (std::pair(candidate.bound, candidate.index) > std::pair(cost_, chosen)) break;
    if (work_ > kMaxWork && cost_ < kNever) break;
    const double cost =
        terms_above(row, candidate.index, count_) + inside(row, candidate.index, count_).back();
    if (std::pair(cost, candidate.index) >= std::pair(cost_, chosen)) continue;
    cost_ = cost;
    chosen = candidate.index;
  }
  if (cost_ == kNever) return false;
  const TreeLayout& layout = counts_->layout();
  if (row == layout.leaf_row())
    parts_.push_back({chosen, count_, false});
  else
    hand_out(row + 1, layout.children(row, chosen), count_);
  return true;
}

// One task that takes a whole node. What it costs there depends on the domains around it only, and
// of the domains below one parent the fullest is the cheapest; so only one of them is looked at,
// and the rest is a walk over the rooms of the innermost domains.
bool LeastHarm::find_lone() {
  const TreeLayout& layout = counts_->layout();
  const int row = layout.leaf_row() - 1;
  const std::vector<std::int32_t>& rooms = counts_->tasks_row(row);
  cost_ = kNever;
  std::uint32_t chosen = 0;
  const auto look_at = [&](SpotRange range) {
    std::int32_t least = 0;
    for (std::uint32_t i = range.begin; i < range.end; ++i)
      if (rooms[i] > 0 && (least == 0 || rooms[i] < least)) least = rooms[i];
    if (least == 0) return;
    const double own = term(row, least, 1);
    std::uint32_t first = range.begin;  // of those that cost as little
    while (rooms[first] <= 0 || term(row, rooms[first], 1) != own) ++first;
    const double cost = terms_above(row, first, 1);
    if (std::pair(cost, first) < std::pair(cost_, chosen)) cost_ = cost, chosen = first;
  };
  if (row == 0) {
    look_at(layout.places(0));
  } else {
    const SpotRange parents = layout.places(row - 1);
    for (std::uint32_t p = parents.begin; p < parents.end; ++p)
      look_at(layout.children(row - 1, p));
  }
  if (cost_ == kNever) return false;
  const SpotRange nodes = layout.children(row, chosen);
  for (std::uint32_t i = nodes.begin; i < nodes.end; ++i) {
    const std::int32_t room = counts_->tasks(row + 1, i);
    if (room == 0) continue;
    cost_ += term(row + 1, room, 1);
    parts_.push_back({i, 1, false});
    return true;
  }
  CHECK_MSG(false, "a domain has room, and none of its nodes has");
  return false;
}

bool LeastHarm::find_several() {
  const TreeLayout& layout = counts_->layout();
  if (layout.places(0).end != layout.width(0)) return false;  // some nodes are nowhere
  std::int64_t room = 0;
  for (std::uint32_t i = 0; i < layout.width(0); ++i) room += counts_->tasks(0, i);
  if (room < count_ || room * count_ * layout.rows() > 4 * kMaxWork) return false;
  cost_ =
      share_out(0, layout.whole_row(0), count_, nullptr, nullptr)[static_cast<std::size_t>(count_)];
  hand_out(0, layout.whole_row(0), count_);
  return true;
}

bool LeastHarm::find(const TreeCounts& counts, const HarmScale& scale, std::int32_t count,
                     std::optional<Spot> within) {
  CHECK(count > 0 && !counts.with_leader());
  prepare(counts, scale, count);
  parts_.clear();
  const TreeLayout& layout = counts.layout();
  const int outermost = within ? within->row : 0;
  if (count == 1 && one_task_nodes_ && !within && layout.leaf_row() > 0) return find_lone();
  bool found = false;
  for (int row = layout.leaf_row(); row >= outermost && !found && !too_large_; --row)
    found = find_one(row, within ? layout.below(*within, row) : layout.places(row));
  if (!found && !within && !too_large_) found = find_several();
  std::sort(parts_.begin(), parts_.end(),
            [](const SearchPart& a, const SearchPart& b) { return a.leaf < b.leaf; });
  return found;
}

double LeastHarm::cost_of(const TreeCounts& counts, const HarmScale& scale,
                          const std::vector<SearchPart>& parts) {
  std::int32_t count = 0;
  for (const SearchPart& part : parts) count += part.tasks;
  prepare(counts, scale, count);
  const TreeLayout& layout = counts.layout();
  std::map<std::uint32_t, std::int32_t> shares;
  for (const SearchPart& part : parts) shares[part.leaf] += part.tasks;
  double cost = 0;
  for (int row = layout.leaf_row(); row >= 0; --row) {
    std::map<std::uint32_t, std::int32_t> outer;
    for (const auto& [index, tasks] : shares) {
      cost += term(row, counts.tasks(row, index), tasks);
      if (row > 0) outer[layout.parent(row, index)] += tasks;
    }
    shares = std::move(outer);
  }
  return cost;
}

}  // namespace gs
