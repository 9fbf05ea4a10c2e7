// Members of gangs: they come one by one, follow those that go, and are done. A gang becomes a unit
// when it is whole.
#include <algorithm>
#include <tuple>

#include "drivers/kubernetes/desk.hpp"

namespace gs::kube {

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

}  // namespace gs::kube
