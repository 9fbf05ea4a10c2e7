#include "queue/members.hpp"

#include <algorithm>
#include <set>

namespace gs {
namespace {

// The groups and sets of a job with their counts, seen from one moment.
class Roster {
 public:
  Roster(const JobShape& shape, std::vector<int> active)
      : shape_(shape), active_(std::move(active)) {}

  struct Item {
    bool is_set = false;
    int index = 0;
  };
  std::vector<Item> items(int set) const {
    std::vector<Item> items;
    for (std::size_t s = 1; s < shape_.sets.size(); ++s)
      if (shape_.sets[s].parent == set) items.push_back({true, static_cast<int>(s)});
    for (std::size_t g = 0; g < shape_.groups.size(); ++g)
      if (shape_.groups[g].set == set) items.push_back({false, static_cast<int>(g)});
    return items;
  }
  int active(const Item& item) const {
    if (!item.is_set) return active_[static_cast<std::size_t>(item.index)];
    int satisfied_items = 0;
    for (const Item& below : items(item.index)) satisfied_items += satisfied(below) ? 1 : 0;
    return satisfied_items;
  }
  int need(const Item& item) const {
    if (!item.is_set) return shape_.groups[static_cast<std::size_t>(item.index)].min;
    const int wanted = shape_.sets[static_cast<std::size_t>(item.index)].min_children;
    return wanted > 0 ? wanted : static_cast<int>(items(item.index).size());
  }
  bool satisfied(const Item& item) const { return active(item) >= need(item); }
  bool has_surplus(const Item& item) const {
    if (active(item) > need(item)) return true;
    if (!item.is_set) return false;
    const std::vector<Item> below = items(item.index);
    return std::any_of(below.begin(), below.end(), [&](const Item& i) { return has_surplus(i); });
  }
  const std::string& name(const Item& item) const {
    return item.is_set ? shape_.sets[static_cast<std::size_t>(item.index)].name
                       : shape_.groups[static_cast<std::size_t>(item.index)].name;
  }
  // Who is served first.
  std::vector<Item> ordered(int set) const {
    std::vector<Item> list = items(set);
    std::stable_sort(list.begin(), list.end(),
                     [&](const Item& a, const Item& b) { return before(a, b); });
    return list;
  }

 private:
  bool before(const Item& a, const Item& b) const {
    const std::int64_t active_a = active(a), active_b = active(b);
    const std::int64_t need_a = need(a), need_b = need(b);
    const bool open_a = active_a < need_a, open_b = active_b < need_b;
    if (open_a != open_b) return open_a;
    if (!open_a) {
      if ((need_a == 0) != (need_b == 0)) return need_b == 0;
      const std::int64_t ahead_a = need_a == 0 ? active_a : active_a * need_b;
      const std::int64_t ahead_b = need_b == 0 ? active_b : active_b * need_a;
      if (ahead_a != ahead_b) return ahead_a < ahead_b;
    }
    return name(a) < name(b);
  }

  const JobShape& shape_;
  std::vector<int> active_;
};

constexpr Roster::Item kJob{true, 0};

// `waiting` holds the free ranks of each group, ascending.
using RanksByGroup = std::vector<std::vector<int>>;

void add_group(const Roster& roster, int group, const RanksByGroup& waiting,
               std::vector<Member>& out) {
  const auto& ranks = waiting[static_cast<std::size_t>(group)];
  const Roster::Item item{false, group};
  const int missing = roster.need(item) - roster.active(item);
  const std::size_t count = std::min(ranks.size(), static_cast<std::size_t>(std::max(missing, 1)));
  for (std::size_t i = 0; i < count; ++i) out.push_back({group, ranks[i]});
}

void add_next(const Roster& roster, const Roster::Item& item, const RanksByGroup& waiting,
              std::vector<Member>& out) {
  if (!item.is_set) return add_group(roster, item.index, waiting, out);
  const std::vector<Roster::Item> below = roster.ordered(item.index);
  if (roster.satisfied(item)) {
    for (const Roster::Item& i : below) {
      add_next(roster, i, waiting, out);
      if (!out.empty()) return;
    }
    return;
  }
  const auto count = std::min(below.size(), static_cast<std::size_t>(roster.need(item)));
  for (std::size_t i = 0; i < count; ++i)
    if (!roster.satisfied(below[i])) add_next(roster, below[i], waiting, out);
}

using TasksByGroup = std::vector<std::vector<TaskId>>;  // active ones, highest rank first

void add_all(const Roster& roster, const Roster::Item& item, const TasksByGroup& tasks,
             std::vector<TaskId>& out) {
  if (item.is_set) {
    for (const Roster::Item& below : roster.items(item.index)) add_all(roster, below, tasks, out);
    return;
  }
  const auto& list = tasks[static_cast<std::size_t>(item.index)];
  out.insert(out.end(), list.begin(), list.end());
}

// Surplus, deepest first; nothing if there is none.
void add_surplus(const Roster& roster, const Roster::Item& item, const TasksByGroup& tasks,
                 std::vector<TaskId>& out) {
  if (!item.is_set) {
    const auto& list = tasks[static_cast<std::size_t>(item.index)];
    if (roster.active(item) > roster.need(item) && !list.empty()) out.push_back(list.front());
    return;
  }
  const int satisfied = roster.active(item);
  if (satisfied == 0) return;
  std::vector<Roster::Item> below = roster.ordered(item.index);
  std::reverse(below.begin(), below.end());
  if (roster.has_surplus(item))
    for (const Roster::Item& i : below) {
      add_surplus(roster, i, tasks, out);
      if (!out.empty()) return;
    }
  if (satisfied <= roster.need(item)) return;
  for (const Roster::Item& i : below) {
    add_all(roster, i, tasks, out);
    if (!out.empty()) return;
  }
}

// Members that have succeeded stand for themselves: nobody waits for them any more.
std::vector<int> counts_with_ended(const JobRecord& record, std::vector<int> active) {
  for (const auto& [group, rank] : record.ended) ++active[group];
  return active;
}

std::vector<int> active_counts(const JobRecord& record) {
  return counts_with_ended(record, {record.active.begin(), record.active.end()});
}

RanksByGroup waiting_ranks(const Cluster& cluster, JobId job, const TaskMarks* evicted) {
  const JobShape& shape = cluster.shape_of(job);
  const JobRecord& record = cluster.job(job);
  RanksByGroup ranks(shape.groups.size());
  // What was evicted in the trial at hand ran, so it had arrived.
  std::set<std::pair<int, int>> back, leaving;
  for (std::size_t i = 0; record.releasing_tasks > 0 && i < record.tasks.size(); ++i) {
    const TaskId id = record.tasks[i];
    const Task& task = cluster.task(id);
    if (task.state != TaskState::Releasing) continue;
    const bool in_trial = evicted != nullptr && evicted->has(id);
    (in_trial ? back : leaving).emplace(task.group, task.rank);
  }
  // Whoever is active, on its way out or done has arrived; of the others the first ones have.
  int left = record.arrived < 0 ? 0 : record.arrived - shape.tasks;
  const auto is_other = [&](std::size_t group, int rank) {
    const std::pair<int, int> member{static_cast<int>(group), rank};
    return !leaving.contains(member) && !back.contains(member);
  };
  for (std::size_t g = 0; g < shape.groups.size(); ++g) {
    ranks[g] = cluster.missing_ranks(job, static_cast<int>(g));
    left += static_cast<int>(std::count_if(ranks[g].begin(), ranks[g].end(),
                                           [&](int rank) { return is_other(g, rank); }));
  }
  for (std::size_t g = 0; g < shape.groups.size(); ++g)
    std::erase_if(ranks[g], [&](int rank) {
      return is_other(g, rank) ? left-- <= 0 : leaving.contains({static_cast<int>(g), rank});
    });
  return ranks;
}

}  // namespace

ShapeId shape_of(const Cluster& cluster, JobId job, int group) {
  return cluster.shape_of(job).groups[static_cast<std::size_t>(group)].shape;
}

std::vector<Member> waiting_members(const Cluster& cluster, JobId job, const TaskMarks* evicted) {
  const RanksByGroup ranks = waiting_ranks(cluster, job, evicted);
  std::vector<Member> members;
  for (std::size_t g = 0; g < ranks.size(); ++g)
    for (const int rank : ranks[g]) members.push_back({static_cast<int>(g), rank});
  return members;
}

std::vector<Member> next_members(const Cluster& cluster, JobId job, const TaskMarks* evicted) {
  const Roster roster(cluster.shape_of(job), active_counts(cluster.job(job)));
  std::vector<Member> members;
  add_next(roster, kJob, waiting_ranks(cluster, job, evicted), members);
  return members;
}

std::vector<Member> first_members(const JobShape& shape) {
  RanksByGroup ranks(shape.groups.size());
  for (std::size_t g = 0; g < shape.groups.size(); ++g)
    for (int rank = 0; rank < shape.groups[g].count; ++rank) ranks[g].push_back(rank);
  std::vector<Member> members;
  add_next(Roster(shape, std::vector<int>(shape.groups.size(), 0)), kJob, ranks, members);
  return members;
}

bool is_ready(const Cluster& cluster, JobId job, const TaskMarks* evicted) {
  const JobShape& shape = cluster.shape_of(job);
  const RanksByGroup ranks = waiting_ranks(cluster, job, evicted);
  std::vector<int> alive = active_counts(cluster.job(job));
  for (std::size_t g = 0; g < alive.size(); ++g) alive[g] += static_cast<int>(ranks[g].size());
  return Roster(shape, std::move(alive)).satisfied(kJob);
}

Fill fill_of(const Cluster& cluster, JobId job, const TaskMarks* gone) {
  const JobShape& shape = cluster.shape_of(job);
  const JobRecord& record = cluster.job(job);
  std::vector<int> active = active_counts(record);
  if (gone != nullptr)
    for (const TaskId id : record.tasks) {
      const Task& task = cluster.task(id);
      if (task.state != TaskState::Releasing && gone->has(id)) --active[task.group];
    }
  Fill fill = Fill::AtMin;
  for (std::size_t g = 0; g < shape.groups.size(); ++g) {
    if (active[g] < shape.groups[g].min) return Fill::BelowMin;
    if (active[g] > shape.groups[g].min) fill = Fill::AboveMin;
  }
  return fill;
}

std::vector<TaskId> next_to_leave(const Cluster& cluster, JobId job, const TaskMarks* taken) {
  const JobShape& shape = cluster.shape_of(job);
  TasksByGroup tasks(shape.groups.size());
  for (const TaskId id : cluster.job(job).tasks) {
    const Task& task = cluster.task(id);
    if (task.state == TaskState::Releasing || (taken != nullptr && taken->has(id))) continue;
    tasks[task.group].push_back(id);
  }
  std::vector<int> active;
  for (auto& list : tasks) {
    std::sort(list.begin(), list.end(),
              [&](TaskId a, TaskId b) { return cluster.task(a).rank > cluster.task(b).rank; });
    active.push_back(static_cast<int>(list.size()));
  }
  const Roster roster(shape, counts_with_ended(cluster.job(job), std::move(active)));
  std::vector<TaskId> unit;
  if (shape.elastic() || shape.sets.size() > 1) add_surplus(roster, kJob, tasks, unit);
  if (unit.empty()) add_all(roster, kJob, tasks, unit);
  return unit;
}

}  // namespace gs
