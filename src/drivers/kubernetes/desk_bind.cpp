// From a place that the engine gave to a pod that is bound there, and back again.
#include <algorithm>

#include <fmt/format.h>

#include "base/check.hpp"
#include "drivers/kubernetes/desk.hpp"

namespace gs::kube {
namespace {

// Begins as the words of the stock scheduler do: people and tools look for them.
std::string assigned_words(const PodName& pod, const TaskPlace& place) {
  std::string words =
      fmt::format("Successfully assigned {}/{} to {}", pod.ns, pod.name, place.node);
  if (!place.gpus.empty())
    words +=
        fmt::format(": GPU{} {}", place.gpus.size() == 1 ? "" : "s", fmt::join(place.gpus, ","));
  for (std::size_t i = 0; i < place.mig.size(); ++i)
    words +=
        fmt::format("{} {} of GPU {}", i == 0 ? ":" : ",", place.mig[i].profile, place.mig[i].gpu);
  return words;
}

}  // namespace

// As the engine counts them, for others to count on.
std::vector<GpuShare> Desk::parts_of(const GpuRequest& request, const PodPlace& place) const {
  const Cluster& cluster = engine_->cluster();
  const NodeState& node = cluster.node(cluster.find_node(place.node));
  std::vector<GpuShare> parts;
  for (const int gpu : place.gpus) {
    const std::int64_t memory = node.layout->memory_mib[static_cast<std::size_t>(gpu)];
    const GpuPart part = gpu_part(request, memory);
    parts.push_back({part.milli, part.memory_mib, memory});
  }
  return parts;
}

// Slots that have a pod and a place, where rules between pods allow it.
void Desk::bind_ready(Unit& unit, std::vector<std::size_t> slots) {
  if (slots.empty()) return;
  slots = admit(unit, slots);
  if (!slots.empty()) bind(unit, std::move(slots));
}

void Desk::bind(Unit& unit, std::vector<std::size_t> slots) {
  Bind order;
  order.id = ++last_bind_;
  for (const std::size_t index : slots) {
    Slot& slot = unit.slots[index];
    PodRecord& record = pods_.at(slot.pod);
    const GpuRequest& gpu = record.ask.request->gpu;
    PodPlace place;
    place.pod = name_of(record.pod);
    place.resource_version = record.pod.meta.resource_version;
    place.labels = record.pod.meta.labels;
    place.annotations = record.pod.meta.annotations;
    place.node = slot.place->node;
    place.gpus = slot.place->gpus;
    place.mig = slot.place->mig;
    if (const auto node = nodes_.find(place.node); node != nodes_.end() && node->second.node)
      place.devices = device_names(place.gpus, *node->second.node, options_.naming);
    if (gpu.sharing == Sharing::Shared) place.shares = parts_of(gpu, place);
    place.share_group = gpu.pin_group;
    place.index = record.ask.index;
    if (!record.pod.volume_claims.empty())
      if (const auto node = nodes_.find(place.node); node != nodes_.end() && node->second.node)
        place.volumes = volumes_.choose(record.pod, *node->second.node).value_or(place.volumes);
    slot.stage = Stage::Binding;
    retract(record);
    touch_claim(record);
    order.pods.push_back(std::move(place));
  }
  binds_[order.id] = {unit.id, std::move(slots)};
  orders_.emplace_back(std::move(order));
}

void Desk::evict(PodRecord& record, const std::string& reason, const std::string& message) {
  if (record.pod.meta.deleted || std::exchange(record.evicted, true)) return;  // on its way out
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
  // The engine held nothing as long as a sibling had its place.
  if (held_.contains(bind.unit)) (void)tell(HoldJob{bind.unit, true});
  for (const std::string& name :
       std::vector<std::string>(leaving_nodes_.begin(), leaving_nodes_.end()))
    lose_node(name);
  settle();
}

void Desk::bound(Unit& unit, Slot& slot) {
  slot.stage = Stage::Bound;
  unit.backoff = {};
  PodRecord& record = pods_.at(slot.pod);
  record.place = *slot.place;
  record.nominated_node.clear();
  nodes_[slot.place->node].pods.insert(slot.pod);
  newly_used_.insert(slot.place->node);
  (void)tell(TaskStarted{slot.task});
  touch_budgets(record);
  touch_claim(record);
  const PodName name = name_of(record.pod);
  orders_.emplace_back(Note{name, false, "Scheduled", assigned_words(name, *slot.place)});
  if (slot.stop) evict(record, "Preempted", "was stopped while it was being bound");
  look_at(record);  // it may have ended while the answer was under way
}

void Desk::not_bound(Unit& unit, Slot& slot, const PodBound& result) {
  slot.stage = Stage::Waiting;
  const TaskPlace place = *slot.place;
  PodRecord& record = pods_.at(slot.pod);
  if (record.pod.node_name.empty()) count_out(slot.pod);
  give_back(slot, Outcome::Stopped);
  stand_waiting();
  const bool taken = result.failure == BindFailure::LeaseTaken && result.gpu >= 0;
  // The lease of a pod that has gone is on its way out: nobody has to make room meanwhile.
  const bool leaving = taken && !pods_.contains(result.holder);
  const bool kept_off = taken && !leaving && lease_taken(place.node, result.gpu, result.holder);
  look_later_at_leases(slot.pod, place);
  touch_claim(record);
  will_tell(record);
  if (record.gone || record.pod.ended() || record.pod.meta.deleted ||
      !record.pod.node_name.empty()) {
    look_at(record);
    return;
  }
  switch (result.failure) {
    case BindFailure::LeaseTaken:
      if (!kept_off) hold(unit, true);  // the same place would be tried again at once
      break;
    case BindFailure::None:
    case BindFailure::Sibling:
      break;  // the engine looks for another place at once
    case BindFailure::PodChanged:
    case BindFailure::PodGone:
    case BindFailure::Bound:
      hold(unit, false);  // what it has become is on its way to us
      break;
    case BindFailure::NodeGone:
    case BindFailure::Refused:
    case BindFailure::Failed:
      orders_.emplace_back(Note{name_of(record.pod), true, "FailedBinding", result.message});
      hold(unit, true);
      break;
  }
}

// Without a place in the engine's books there is nothing to give back: the engine lost it before.
void Desk::give_back(Slot& slot, Outcome outcome) {
  if (!slot.place) return;
  slot.place.reset();
  slot.stop = false;
  const Unit& unit = units_.at(slot.task.job);
  if (!unit.families[static_cast<std::size_t>(slot.task.group)].empty())
    ruled_waiting_.insert(unit.id);
  if (!slot.pin.empty()) tied_.insert(unit.id);
  touch_guards(unit);
  (void)tell(TaskEnded{slot.task, outcome});
}

}  // namespace gs::kube
