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
  // Room that is made for a gang may turn out to be where its rules forbid it to lie.
  const bool ruled_gang =
      unit.slots.size() > 1 && std::any_of(unit.families.begin(), unit.families.end(),
                                           [](const std::string& key) { return !key.empty(); });
  job.can_preempt_others = first.pod.may_preempt && !ruled_gang;
  job.sets[0].topology = unit.topology;
  return job;
}

Status Desk::enter(const Unit& unit, const PodRecord& first) {
  Job job = job_of(unit, first);
  // A namespace that no GpuTenant speaks of is its own tenant, without limits.
  if (!engine_->cluster().find_tenant(job.tenant).valid()) {
    Tenant tenant;
    tenant.id = job.tenant;
    if (Status made = tell(PutTenant{std::move(tenant)}); !made) return made;
  }
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
    form_gang(record.ask.gang);
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
  const bool placed = std::any_of(unit.slots.begin(), unit.slots.end(), [](const Slot& slot) {
    return slot.place.has_value() || slot.stage == Stage::Done;
  });
  if (placed) {
    form_single(record);  // more than it needs: goes along by itself
    return;
  }
  gang.pods.insert(record.pod.meta.uid);
  (void)tell(CancelJob{unit.id});  // it is made anew with this one
}

void Desk::form_gang(const std::string& key) {
  GangRecord& gang = gangs_[key];
  std::vector<PodRecord*> members;
  for (const std::string& uid : gang.pods) members.push_back(&pods_.at(uid));
  if (members.empty()) return;
  std::sort(members.begin(), members.end(), [](const PodRecord* a, const PodRecord* b) {
    return std::tuple(a->ask.index, a->pod.meta.created.ms, std::cref(a->pod.meta.name).get()) <
           std::tuple(b->ask.index, b->pod.meta.created.ms, std::cref(b->pod.meta.name).get());
  });
  const int size = members.front()->ask.gang_size;
  const int there = static_cast<int>(members.size());
  if (there < size) {
    for (PodRecord* member : members) {
      member->ask.reason = "GangIncomplete";
      member->ask.waits_for = "gang " + key + " is not whole: " + std::to_string(there) + " of " +
                              std::to_string(size) + " pods are there";
    }
    return;
  }
  Unit unit;
  unit.id = new_unit_id();
  unit.gang = key;
  unit.topology = members.front()->ask.topology;
  unit.min = size;
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

// While nothing of it is placed, the engine has to know whether it is whole.
void Desk::count_members(const Unit& unit) {
  int arrived = 0;
  for (const Slot& slot : unit.slots) {
    if (slot.place) return;
    arrived += !slot.pod.empty() || slot.stage == Stage::Done;
  }
  (void)tell(MembersArrived{unit.id, arrived});
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
  slot.stage = succeeded ? Stage::Done : Stage::Waiting;
  if (succeeded && !slot.place) {  // it was bound by somebody else, or its node was lost
    (void)tell(AdoptTask{slot.task, {}, {}, {}, now_, true});
  } else {
    give_back(slot, succeeded ? Outcome::Succeeded : Outcome::Stopped);
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
    bool empty = false, runs = false;
    for (const Slot& slot : unit.slots) runs |= !slot.pod.empty() && slot.place.has_value();
    for (Slot& slot : unit.slots) {
      if (!slot.pod.empty() || slot.stage == Stage::Done) continue;
      if (now_ < slot.empty_since + options_.member_timeout) {
        empty = true;
      } else if (!runs) {
        empty = false;
        (void)tell(CancelJob{unit.id});
        break;
      } else {
        slot.stage = Stage::Done;
        if (slot.place)
          give_back(slot, Outcome::Succeeded);
        else
          (void)tell(AdoptTask{slot.task, {}, {}, {}, now_, true});
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
  if (!unit.gang.empty()) gangs_[unit.gang].unit.clear();
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
    if (gang->second.unit.empty()) form_gang(unit.gang);
    if (gang->second.unit.empty() && gang->second.pods.empty()) gangs_.erase(gang);
  }
}

}  // namespace gs::kube
