// Units: pods become jobs of the engine; slots of gangs are filled, empty and close.
#include <algorithm>

#include "base/check.hpp"
#include "drivers/kubernetes/desk.hpp"

namespace gs::kube {
namespace {

// So long we wait to see a change that must be under way; then we look again by ourselves.
constexpr Duration kSoon = seconds(5);
constexpr Duration kRefusedAgain = seconds(30);

}  // namespace

Job Desk::job_of(const Unit& unit, const PodRecord& first) const {
  Job job;
  job.id = unit.id;
  job.name = unit.gang.empty() ? first.pod.meta.key() : unit.gang;
  job.tenant = first.ask.tenant;
  job.priority = first.ask.priority;
  job.submitted = first.pod.meta.created;
  // Never max_runtime: the engine would evict for it, and a deadline is the kubelet's to keep.
  for (const Slot& slot : unit.slots)
    if (const auto it = pods_.find(slot.pod); it != pods_.end())
      job.expected_runtime = std::max(job.expected_runtime, it->second.ask.expected_runtime);
  // Room that is made for a gang may turn out to be where its rules forbid it to lie. And whoever
  // looks for company, or counts others, would find itself without them where it evicts them.
  const bool counts_others = !first.pod.pod_affinity.required.empty() ||
                             std::any_of(first.pod.spread.begin(), first.pod.spread.end(),
                                         [](const TopologySpread& rule) { return rule.required; });
  job.can_preempt_others = first.ask.may_preempt && !rules_its_members(unit) && !counts_others;
  job.sets[0].topology = unit.topology;
  return job;
}

Status Desk::enter(const Unit& unit, const PodRecord& first) {
  Job job = job_of(unit, first);
  if (Status admitted = admit_to(job.tenant, !first.pod.node_name.empty()); !admitted)
    return admitted;
  for (std::size_t g = 0; g < unit.groups.size(); ++g) {
    Group group;
    group.name = "group-" + std::to_string(g);
    group.request = marked(*unit.groups[g], unit.families[g]);
    group.count =
        static_cast<int>(std::count_if(unit.slots.begin(), unit.slots.end(), [&](const Slot& slot) {
          return slot.task.group == static_cast<int>(g);
        }));
    // A minimum below the number of members can be said of like members only.
    group.min = unit.groups.size() == 1 && unit.min < group.count ? unit.min : 0;
    job.groups.push_back(std::move(group));
  }
  return tell(SubmitJob{std::move(job)});
}

// Short: every record of it, here and in the engine, keeps the name.
std::string Desk::new_unit_id() { return "unit-" + std::to_string(++last_unit_); }

void Desk::form_single(PodRecord& record) {
  const std::string& uid = record.pod.meta.uid;
  Unit unit;
  unit.id = new_unit_id();
  unit.topology = record.ask.topology;
  unit.slots.push_back({TaskRef{unit.id, 0, 0}, uid, Stage::Waiting, {}, false, {}, {}});
  regroup(unit);
  if (Status entered = enter(unit, record); !entered) {
    forget_families(unit);
    refuse(record, entered.error().message);
    return;
  }
  record.unit = unit.id;
  record.slot = 0;
  units_[unit.id] = std::move(unit);
}

// What the engine refuses is tried again: a quota may have been raised meanwhile.
void Desk::refuse(PodRecord& record, std::string message) {
  record.ask.waits_for = std::move(message);
  record.ask.reason = "Refused";
  retries_.emplace(now_ + kRefusedAgain, record.pod.meta.uid);
}

// ---------------------------------------------------------------- slots of gangs

void Desk::fill(Unit& unit, std::size_t index, PodRecord& record) {
  Slot& slot = unit.slots[index];
  slot.pod = record.pod.meta.uid;
  record.unit = unit.id;
  record.slot = index;
  if (!slot.place)
    count_members(unit);
  else if (!held_.contains(unit.id))
    bind_ready(unit, {index});
}

bool Desk::has_begun(const Unit& unit) {
  return std::any_of(unit.slots.begin(), unit.slots.end(), [](const Slot& slot) {
    return slot.place.has_value() || slot.stage != Stage::Waiting;
  });
}

// While nothing of it is placed, the engine has to know whether it is whole. Later it may find
// places for members that are still to be made.
void Desk::count_members(Unit& unit) {
  int arrived = 0;
  bool placed = false;
  for (const Slot& slot : unit.slots) {
    placed |= slot.place.has_value();
    arrived += !slot.pod.empty() || slot.stage == Stage::Done;
  }
  if (placed && arrived < static_cast<int>(unit.slots.size())) return;
  if (!placed) rank_arrived_first(unit);
  (void)tell(MembersArrived{unit.id, arrived});
}

// The engine starts the first ranks of each group: those are the pods that are there.
void Desk::rank_arrived_first(Unit& unit) {
  for (std::size_t g = 0; g < unit.groups.size(); ++g) {
    std::vector<Slot*> slots;
    std::vector<int> ranks;
    for (Slot& slot : unit.slots) {
      if (slot.task.group != static_cast<int>(g) || slot.stage == Stage::Done) continue;
      slots.push_back(&slot);
      ranks.push_back(slot.task.rank);
    }
    std::sort(ranks.begin(), ranks.end());
    std::stable_partition(slots.begin(), slots.end(),
                          [](const Slot* slot) { return !slot->pod.empty(); });
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i]->task.rank = ranks[i];
  }
}

// A gang's slot that needs no pod any more.
void Desk::close(Unit& unit, Slot& slot) {
  slot.pod.clear();
  slot.stage = Stage::Done;
  if (slot.place)
    give_back(slot, Outcome::Succeeded);
  else
    (void)tell(AdoptTask{slot.task, {}, {}, {}, now_, true});
  count_members(unit);
}

void Desk::slot_empties(Unit& unit, Slot& slot, bool succeeded) {
  slot.pod.clear();
  if (unit.gang.empty()) {
    give_back(slot, succeeded   ? Outcome::Succeeded
                    : slot.stop ? Outcome::Stopped
                                : Outcome::Failed);
    slot.stage = Stage::Done;
    (void)tell(CancelJob{unit.id});  // unless it has ended by that
    return;
  }
  if (succeeded) {
    close(unit, slot);
  } else {
    slot.stage = Stage::Waiting;
    give_back(slot, Outcome::Stopped);
    if (follow_up(unit, slot)) return;
  }
  if (std::all_of(unit.slots.begin(), unit.slots.end(),
                  [](const Slot& other) { return other.pod.empty(); })) {
    (void)tell(CancelJob{unit.id});
    return;
  }
  if (succeeded) return;
  slot.empty_since = now_;
  hollow_.insert(unit.id);
  count_members(unit);
}

// A pod that nobody makes anew is given up; a gang that has not begun goes back to waiting for it.
void Desk::check_members() {
  for (const std::string& id : std::vector<std::string>(hollow_.begin(), hollow_.end())) {
    Unit& unit = units_.at(id);
    bool empty = false;
    const bool some_run = runs(unit);
    for (Slot& slot : unit.slots) {
      if (!slot.pod.empty() || slot.stage == Stage::Done) continue;
      if (now_ < slot.empty_since + options_.member_timeout) {
        empty = true;
      } else if (!some_run) {
        empty = false;
        (void)tell(CancelJob{unit.id});
        break;
      } else {
        close(unit, slot);
      }
    }
    if (!empty) hollow_.erase(id);
  }
}

// ---------------------------------------------------------------- waiting on purpose, and the end

void Desk::hold(Unit& unit, bool back_off) {
  if (back_off) {
    unit.backoff = unit.backoff.ms == 0
                       ? options_.first_backoff
                       : std::min(options_.max_backoff, unit.backoff + unit.backoff);
    unit.retry_at = now_ + unit.backoff;
  } else {
    unit.retry_at = now_ + kSoon;
  }
  (void)tell(HoldJob{unit.id, true});  // refused where part of it has a place: then it goes on
  held_.insert(unit.id);
}

// The engine holds no job of which a part runs; what it placed of such a one meanwhile is bound
// now.
void Desk::release_held(Unit& unit) {
  if (held_.erase(unit.id) == 0) return;
  (void)tell(HoldJob{unit.id, false});
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < unit.slots.size(); ++i)
    if (const Slot& slot = unit.slots[i]; slot.place && slot.stage == Stage::Waiting &&
                                          !slot.pod.empty() &&
                                          pods_.at(slot.pod).pod.node_name.empty())
      ready.push_back(i);
  bind_ready(unit, std::move(ready));
}

// The engine has no such job any more. Pods of it that live are looked at anew.
void Desk::dissolve(const std::string& id) {
  const auto it = units_.find(id);
  const Unit unit = std::move(it->second);
  units_.erase(it);
  held_.erase(id);
  hollow_.erase(id);
  forget_families(unit);
  guards_.erase(id);
  // Not before all of them are there: with fewer it would be whole already, and made anew for each.
  if (!unit.gang.empty()) {
    gangs_[unit.gang].unit.clear();
    gangs_[unit.gang].assembles = true;
  }
  std::vector<std::string> pods;
  for (const Slot& slot : unit.slots) {
    CHECK_MSG(slot.stage != Stage::Binding, "a job ended while its pods were being bound");
    if (!slot.pod.empty()) pods.push_back(slot.pod);
  }
  for (const std::string& uid : pods) {
    pods_.at(uid).unit.clear();
    pods_.at(uid).place.reset();
  }
  for (const std::string& uid : pods) look_at(pods_.at(uid));
  if (const auto gang = gangs_.find(unit.gang); gang != gangs_.end()) {
    gang->second.assembles = false;
    form_gang(unit.gang);
    forget_if_empty(unit.gang);
  }
}

}  // namespace gs::kube
