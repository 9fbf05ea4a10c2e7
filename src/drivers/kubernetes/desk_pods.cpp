// Pods: they arrive, are bound by us or by others, change, and go.
#include <algorithm>

#include "base/check.hpp"
#include "drivers/kubernetes/desk.hpp"
#include "wire/kube/pod_resources.hpp"

namespace gs::kube {

void Desk::put(const Pod& pod) {
  const std::string& uid = pod.meta.uid;
  if (pod.ended() && !pods_.contains(uid)) return;
  PodRecord& record = pods_[uid];
  const bool changed = record.pod.meta.resource_version != pod.meta.resource_version;
  record.pod = pod;
  const auto& names = options_.scheduler_names;
  record.ours = std::find(names.begin(), names.end(), pod.scheduler_name) != names.end();
  if (!pod.node_name.empty()) nodes_[pod.node_name].pods.insert(uid);
  if (!synced_) return;
  if (changed && !record.unit.empty()) release_held(units_.at(record.unit));
  look_at(record);
  settle();
}

// Brings the books in line with what the pod is now.
void Desk::look_at(PodRecord& record) {
  Slot* slot = slot_of(record);
  if (slot != nullptr && slot->stage == Stage::Binding) return;  // its result comes first
  if (record.gone || record.pod.ended()) {
    leave(record);
  } else if (!record.pod.node_name.empty()) {
    if (slot == nullptr || slot->stage != Stage::Bound) adopt(record);
  } else if (record.pod.meta.deleted) {
    leave(record);  // it never began: nothing has to end
  } else if (record.ours && slot == nullptr) {
    consider(record);
  }
}

void Desk::consider(PodRecord& record) {
  record.ask = ask_of_(record.pod);
  if (!record.pod.gates.empty()) {
    record.ask.reason = "SchedulingGated";
    record.ask.waits_for = "scheduling gate " + record.pod.gates.front() + " is closed";
  }
  if (!record.ask.waits_for.empty()) return;
  if (record.ask.gang.empty())
    form_single(record);
  else
    join_gang(record);
}

void Desk::reconsider(const std::string& uid) {
  const auto it = pods_.find(uid);
  if (!synced_ || it == pods_.end() || !it->second.unit.empty()) return;
  if (!it->second.pod.node_name.empty()) return;
  if (!it->second.ask.gang.empty()) gangs_[it->second.ask.gang].pods.erase(uid);
  look_at(it->second);
  settle();
}

// A bound pod holds what it has, whoever bound it. One of ours that the engine can take over gets a
// task; every other is taken off what its node offers.
void Desk::adopt(PodRecord& record) {
  const auto node = nodes_.find(record.pod.node_name);
  if (node == nodes_.end() || !node->second.in_engine || record.charged) return;
  if (record.ours && (record.unit.empty() ? adopt_alone(record) : adopt_member(record))) return;
  charge(record);
}

bool Desk::adopt_alone(PodRecord& record) {
  record.ask = ask_of_(record.pod);
  // It runs where it was put: what it once asked for does not matter any more, what it holds does.
  const std::vector<int> gpus = devices_of(record);
  TaskRequest& request = record.ask.request;
  if (request.gpu.sharing != Sharing::Mig) request.gpu.count = static_cast<int>(gpus.size());
  request.gpu.pinned_ids.clear();
  form_single(record);
  if (record.unit.empty()) return false;
  if (adopt_member(record)) return true;
  (void)tell(CancelJob{record.unit});
  slot_of(record)->pod.clear();
  record.unit.clear();
  return false;
}

bool Desk::adopt_member(PodRecord& record) {
  Slot& slot = *slot_of(record);
  const std::vector<MigPlace> mig = instances_of(record);
  TaskPlace place{slot.task, record.pod.node_name, mig.empty() ? devices_of(record) : std::vector<int>{},
                  mig};
  const Instant since = record.pod.started.ms > 0 ? record.pod.started : record.pod.meta.created;
  if (Status adopted = tell(AdoptTask{slot.task, place.node, place.gpus, place.mig, since, false});
      !adopted)
    return false;
  slot.place = place;
  slot.stage = Stage::Bound;
  record.place = std::move(place);
  return true;
}

void Desk::remove_pod(const std::string& uid) {
  const auto it = pods_.find(uid);
  if (it == pods_.end()) return;
  it->second.gone = true;
  if (!synced_) {
    nodes_[it->second.pod.node_name].pods.erase(uid);
    pods_.erase(it);
    return;
  }
  look_at(it->second);
  settle();
}

// The pod holds nothing any more.
void Desk::leave(PodRecord& record) {
  const std::string uid = record.pod.meta.uid;
  const bool succeeded = record.pod.phase == PodPhase::Succeeded;
  if (const auto node = nodes_.find(record.pod.node_name); node != nodes_.end())
    node->second.pods.erase(uid);
  if (record.charged) discharge(record);
  if (record.place) release_leases(record, *record.place);
  if (!record.ask.gang.empty() && record.unit.empty()) gangs_[record.ask.gang].pods.erase(uid);
  if (Slot* slot = slot_of(record); slot != nullptr) {
    Unit& unit = units_.at(record.unit);
    record.unit.clear();
    record.place.reset();
    // Its slot may have been given a new place while it was still in the old one.
    slot_empties(unit, *slot, succeeded);
  }
  if (record.gone) pods_.erase(uid);
}

const Pod* Desk::pod(const std::string& uid) const {
  const auto it = pods_.find(uid);
  return it == pods_.end() ? nullptr : &it->second.pod;
}

Result<Explanation> Desk::explain(const std::string& uid) {
  const auto it = pods_.find(uid);
  if (it == pods_.end()) return not_found("there is no such pod");
  if (it->second.unit.empty()) {
    Explanation waits;
    waits.state = "waiting";
    waits.why = Why{};
    waits.why->sentence = it->second.ask.waits_for;
    return waits;
  }
  return engine_->explain(it->second.unit, now_);
}

// Everything has been listed: those that hold something first, then those that wait, in the order
// in which they were made.
void Desk::synced() {
  synced_ = true;
  for (const auto& [name, node] : nodes_) touch_node(name);
  put_dirty_nodes();
  settle();
  std::vector<PodRecord*> waiting;
  for (auto& [uid, record] : pods_)
    if (record.pod.node_name.empty()) waiting.push_back(&record);
  std::sort(waiting.begin(), waiting.end(), [](const PodRecord* a, const PodRecord* b) {
    return std::pair(a->pod.meta.created.ms, a->pod.meta.uid) <
           std::pair(b->pod.meta.created.ms, b->pod.meta.uid);
  });
  std::vector<std::string> uids;
  for (const PodRecord* record : waiting) uids.push_back(record->pod.meta.uid);
  for (const std::string& uid : uids)
    if (const auto it = pods_.find(uid); it != pods_.end()) look_at(it->second);
  settle();
  for (auto& [name, lease] : leases_) judge(name, lease);
}

}  // namespace gs::kube
