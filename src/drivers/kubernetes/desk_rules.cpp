// Rules between pods, as the engine understands them: sets of nodes.
//
// Pods that may go to the same nodes are a *family*. Each family has a mark, a label that no user
// can write, on the nodes that its pods may use now; their requests demand the mark. So requests
// stay as they are while sets change, and the engine looks again only at nodes that changed.
//
// Sets are made before a cycle. What the cycle places is looked at in order, each as if those
// before it were there already; whoever does not fit to them goes back into the queue, and the next
// cycle follows at once with new sets. A gang goes back as a whole (desk_gangs.cpp): nothing of it
// is bound before all its members lie well.
#include <algorithm>
#include <tuple>

#include "base/check.hpp"
#include "drivers/kubernetes/desk.hpp"
#include "wire/kube/task_request.hpp"

namespace gs::kube {
namespace {

// People read it in the reason why a pod waits; no label of a node can have spaces.
std::string mark_of(int number) { return "rules between pods/" + std::to_string(number); }
std::string mark_of(int number, std::size_t wish) {
  return mark_of(number) + "/" + std::to_string(wish);
}

}  // namespace

// ---------------------------------------------------------------- families

Desk::Family& Desk::add_family(const std::string& key) {
  Family& family = families_[key];
  if (family.number > 0) return family;
  family.number = free_numbers_.empty() ? ++last_number_ : *free_numbers_.begin();
  free_numbers_.erase(family.number);
  return family;
}

// The family of a pod, by its key; empty: no rule concerns it.
std::string Desk::family_of(const PodRecord& record, const std::vector<const Pod*>& fellows) {
  std::optional<RuleBook> book = book_of(record.pod, fellows);
  if (!book) return {};
  std::string key = book->key;
  Family& family = add_family(key);
  if (!family.book) family.book = std::move(*book);
  return key;
}

// Whether other rules concern a waiting pod than when its unit was made: its labels were changed.
// Members that are tied to nodes are planned anew by themselves.
bool Desk::is_of_another_family(const PodRecord& record) const {
  const Unit& unit = units_.at(record.unit);
  std::vector<const Pod*> fellows;
  for (const Slot& slot : unit.slots) {
    if (!slot.pin.empty()) return false;
    if (unit.slots.size() > 1 && !slot.pod.empty()) fellows.push_back(&pods_.at(slot.pod).pod);
  }
  const std::optional<RuleBook> book = book_of(record.pod, fellows);
  const auto group = static_cast<std::size_t>(unit.slots[record.slot].task.group);
  return unit.families[group] != (book ? book->key : std::string{});
}

void Desk::leave_family(const std::string& key) {
  const auto it = families_.find(key);
  if (it == families_.end() || --it->second.users > 0) return;
  for (auto& [mark, nodes] : it->second.marks) set_mark(mark, nodes, {});
  free_numbers_.insert(it->second.number);
  families_.erase(it);
}

void Desk::forget_families(const Unit& unit) {
  ruled_waiting_.erase(unit.id);
  tied_.erase(unit.id);
  for (const std::string& key : unit.families)
    if (!key.empty()) leave_family(key);
}

void Desk::set_mark(const std::string& mark, std::set<std::string>& nodes,
                    std::set<std::string> now) {
  const auto change = [&](const std::string& name, bool has) {
    const auto it = nodes_.find(name);
    if (it == nodes_.end()) return;
    if (has)
      it->second.marks.insert(mark);
    else
      it->second.marks.erase(mark);
    touch_node(name);
  };
  for (const std::string& name : nodes)
    if (!now.contains(name)) change(name, false);
  for (const std::string& name : now)
    if (!nodes.contains(name)) change(name, true);
  nodes = std::move(now);
}

void Desk::mark_nodes(Family& family, std::set<std::string> nodes) {
  const std::string mark = mark_of(family.number);
  set_mark(mark, family.marks[mark], std::move(nodes));
}

std::set<std::string> Desk::nodes_like(const LabelTerms& terms) const {
  std::set<std::string> names;
  for (const auto& [name, node] : rules_.nodes())
    if (gs::matches(terms, node->labels)) names.insert(name);
  return names;
}

// Sets of those families of which somebody waits.
void Desk::refresh_families() {
  for (const std::string& id :
       std::vector<std::string>(ruled_waiting_.begin(), ruled_waiting_.end())) {
    const auto it = units_.find(id);
    if (it == units_.end() || !looks_for_a_place(it->second)) {
      ruled_waiting_.erase(id);
      continue;
    }
    for (const std::string& key : it->second.families)
      if (!key.empty()) refresh(families_.at(key));
  }
}

void Desk::refresh(Family& family) {
  if (!family.book || family.version == rules_version()) return;
  family.version = rules_version();
  mark_nodes(family, nodes_for(*family.book, rules_.terms(*family.book)));
  const std::vector<PreferredTerms> wishes = rules_.wishes(*family.book);
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    const std::string wish = mark_of(family.number, i);
    set_mark(wish, family.marks[wish], nodes_like(wishes[i].terms));
  }
}

// Whether where a member may lie follows from where another one does.
bool Desk::rules_its_members(const Unit& unit) const {
  std::set<std::string> keys(unit.families.begin(), unit.families.end());
  keys.erase(std::string{});
  if (unit.slots.size() < 2 || keys.empty()) return false;
  const std::optional<RuleBook>& book = families_.at(*keys.begin()).book;
  return keys.size() > 1 || !book || !book->is_about_choosers_only();
}

// The request of a group, with the marks that its family demands and wishes for.
TaskRequest Desk::marked(TaskRequest request, const std::string& key) {
  if (key.empty()) return request;
  const Family& family = families_.at(key);
  require({{mark_of(family.number), LabelOp::Exists, {}}}, request);
  if (!family.book) return request;
  const std::vector<PreferredTerms> wishes = rules_.wishes(*family.book);
  for (std::size_t i = 0; i < wishes.size(); ++i)
    request.preferred_affinity.push_back(
        {wishes[i].weight, {{mark_of(family.number, i), LabelOp::Exists, {}}}});
  return request;
}

// ---------------------------------------------------------------- groups of a unit

// Members that ask for the same and may go to the same nodes are one group of the engine.
void Desk::regroup(Unit& unit) {
  std::vector<const Pod*> fellows;
  std::vector<PodRules::Beside> tied;
  for (const Slot& slot : unit.slots) {
    if (slot.pod.empty()) continue;
    const Pod& pod = pods_.at(slot.pod).pod;
    if (unit.slots.size() > 1) fellows.push_back(&pod);
    if (!slot.pin.empty()) tied.emplace_back(&pod, slot.pin);
  }
  std::vector<std::string> before = std::move(unit.families);
  unit.groups.clear();
  unit.families.clear();
  std::vector<int> ranks;
  std::vector<std::string> keys;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < unit.slots.size(); ++i) {
    Slot& slot = unit.slots[i];
    const PodRecord& record = pods_.at(slot.pod);
    std::string key = family_of(record, fellows);
    if (!key.empty()) seen.insert(key);
    if (!slot.pin.empty()) key = tied_key(unit, slot.pin);
    std::size_t group = 0;
    while (group < keys.size() && (keys[group] != key || unit.groups[group] != record.ask.request))
      ++group;
    if (group == keys.size()) {
      unit.groups.push_back(record.ask.request);
      ranks.push_back(0);
      unit.families.push_back(tied.empty() ? key : tie(unit, slot, key, tied));
      if (!unit.families.back().empty()) ++families_.at(unit.families.back()).users;
      keys.push_back(std::move(key));
    }
    slot.task = {unit.id, static_cast<int>(group), ranks[group]++};
  }
  for (const std::string& key : before)
    if (!key.empty()) leave_family(key);
  for (const std::string& key : seen) {  // those that nobody took after all
    if (const auto it = families_.find(key); it == families_.end() || it->second.users > 0)
      continue;
    ++families_.at(key).users;
    leave_family(key);
  }
  const bool ruled = std::any_of(unit.families.begin(), unit.families.end(),
                                 [](const std::string& key) { return !key.empty(); });
  if (ruled) ruled_waiting_.insert(unit.id);
}

// A set for this one plan: the node that a member is tied to, or what goes with those.
std::string Desk::tie(const Unit& unit, const Slot& slot, const std::string& key,
                      const std::vector<PodRules::Beside>& tied) {
  if (key.empty()) return key;
  std::string own = slot.pin.empty() ? "beside " + unit.gang + " " + key : key;
  std::set<std::string> nodes{slot.pin};
  if (slot.pin.empty()) nodes = nodes_beside(*families_.at(key).book, tied);
  mark_nodes(add_family(own), std::move(nodes));
  return own;
}

// ---------------------------------------------------------------- what the engine has placed

// Those of them that may lie where they were placed, beside everybody and each other; they are
// counted there. Of a unit that has not begun, all or none.
std::vector<std::size_t> Desk::admit(Unit& unit, const std::vector<std::size_t>& slots) {
  std::vector<std::size_t> good, left = slots;
  for (std::size_t before = left.size() + 1; left.size() < before && !left.empty();) {
    before = left.size();
    std::erase_if(left, [&](std::size_t index) {
      const Slot& slot = unit.slots[index];
      const Pod& pod = pods_.at(slot.pod).pod;
      if (!may_stand(pod, slot.place->node)) return false;
      count_in(pod, slot.place->node);
      good.push_back(index);
      return true;
    });
  }
  if (left.empty()) return slots;
  ++turned_back_;
  const bool runs = std::any_of(unit.slots.begin(), unit.slots.end(), [](const Slot& slot) {
    return slot.stage == Stage::Binding || slot.stage == Stage::Bound;
  });
  if (!runs) {
    turn_back(unit, good);
    return {};
  }
  for (const std::size_t index : left) step_aside(unit, unit.slots[index]);
  return good;
}

// The next plan begins with those that lie well.
void Desk::turn_back(Unit& unit, const std::vector<std::size_t>& good) {
  for (Slot& slot : unit.slots) slot.pin.clear();
  for (const std::size_t index : good) {
    Slot& slot = unit.slots[index];
    count_out(slot.pod);
    slot.pin = slot.place->node;
  }
  for (Slot& slot : unit.slots) give_back(slot, Outcome::Stopped);
  if (unit.gang.empty()) {
    const std::optional<RuleBook> book = book_of(pods_.at(unit.slots.front().pod).pod, {});
    // New sets will do, unless another rule has come to concern it.
    if (unit.families.front() != (book ? book->key : std::string{})) reenter(unit);
    return;
  }
  unsolved_.insert(unit.id);
}

// The others of its unit have begun and stay where they are; this one goes along by itself, with
// sets of its own.
void Desk::step_aside(Unit& unit, Slot& slot) {
  PodRecord& record = pods_.at(slot.pod);
  record.unit.clear();
  close(unit, slot);
  form_single(record);
}

// Members that are tied to their nodes can't be put elsewhere one by one: all of them go, and are
// made anew.
void Desk::start_over(Unit& unit, const std::string& why) {
  for (Slot& slot : unit.slots)
    if (!slot.pod.empty() && slot.stage == Stage::Bound)
      evict(pods_.at(slot.pod), "GangStartsOver", why + "; its gang starts over");
}

// The same unit under a new name, because groups of a job that was submitted don't change.
void Desk::reenter(Unit& unit) {
  const std::string old = unit.id;
  Unit moved = std::move(unit);
  units_.erase(old);
  ruled_waiting_.erase(old);
  tied_.erase(old);
  const bool held = held_.erase(old) > 0;
  hollow_.erase(old);
  (void)tell(CancelJob{old});
  std::erase_if(moved.slots, [](const Slot& slot) { return slot.pod.empty(); });
  moved.min = std::min(moved.min, static_cast<int>(moved.slots.size()));
  PodRecord& first = pods_.at(moved.slots.front().pod);
  moved.id = new_unit_id();
  regroup(moved);
  const bool tied = std::any_of(moved.slots.begin(), moved.slots.end(),
                                [](const Slot& slot) { return !slot.pin.empty(); });
  const Status entered = enter(moved, first);
  CHECK_MSG(entered.ok(), entered.ok() ? "" : entered.error().message);
  for (std::size_t i = 0; i < moved.slots.size(); ++i) {
    pods_.at(moved.slots[i].pod).unit = moved.id;
    pods_.at(moved.slots[i].pod).slot = i;
  }
  if (!moved.gang.empty()) gangs_[moved.gang].unit = moved.id;
  const std::string id = moved.id;
  units_[id] = std::move(moved);
  if (tied) tied_.insert(id);
  if (held) hold(units_.at(id), false);
}

// A plan with tied members that the engine could not carry out is given up after a while: by then
// another one may be possible. Where the others run, whoever finds its node taken goes along by
// itself.
void Desk::untie_stuck() {
  for (const std::string& id : std::vector<std::string>(tied_.begin(), tied_.end())) {
    const auto it = units_.find(id);
    if (it == units_.end() || !looks_for_a_place(it->second)) {
      tied_.erase(id);
      continue;
    }
    Unit& unit = it->second;
    if (is_under_way(unit)) continue;
    if (unit.untie_at == Instant{}) {
      unit.tie_pause = unit.tie_pause.ms == 0
                           ? options_.first_backoff
                           : std::min(options_.max_backoff, unit.tie_pause + unit.tie_pause);
      unit.untie_at = now_ + unit.tie_pause;
    }
    if (now_ < unit.untie_at) continue;
    unit.untie_at = {};
    if (runs(unit)) {
      for (Slot& slot : unit.slots)
        if (!slot.place && !slot.pod.empty()) step_aside(unit, slot);
    } else if (is_whole(unit)) {
      for (Slot& slot : unit.slots) slot.pin.clear();
      reenter(unit);
    }
  }
}

bool Desk::runs(const Unit& unit) {
  return std::any_of(unit.slots.begin(), unit.slots.end(),
                     [](const Slot& slot) { return !slot.pod.empty() && slot.place.has_value(); });
}

// Whether something of it is just being bound, or on its way out.
bool Desk::is_under_way(const Unit& unit) const {
  return std::any_of(unit.slots.begin(), unit.slots.end(), [&](const Slot& slot) {
    if (slot.stage == Stage::Binding) return true;
    if (slot.pod.empty()) return slot.place.has_value();
    const PodRecord& record = pods_.at(slot.pod);
    return slot.place && (record.evicted || record.pod.meta.deleted);
  });
}

void Desk::put_namespace(const std::string& name, const Labels& labels) {
  rules_.put_namespace(name, labels);
}

}  // namespace gs::kube
