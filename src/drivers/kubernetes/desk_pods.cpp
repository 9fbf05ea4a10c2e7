// Pods: they arrive, are bound by us or by others, change, and go.
#include <algorithm>
#include <tuple>

#include "base/check.hpp"
#include "drivers/kubernetes/desk.hpp"
#include "wire/kube/pod_resources.hpp"

namespace gs::kube {
namespace {

// Who it is and belongs to, without what it once ran.
Pod without_containers(Pod pod) {
  pod.containers.clear();
  pod.init_containers.clear();
  return pod;
}

}  // namespace

void Desk::put(Pod now) {
  const std::string uid = now.meta.uid;
  if (now.ended() && !pods_.contains(uid)) {
    // Its gang may need no other in its place.
    if (!synced_ && now.phase == PodPhase::Succeeded && is_ours(now) && now.meta.controller())
      ended_before_.push_back(without_containers(std::move(now)));
    return;
  }
  PodRecord& record = pods_[uid];
  const bool changed = record.pod.meta.resource_version != now.meta.resource_version;
  const bool relabelled = record.pod.meta.labels != now.meta.labels;
  const bool asks_anew = relabelled || record.pod.meta.annotations != now.meta.annotations ||
                         record.pod.containers != now.containers ||
                         record.pod.pod_requests != now.pod_requests;
  const bool counts_anew =
      relabelled || record.pod.meta.deleted.has_value() != now.meta.deleted.has_value();
  const std::string stood = counts_anew ? rules_.lift(uid) : std::string{};
  record.pod = std::move(now);
  const Pod& pod = record.pod;
  record.chooser = chooser_of(record);
  if (pod.ended())
    (void)rules_.lift(uid);
  else if (!pod.node_name.empty())
    count_in(pod, pod.node_name);
  else if (!stood.empty())
    rules_.place(pod, stood);
  record.ours = is_ours(pod);
  if (!pod.node_name.empty()) nodes_[pod.node_name].pods.insert(uid);
  if (!pod.host_ports.empty()) offer_ports(pod);
  if (!synced_) return;
  if (changed && !record.unit.empty()) release_held(units_.at(record.unit));
  if (asks_anew && !record.unit.empty()) ask_again(record, relabelled);
  look_at(record);
  // With one that runs by itself its gang may be whole.
  if (const auto gang = gangs_.find(record.ask.gang);
      gang != gangs_.end() && gang->second.unit.empty() && !record.pod.node_name.empty())
    form_gang(gang->first);
  settle();
}

// Brings the books in line with what the pod is now.
void Desk::look_at(PodRecord& record) {
  Slot* slot = slot_of(record);
  if (slot != nullptr && slot->stage == Stage::Binding) return;  // its result comes first
  if (record.gone || record.pod.ended() || record.pod.meta.deleted || !record.pod.node_name.empty())
    retract(record);
  if (record.gone || record.pod.ended()) {
    leave(record);
  } else if (!record.pod.node_name.empty()) {
    // Its place is lost with its node, and there again when the node comes back, also where another
    // one has been found for whoever is made in its stead.
    if (slot == nullptr || slot->stage != Stage::Bound || !slot->place ||
        slot->place->node != record.pod.node_name)
      adopt(record);
    follow_resize(record);
  } else if (record.pod.meta.deleted) {
    leave(record);  // it never began: nothing has to end
  } else if (record.ours && slot == nullptr) {
    consider(record);
  }
}

void Desk::consider(PodRecord& record) {
  ask(record);
  will_tell(record);
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

void Desk::ask(PodRecord& record) {
  leave_claim(record);
  leave_gang(record);
  record.ask = ask_of_(record.pod);
  record.chooser = chooser_of(record);
  ask_volumes(record);
  const std::string& uid = record.pod.meta.uid;
  if (!record.ask.gang.empty()) gangs_[record.ask.gang].members.insert(uid);
  if (record.ask.claim.empty()) return;
  claims_[{record.pod.meta.ns, record.ask.claim}].pods.insert(uid);
  touch_claim(record);
}

void Desk::leave_claim(PodRecord& record) {
  if (record.ask.claim.empty()) return;
  claims_[{record.pod.meta.ns, record.ask.claim}].pods.erase(record.pod.meta.uid);
  touch_claim(record);
}

void Desk::reconsider(const std::string& uid) {
  const auto it = pods_.find(uid);
  if (!synced_ || it == pods_.end() || !it->second.pod.node_name.empty()) return;
  if (!it->second.unit.empty())
    ask_again(it->second, false);
  else
    look_at(it->second);
  settle();
}

// Its unit is made anew if it does not. What has begun stays as it is. By its labels it belongs to
// a gang, and rules concern it.
void Desk::ask_again(PodRecord& record, bool relabelled) {
  const Unit& unit = units_.at(record.unit);
  if (has_begun(unit) || !record.pod.node_name.empty()) return;
  PodAsk now = ask_of_(record.pod);
  const bool waits = !now.waits_for.empty();
  now.reason = record.ask.reason;
  if (waits || now != record.ask || (relabelled && is_of_another_family(record)))
    (void)tell(CancelJob{unit.id});
}

// A bound pod holds what it has, whoever bound it. One of ours that the engine can take over gets a
// task; every other is taken off what its node offers.
void Desk::adopt(PodRecord& record) {
  const auto node = nodes_.find(record.pod.node_name);
  if (node == nodes_.end() || !node->second.in_engine) {
    // Bound by somebody else to a node that is not there: it looks for no place any more.
    const bool comes = node != nodes_.end() && node->second.node && node->second.error.empty();
    if (const Slot* slot = slot_of(record);
        !comes && slot != nullptr && slot->stage == Stage::Waiting)
      step_out(record);
    return;
  }
  if (record.charged) return charge_anew(record);
  // Its leases have kept the engine off its devices until now.
  for (const int gpu : devices_of(record))
    if (const auto lease = leases_.find(gpu_lease_name(record.pod.node_name, gpu));
        lease != leases_.end())
      judge(lease->first, lease->second);
  if (record.ours && record.unit.empty()) form_adopted(record);
  if (!record.unit.empty() && adopt_member(record)) return;
  if (!record.unit.empty()) step_out(record);
  charge(record);
}

void Desk::form_adopted(PodRecord& record) {
  ask(record);
  // It runs where it was put: what it once asked for does not matter any more, what it holds does.
  const std::vector<int> gpus = devices_of(record);
  TaskRequest request = record.ask.waits_for.empty() ? *record.ask.request : held_by(record);
  if (request.gpu.sharing != Sharing::Mig) request.gpu.count = static_cast<int>(gpus.size());
  request.gpu.pinned_ids.clear();
  if (!request.gpu.pin_group.empty()) {  // those that it shares them with may come yet
    request.gpu.pinned_ids = gpus;
    request.only_nodes = {record.pod.node_name};
  }
  record.ask.request = SharedRequest(std::move(request));
  form_single(record);
}

// What a bound pod holds, where what it once asked for can't be read any more: its claim is gone.
TaskRequest Desk::held_by(const PodRecord& record) const {
  TaskRequest request;
  if (const Result<PodResources> takes = pod_resources(record.pod))
    request.resources = takes->resources;
  for (const MigPlace& instance : instances_of(record)) {
    request.gpu.sharing = Sharing::Mig;
    request.gpu.mig.push_back({instance.profile, 1});
  }
  if (request.gpu.sharing == Sharing::Mig) return request;
  for (const int gpu : devices_of(record)) {
    const auto lease = leases_.find(gpu_lease_name(record.pod.node_name, gpu));
    if (lease == leases_.end()) continue;
    for (const GpuHolder& holder : lease->second.holders) {
      if (holder.pod_uid != record.pod.meta.uid) continue;
      request.gpu.pin_group = holder.group;
      if (holder.milli >= kWholeGpu) continue;
      request.gpu.sharing = Sharing::Shared;
      request.gpu.milli = holder.milli;
      request.gpu.memory_mib = holder.memory_mib;
    }
  }
  return request;
}

// It was bound where the engine has no room for it: the engine stops thinking of it.
void Desk::step_out(PodRecord& record) {
  Slot& slot = *slot_of(record);
  Unit& unit = units_.at(record.unit);
  record.unit.clear();
  if (!unit.gang.empty()) return close(unit, slot);
  slot.pod.clear();
  slot.stage = Stage::Done;
  (void)tell(CancelJob{unit.id});
}

bool Desk::adopt_member(PodRecord& record) {
  Slot& slot = *slot_of(record);
  give_back(slot, Outcome::Stopped);  // it was to go elsewhere, and somebody was faster
  const std::vector<MigPlace> mig = instances_of(record);
  TaskPlace place{slot.task, record.pod.node_name,
                  mig.empty() ? devices_of(record) : std::vector<int>{}, mig};
  const Instant since = record.pod.started.ms > 0 ? record.pod.started : record.pod.meta.created;
  if (Status adopted = tell(AdoptTask{slot.task, place.node, place.gpus, place.mig, since, false});
      !adopted)
    return false;
  slot.place = place;
  slot.stage = Stage::Bound;
  newly_used_.insert(place.node);
  record.place = std::move(place);
  touch_claim(record);
  touch_budgets(record);
  return true;
}

void Desk::remove_pod(const std::string& uid) {
  const auto it = pods_.find(uid);
  if (it == pods_.end()) return;
  it->second.gone = true;
  if (!synced_) {
    count_out(uid);
    if (const auto node = nodes_.find(it->second.pod.node_name); node != nodes_.end())
      node->second.pods.erase(uid);
    pods_.erase(it);
    return;
  }
  (void)rules_.lift(uid);  // nobody lies beside it any more, even while its Bind has no result
  look_at(it->second);
  settle();
}

// The pod holds nothing any more.
void Desk::leave(PodRecord& record) {
  const std::string uid = record.pod.meta.uid;
  const bool succeeded = record.pod.phase == PodPhase::Succeeded;
  // Leases of a pod that the engine had no place for, or of another scheduler's that may not run
  // any more: nobody else looks at them.
  std::vector<std::string> leases;
  if (!record.place && nodes_.contains(record.pod.node_name))
    for (const int gpu : devices_of(record))
      leases.push_back(gpu_lease_name(record.pod.node_name, gpu));
  if (const auto node = nodes_.find(record.pod.node_name); node != nodes_.end())
    node->second.pods.erase(uid);
  count_out(uid);
  volume_waiters_.erase(uid);
  if (!record.pod.volume_claims.empty())  // somebody may wait for what it had
    for (const std::string& waiter : volume_waiters_) retries_.emplace(now_, waiter);
  if (record.charged) discharge(record);
  set_resized(record, {});
  if (record.place) release_leases(record, *record.place);
  if (record.gone || !succeeded)
    leave_gang(record);
  else if (const auto gang = gangs_.find(record.ask.gang); gang != gangs_.end())
    gang->second.pods.erase(uid);
  leave_claim(record);
  if (Slot* slot = slot_of(record); slot != nullptr) {
    Unit& unit = units_.at(record.unit);
    record.unit.clear();
    record.place.reset();
    slot_empties(unit, *slot, succeeded);
  }
  if (record.gone) pods_.erase(uid);
  for (const std::string& name : leases)
    if (const auto it = leases_.find(name); it != leases_.end()) judge(name, it->second);
}

const Pod* Desk::pod(const std::string& uid) const {
  const auto it = pods_.find(uid);
  return it == pods_.end() ? nullptr : &it->second.pod;
}

std::vector<std::string> Desk::pods_by_age() const {
  std::vector<std::tuple<bool, std::int64_t, std::string>> order;
  for (const auto& [uid, record] : pods_)
    order.emplace_back(record.pod.node_name.empty(), record.pod.meta.created.ms, uid);
  std::sort(order.begin(), order.end());
  std::vector<std::string> uids;
  for (auto& [waits, created, uid] : order) uids.push_back(std::move(uid));
  return uids;
}

// Everything has been listed: gangs first, so that those of their pods which are bound take their
// places in them; then all that hold something; then those that wait, the oldest first.
void Desk::synced() {
  synced_ = true;
  for (Pod& pod : std::exchange(ended_before_, {})) {
    PodRecord record;
    record.pod = std::move(pod);
    record.ours = true;
    if (!ask_of_(record.pod).gang.empty()) pods_[record.pod.meta.uid] = std::move(record);
  }
  const std::vector<std::string> uids = pods_by_age();
  std::vector<PodRecord*> in_gangs;
  for (const std::string& uid : uids) {
    PodRecord& record = pods_.at(uid);
    const bool counts = !record.pod.ended() || record.pod.phase == PodPhase::Succeeded;
    if (!record.ours || !counts || !record.pod.gates.empty()) continue;
    ask(record);
    if (!record.pod.ended() && !record.ask.gang.empty() && record.ask.waits_for.empty())
      in_gangs.push_back(&record);
  }
  // Whoever is on its way out is a member unless another one is there in its place.
  std::stable_partition(in_gangs.begin(), in_gangs.end(),
                        [](const PodRecord* record) { return !record->pod.meta.deleted; });
  std::set<std::string> gangs;
  for (const PodRecord* record : in_gangs) {
    std::set<std::string>& pods = gangs_[record->ask.gang].pods;
    if (record->pod.meta.deleted && static_cast<int>(pods.size()) >= record->ask.gang_size)
      continue;
    pods.insert(record->pod.meta.uid);
    gangs.insert(record->ask.gang);
  }
  for (const std::string& key : gangs) form_gang(key);
  for (const auto& [name, node] : nodes_) touch_node(name);
  put_dirty_nodes();
  settle();
  for (const std::string& uid : uids)
    if (const auto it = pods_.find(uid); it != pods_.end()) look_at(it->second);
  settle();
  for (auto& [name, lease] : leases_) judge(name, lease);
  settle();
  for (const auto& [key, claim] : claims_) dirty_claims_.insert(key);  // of pods that went unseen
}

}  // namespace gs::kube
