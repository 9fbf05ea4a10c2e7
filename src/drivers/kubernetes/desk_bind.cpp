// From a place that the engine gave to a pod that is bound there, and back again.
#include <algorithm>

#include "base/check.hpp"
#include "drivers/kubernetes/desk.hpp"

namespace gs::kube {

void Desk::bind(Unit& unit, std::vector<std::size_t> slots) {
  Bind order;
  order.id = ++last_bind_;
  for (const std::size_t index : slots) {
    Slot& slot = unit.slots[index];
    const PodRecord& record = pods_.at(slot.pod);
    const GpuRequest& gpu = record.ask.request.gpu;
    PodPlace place;
    place.pod = name_of(record.pod);
    place.resource_version = record.pod.meta.resource_version;
    place.node = slot.place->node;
    place.gpus = slot.place->gpus;
    place.mig = slot.place->mig;
    if (gpu.sharing == Sharing::Shared) {
      place.milli = gpu.milli;
      place.memory_mib = gpu.memory_mib;
    }
    place.index = record.ask.index;
    place.volume_claims = record.ask.volume_claims;
    slot.stage = Stage::Binding;
    order.pods.push_back(std::move(place));
  }
  binds_[order.id] = {unit.id, std::move(slots)};
  orders_.emplace_back(std::move(order));
}

void Desk::evict(PodRecord& record, const std::string& reason, const std::string& message) {
  if (record.pod.meta.deleted) return;  // on its way out already
  orders_.emplace_back(Evict{name_of(record.pod), reason, message});
}

void Desk::done(const BindDone& result) {
  const auto it = binds_.find(result.id);
  if (it == binds_.end()) return;
  const BindRecord bind = std::move(it->second);
  binds_.erase(it);
  const auto unit = units_.find(bind.unit);
  CHECK_MSG(unit != units_.end(), "a unit vanished while its pods were being bound");
  for (std::size_t i = 0; i < bind.slots.size() && i < result.pods.size(); ++i) {
    Slot& slot = unit->second.slots[bind.slots[i]];
    if (slot.stage != Stage::Binding) continue;
    if (result.pods[i].failure == BindFailure::None)
      bound(unit->second, slot);
    else
      not_bound(unit->second, slot, result.pods[i]);
  }
  settle();
}

void Desk::bound(Unit& unit, Slot& slot) {
  slot.stage = Stage::Bound;
  unit.backoff = {};
  const auto pod = pods_.find(slot.pod);
  if (pod == pods_.end() || pod->second.pod.ended()) {  // it ended while the answer was under way
    slot_empties(unit, slot, pod != pods_.end() && pod->second.pod.phase == PodPhase::Succeeded);
    return;
  }
  PodRecord& record = pod->second;
  record.place = *slot.place;
  nodes_[slot.place->node].pods.insert(slot.pod);
  (void)tell(TaskStarted{slot.task});
  if (slot.stop) evict(record, "Preempted", "was stopped while it was being bound");
}

void Desk::not_bound(Unit& unit, Slot& slot, const PodBound& result) {
  slot.stage = Stage::Waiting;
  const TaskPlace place = *slot.place;
  const std::string uid = slot.pod;
  if (result.failure == BindFailure::LeaseTaken && result.gpu >= 0)
    leases_taken_.push_back({place.node, result.gpu, result.holder});
  give_back(slot, Outcome::Stopped);
  const auto pod = pods_.find(uid);
  if (pod == pods_.end() || pod->second.pod.ended() || pod->second.pod.meta.deleted) {
    slot_empties(unit, slot, false);
    return;
  }
  switch (result.failure) {
    case BindFailure::None:
    case BindFailure::Sibling:
    case BindFailure::LeaseTaken:
      break;  // the engine looks for another place at once
    case BindFailure::PodChanged:
    case BindFailure::PodGone:
    case BindFailure::Bound:
      hold(unit, false);  // what it has become is on its way to us
      break;
    case BindFailure::NodeGone:
    case BindFailure::Refused:
    case BindFailure::Failed:
      orders_.emplace_back(Note{name_of(pod->second.pod), true, "FailedBinding", result.message});
      hold(unit, true);
      break;
  }
}

// Without a place in the engine's books there is nothing to give back: the engine lost it before.
void Desk::give_back(Slot& slot, Outcome outcome) {
  if (!slot.place) return;
  slot.place.reset();
  slot.stop = false;
  (void)tell(TaskEnded{slot.task, outcome});
}

}  // namespace gs::kube
