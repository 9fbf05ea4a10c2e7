// Gangs whose members have rules about each other. The engine places members side by side and knows
// nothing of such rules; so, where its plan breaks them, the plan is made member by member.
//
// Members that lie well are tied to their nodes. Then a few more at a time are tried beside them,
// with the nodes that go with those, in a dry run of the engine; of these again those that lie well
// are tied. When all are tied, the gang enters the engine like that and starts as a whole. The
// first place that is found counts: where that leads nowhere, the gang waits and is tried again.
#include <algorithm>
#include <set>
#include <utility>

#include "drivers/kubernetes/desk.hpp"

namespace gs::kube {
namespace {

constexpr std::size_t kFirstBatch = 8;

}  // namespace

std::string Desk::tied_key(const Unit& unit, const std::string& node) {
  return "tied " + unit.gang + " " + node;
}

void Desk::solve_turned_back() {
  for (const std::string& id : std::exchange(unsolved_, {})) {
    const auto it = units_.find(id);
    if (it == units_.end()) continue;
    Unit& unit = it->second;
    if (is_whole(unit)) {
      solve(unit);
      reenter(unit);
    } else {
      count_members(unit);  // the engine waits for those that are missing
    }
  }
}

// Whether it can start with the members that are there, beside those that are done.
bool Desk::is_whole(const Unit& unit) {
  const auto here = std::count_if(unit.slots.begin(), unit.slots.end(), [](const Slot& slot) {
    return !slot.pod.empty() || slot.stage == Stage::Done;
  });
  return here >= unit.min;
}

void Desk::solve(Unit& unit) {
  std::vector<const Pod*> fellows;
  for (const Slot& slot : unit.slots)
    if (!slot.pod.empty()) fellows.push_back(&pods_.at(slot.pod).pod);
  const auto is_open = [](const Slot& slot) { return !slot.pod.empty() && slot.pin.empty(); };
  std::set<std::string> made;
  for (std::size_t batch = kFirstBatch; batch > 0;) {
    const auto next = std::find_if(unit.slots.begin(), unit.slots.end(), is_open);
    if (next == unit.slots.end()) break;
    // Those like the first that has no place yet.
    const PodRecord& first = pods_.at(next->pod);
    const std::optional<RuleBook> book = book_of(first.pod, fellows);
    std::vector<std::size_t> tried;
    for (std::size_t i = 0; i < unit.slots.size() && tried.size() < batch; ++i) {
      if (!is_open(unit.slots[i])) continue;
      const PodRecord& record = pods_.at(unit.slots[i].pod);
      if (record.ask.request != first.ask.request) continue;
      const std::optional<RuleBook> other = book_of(record.pod, fellows);
      if (book.has_value() == other.has_value() && (!book || book->key == other->key))
        tried.push_back(i);
    }
    const std::size_t found = try_beside(unit, tried, book, made);
    // Many may not fit where one does.
    batch = found > 0 ? 2 * found : batch > 1 ? 1 : 0;
  }
  for (const std::string& key : made) {
    ++families_.at(key).users;
    leave_family(key);
  }
}

// How many of them were tied to a node.
std::size_t Desk::try_beside(Unit& unit, const std::vector<std::size_t>& tried,
                             const std::optional<RuleBook>& book, std::set<std::string>& made) {
  Job job = job_of(unit, pods_.at(unit.slots[tried.front()].pod));
  job.id = "plan of " + unit.id;
  std::vector<PodRules::Beside> tied;
  std::vector<std::pair<std::string, SharedRequest>> groups;
  const auto add = [&](const std::string& key, const SharedRequest& request) {
    std::size_t at = 0;
    while (at < groups.size() && (groups[at].first != key || groups[at].second != request)) ++at;
    if (at == groups.size()) {
      groups.emplace_back(key, request);
      Group group;
      group.name = "group-" + std::to_string(at);
      group.request = marked(*request, key);
      group.count = 0;
      job.groups.push_back(std::move(group));
    }
    ++job.groups[at].count;
    return at;
  };
  job.groups.clear();
  for (const Slot& slot : unit.slots) {
    if (slot.pin.empty()) continue;
    const PodRecord& record = pods_.at(slot.pod);
    tied.emplace_back(&record.pod, slot.pin);
    const std::string key = tied_key(unit, slot.pin);
    made.insert(key);
    mark_nodes(add_family(key), {slot.pin});
    add(key, record.ask.request);
  }
  std::string key;
  if (book) {
    key = "beside " + unit.gang;
    made.insert(key);
    mark_nodes(add_family(key), nodes_beside(*book, tied));
  }
  std::size_t last = 0;
  for (const std::size_t index : tried)
    last = add(key, pods_.at(unit.slots[index].pod).ask.request);
  put_dirty_nodes();
  const Result<DryRun> run = engine_->dry_run(job, now_);
  if (!run || !run->starts_now) return 0;
  // The new ones lie where they were put if they go with all that are tied, one after the other.
  std::size_t found = 0;
  for (const auto& [pod, node] : tied) count_in(*pod, node);
  for (const TaskPlace& place : run->places) {
    if (place.task.group != static_cast<int>(last)) continue;
    const auto rank = static_cast<std::size_t>(place.task.rank);
    if (rank >= tried.size()) continue;
    Slot& slot = unit.slots[tried[rank]];
    const Pod& pod = pods_.at(slot.pod).pod;
    if (!may_stand(pod, place.node)) continue;
    count_in(pod, place.node);
    slot.pin = place.node;
    ++found;
  }
  for (const Slot& slot : unit.slots)
    if (!slot.pin.empty()) count_out(slot.pod);
  return found;
}

}  // namespace gs::kube
