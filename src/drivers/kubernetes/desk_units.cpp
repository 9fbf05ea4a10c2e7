// Units: pods become jobs of the engine, alone or as gangs; members come, go and are made anew.
#include <algorithm>
#include <tuple>

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
  // Room that is made for a gang may turn out to be where its rules forbid it to lie. And whoever
  // looks for company, or counts others, would find itself without them where it evicts them.
  const bool ruled_gang =
      unit.slots.size() > 1 && std::any_of(unit.families.begin(), unit.families.end(),
                                           [](const std::string& key) { return !key.empty(); });
  const bool counts_others = !first.pod.pod_affinity.required.empty() ||
                             std::any_of(first.pod.spread.begin(), first.pod.spread.end(),
                                         [](const TopologySpread& rule) { return rule.required; });
  job.can_preempt_others = first.ask.may_preempt && !ruled_gang && !counts_others;
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

// ---------------------------------------------------------------- gangs

void Desk::join_gang(PodRecord& record) {
  GangRecord& gang = gangs_[record.ask.gang];
  const auto it = units_.find(gang.unit);
  if (gang.unit.empty() || it == units_.end()) {
    gang.pods.insert(record.pod.meta.uid);
    if (!gang.assembles) form_gang(record.ask.gang);
    return;
  }
  Unit& unit = it->second;
  for (std::size_t i = 0; i < unit.slots.size(); ++i) {
    const Slot& slot = unit.slots[i];
    if (!slot.pod.empty() || slot.stage == Stage::Done) continue;
    if (unit.groups[static_cast<std::size_t>(slot.task.group)] != record.ask.request) continue;
    fill(unit, i, record);
    return;
  }
  if (is_awaited(unit, gang)) {
    gang.pods.insert(record.pod.meta.uid);
    record.ask.reason = "GangMemberLeaving";
    record.ask.waits_for = "the pod of gang " + unit.gang + " that it follows has not gone yet";
    return;
  }
  if (has_begun(unit)) {
    form_single(record);  // more than it needs: goes along by itself
    return;
  }
  gang.pods.insert(record.pod.meta.uid);
  (void)tell(CancelJob{unit.id});  // it is made anew with this one
}

// Whether more members are on their way out than pods wait to follow them: controllers make a pod
// anew as soon as the old one is told to go.
bool Desk::is_awaited(const Unit& unit, const GangRecord& gang) const {
  const auto leaving = std::count_if(unit.slots.begin(), unit.slots.end(), [&](const Slot& slot) {
    if (slot.pod.empty()) return false;
    const PodRecord& member = pods_.at(slot.pod);
    return member.evicted || member.pod.meta.deleted.has_value();
  });
  return leaving > static_cast<std::ptrdiff_t>(gang.pods.size());
}

// A pod that waited for it takes the slot; false where none does.
bool Desk::follow_up(Unit& unit, Slot& slot) {
  GangRecord& gang = gangs_[unit.gang];
  for (const std::string& uid : gang.pods) {
    PodRecord& next = pods_.at(uid);
    if (unit.groups[static_cast<std::size_t>(slot.task.group)] != next.ask.request) continue;
    next.ask.waits_for.clear();
    gang.pods.erase(uid);
    fill(unit, static_cast<std::size_t>(&slot - unit.slots.data()), next);
    return true;
  }
  return false;
}

void Desk::leave_gang(PodRecord& record) {
  const auto gang = gangs_.find(record.ask.gang);
  if (gang == gangs_.end()) return;
  gang->second.pods.erase(record.pod.meta.uid);
  gang->second.members.erase(record.pod.meta.uid);
  forget_if_empty(record.ask.gang);
}

void Desk::forget_if_empty(const std::string& key) {
  const auto gang = gangs_.find(key);
  if (gang != gangs_.end() && gang->second.members.empty() && gang->second.unit.empty())
    gangs_.erase(gang);
}

void Desk::form_gang(const std::string& key) {
  GangRecord& gang = gangs_.at(key);
  if (gang.pods.empty()) return;
  const PodRecord& first = pods_.at(*gang.pods.begin());
  const int size = first.ask.gang_size;
  const int served = gather(key, first);
  std::vector<PodRecord*> members;
  for (const std::string& uid : gang.pods) members.push_back(&pods_.at(uid));
  const int there = static_cast<int>(members.size()) + served;
  if (there < size) {
    for (PodRecord* member : members) {
      member->ask.reason = "GangIncomplete";
      member->ask.waits_for = "gang " + key + " is not whole: " + std::to_string(there) + " of " +
                              std::to_string(size) + " pods are there";
    }
    return;
  }
  std::sort(members.begin(), members.end(), [](const PodRecord* a, const PodRecord* b) {
    return std::tuple(a->ask.index, a->pod.meta.created.ms, std::cref(a->pod.meta.name).get()) <
           std::tuple(b->ask.index, b->pod.meta.created.ms, std::cref(b->pod.meta.name).get());
  });
  Unit unit;
  unit.id = new_unit_id();
  unit.gang = key;
  unit.topology = members.front()->ask.topology;
  unit.min = std::max(1, size - served);
  for (const PodRecord* member : members)
    unit.slots.push_back({TaskRef{}, member->pod.meta.uid, Stage::Waiting, {}, false, {}, {}});
  regroup(unit);
  if (Status entered = enter(unit, *members.front()); !entered) {
    forget_families(unit);
    for (PodRecord* member : members) refuse(*member, entered.error().message);
    return;
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    members[i]->ask.waits_for.clear();
    members[i]->unit = unit.id;
    members[i]->slot = i;
    will_tell(*members[i]);
  }
  gang.pods.clear();
  gang.unit = unit.id;
  units_[unit.id] = std::move(unit);
  for (PodRecord* member : members)
    if (!member->pod.node_name.empty()) look_at(*member);
}

// How many members the gang needs no pod for any more: those that are done. Members that run by
// themselves, because the gang was not whole when they were found, come along if that makes it
// whole.
int Desk::gather(const std::string& key, const PodRecord& first) {
  GangRecord& gang = gangs_.at(key);
  std::vector<PodRecord*> strays;
  int served = 0;
  for (const std::string& uid : gang.members) {
    PodRecord& other = pods_.at(uid);
    if (gang.pods.contains(uid)) continue;
    if (other.pod.phase == PodPhase::Succeeded)
      served += !first.ask.gang_owner.empty() && other.ask.gang_owner == first.ask.gang_owner;
    else if (!other.pod.ended() && !other.pod.meta.deleted && !other.pod.node_name.empty())
      strays.push_back(&other);
  }
  if (static_cast<int>(gang.pods.size() + strays.size()) + served < first.ask.gang_size)
    return served + static_cast<int>(strays.size());
  for (PodRecord* stray : strays) {
    if (take_along(*stray))
      gang.pods.insert(stray->pod.meta.uid);
    else
      ++served;
  }
  return served;
}

// Its unit of one ends, and it keeps what it has.
bool Desk::take_along(PodRecord& stray) {
  Slot* slot = slot_of(stray);
  if (slot == nullptr || slot->stage != Stage::Bound || !slot->place ||
      !units_.at(stray.unit).gang.empty())
    return false;
  PodAsk now = ask_of_(stray.pod);
  if (now.gang != stray.ask.gang || !now.waits_for.empty()) return false;
  stray.ask = std::move(now);
  stray.unit.clear();
  stray.place.reset();
  slot->pod.clear();
  slot->stage = Stage::Done;
  give_back(*slot, Outcome::Succeeded);
  return true;
}

void Desk::fill(Unit& unit, std::size_t index, PodRecord& record) {
  Slot& slot = unit.slots[index];
  slot.pod = record.pod.meta.uid;
  record.unit = unit.id;
  record.slot = index;
  if (!slot.place)
    count_members(unit);
  else if (!admit(unit, {index}).empty())
    bind(unit, {index});
}

bool Desk::has_begun(const Unit& unit) {
  return std::any_of(unit.slots.begin(), unit.slots.end(), [](const Slot& slot) {
    return slot.place.has_value() || slot.stage != Stage::Waiting;
  });
}

// While nothing of it is placed, the engine has to know whether it is whole. Later it may find
// places for members that are still to be made.
void Desk::count_members(const Unit& unit) {
  int arrived = 0;
  bool placed = false;
  for (const Slot& slot : unit.slots) {
    placed |= slot.place.has_value();
    arrived += !slot.pod.empty() || slot.stage == Stage::Done;
  }
  if (placed && arrived < static_cast<int>(unit.slots.size())) return;
  (void)tell(MembersArrived{unit.id, arrived});
}

// A gang's slot that needs no pod any more.
void Desk::close(const Unit& unit, Slot& slot) {
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

void Desk::release_held(Unit& unit) {
  if (held_.erase(unit.id) > 0) (void)tell(HoldJob{unit.id, false});
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
