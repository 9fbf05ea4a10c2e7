// Nodes, and what other people's pods take of them.
#include <algorithm>

#include "base/check.hpp"
#include "base/gpu_mask.hpp"
#include "drivers/kubernetes/desk.hpp"
#include "wire/kube/claim.hpp"
#include "wire/kube/host_ports.hpp"
#include "wire/kube/instances.hpp"
#include "wire/kube/names.hpp"
#include "wire/kube/pod_resources.hpp"

namespace gs::kube {
namespace {

void add(Resources& sum, const Resources& part, int sign) {
  sum.cpu_milli += sign * part.cpu_milli;
  sum.memory_bytes += sign * part.memory_bytes;
  for (const NamedAmount& amount : part.named) {
    const auto same = std::find_if(sum.named.begin(), sum.named.end(),
                                   [&](const NamedAmount& n) { return n.name == amount.name; });
    if (same != sum.named.end())
      same->amount += sign * amount.amount;
    else
      sum.named.push_back({amount.name, sign * amount.amount});
  }
}

// Others may have taken more than there is.
void take_off(Resources& capacity, const Resources& used) {
  capacity.cpu_milli = std::max<std::int64_t>(0, capacity.cpu_milli - used.cpu_milli);
  capacity.memory_bytes = std::max<std::int64_t>(0, capacity.memory_bytes - used.memory_bytes);
  for (NamedAmount& amount : capacity.named)
    for (const NamedAmount& other : used.named)
      if (other.name == amount.name)
        amount.amount = std::max<std::int64_t>(0, amount.amount - other.amount);
}

}  // namespace

void Desk::put_node(SharedNode node, DevicesInUse in_use) {
  const std::string name = node->name;
  NodeRecord& record = nodes_[name];
  if (record.node && *record.node == *node && record.in_use == in_use) return;  // a heartbeat
  const bool used_otherwise = record.in_use != in_use;
  record.in_use = std::move(in_use);
  const bool was_ready = record.node && record.node->ready;
  record.node = std::move(node);
  rules_.put_node(record.node);
  if (!synced_) return;
  if (leaving_nodes_.erase(name) > 0) (void)tell(CordonNode{name, false, false});
  touch_node(name);
  if (used_otherwise) look_at_users(record);
  if (was_ready && !record.node->ready) lose_gangs(name);
}

// Of other schedulers' pods the devices were guessed until the node's agent saw them.
void Desk::look_at_users(const NodeRecord& node) {
  for (const auto& [uid, seen] : node.in_use) {
    const auto it = pods_.find(uid);
    if (it == pods_.end() || !it->second.charged) continue;
    const std::string key = "pod:" + uid;
    std::set<int> stands, has;
    if (const auto known = blockers_.find(key); known != blockers_.end())
      for (const Blocker& blocker : known->second) stands.insert(blocker.gpu);
    for (const int gpu : devices_of(it->second)) has.insert(gpu);
    if (stands == has) continue;
    unblock(key);
    if (!has.empty()) block(key, it->second.pod.node_name, {has.begin(), has.end()});
  }
}

// A node that the engine did not know brings its pods, and they change what it offers.
void Desk::put_dirty_nodes() {
  while (!dirty_nodes_.empty()) {
    const std::string name = *dirty_nodes_.begin();
    dirty_nodes_.erase(dirty_nodes_.begin());
    const auto it = nodes_.find(name);
    if (it == nodes_.end() || !it->second.node) continue;
    NodeRecord& record = it->second;
    gs::Node node = *record.node;
    for (const std::string& port : ports_)
      node.capacity.named.push_back({port, host_port_capacity(port)});
    for (const std::string& mark : record.marks) set_label(node.labels, mark, {});
    take_off(node.capacity, record.used_by_others);
    // What is known of devices in use has changed, as when an agent begins to report; to the engine
    // they are others. Pods lie where they lay: the node goes, and comes back with them.
    if (record.in_engine && !engine_->cluster().displaced_by(node).empty()) {
      lose_node(name);
      continue;
    }
    if (Status put = tell(PutNode{std::move(node)}); !put) {
      record.error = put.error().message;
      continue;
    }
    record.error.clear();
    if (std::exchange(record.in_engine, true)) continue;
    for (const std::string& uid : std::vector<std::string>(record.pods.begin(), record.pods.end()))
      if (const auto pod = pods_.find(uid); pod != pods_.end()) look_at(pod->second);
    judge_leases_of(name);
  }
  stand_waiting();  // before anybody is given devices that have just come
}

// A port that nobody has named yet is an amount that no node has yet.
void Desk::offer_ports(const Pod& pod) {
  bool is_new = false;
  for (const NamedAmount& port : host_port_amounts(pod.host_ports))
    is_new |= ports_.insert(port.name).second;
  if (!is_new || !synced_) return;
  for (const auto& [name, node] : nodes_) touch_node(name);
}

void Desk::remove_node(const std::string& name) {
  const auto it = nodes_.find(name);
  if (it == nodes_.end()) return;
  it->second.node.reset();
  rules_.remove_node(name);
  lose_node(name);
  settle();
}

// Results of Binds under way come before the engine loses the places that they are about.
void Desk::lose_node(const std::string& name) {
  NodeRecord& record = nodes_.at(name);
  if (record.in_engine && is_being_bound_to(name)) {
    (void)tell(CordonNode{name, true, false});
    leaving_nodes_.insert(name);
    return;
  }
  leaving_nodes_.erase(name);
  record.marks.clear();
  for (auto& [key, family] : families_) {
    for (auto& [mark, nodes] : family.marks) nodes.erase(name);
    family.version = 0;  // it may come back at once
  }
  if (std::exchange(record.in_engine, false)) {
    forget_places(name);
    (void)tell(RemoveNode{name});
  }
  if (record.node)
    touch_node(name);
  else if (record.pods.empty())
    nodes_.erase(name);
}

bool Desk::is_being_bound_to(const std::string& name) const {
  return std::any_of(binds_.begin(), binds_.end(), [&](const auto& bind) {
    const Unit& unit = units_.at(bind.second.unit);
    return std::any_of(bind.second.slots.begin(), bind.second.slots.end(), [&](std::size_t index) {
      return unit.slots[index].place && unit.slots[index].place->node == name;
    });
  });
}

// The engine is about to lose what is on this node: nothing is left there to be given back.
void Desk::forget_places(const std::string& name) {
  for (const std::string& uid : nodes_.at(name).pods) {
    const auto it = pods_.find(uid);
    if (it == pods_.end()) continue;
    if (it->second.charged) discharge(it->second);
    Slot* slot = slot_of(it->second);
    if (slot == nullptr || slot->stage != Stage::Bound) continue;
    // A pod by itself can't move; whoever is made in its stead is another one. The engine looks for
    // new places of members of gangs, whose pods are told to go when there is one.
    if (units_.at(it->second.unit).gang.empty()) {
      step_out(it->second);
      continue;
    }
    if (slot->place && slot->place->node != name) continue;  // it has a new one already
    slot->place.reset();
    touch_guards(units_.at(it->second.unit));
  }
  for (auto& [id, unit] : units_)  // places that were found for pods which are not there yet
    for (Slot& slot : unit.slots)
      if (slot.stage != Stage::Binding && slot.place && slot.place->node == name)
        give_back(slot, Outcome::NodeLost);
  std::vector<std::string> keys;
  for (const auto& [key, blockers] : blockers_)
    if (!blockers.empty() && blockers.front().node == name) keys.push_back(key);
  for (const std::string& key : keys) unblock(key);
}

// A gang with a member on a node that does not answer starts over elsewhere. The member that is
// there keeps its devices until it has certainly gone, which may take for ever; so it is no member
// any more. Pods by themselves are left to Kubernetes, which evicts them as their tolerations say.
void Desk::lose_gangs(const std::string& name) {
  const std::set<std::string> pods = nodes_.at(name).pods;
  for (const std::string& uid : pods) {
    const auto it = pods_.find(uid);
    if (it == pods_.end() || it->second.unit.empty()) continue;
    PodRecord& record = it->second;
    Unit& unit = units_.at(record.unit);
    Slot& slot = *slot_of(record);
    if (unit.gang.empty() || slot.stage != Stage::Bound || !slot.place) continue;
    if (!slot.pin.empty()) start_over(unit, "node " + name + " is not ready");
    const std::vector<int> gpus = slot.place->gpus;
    give_back(slot, Outcome::NodeLost);
    block("pod:" + uid, name, gpus);
    record.charged = Resources{};  // its CPU and memory don't matter while nothing goes there
    evict(record, "NodeNotReady", "node " + name + " is not ready; its gang starts over elsewhere");
    leave_gang(record);
    record.unit.clear();
    slot_empties(unit, slot, false);
  }
  settle();
}

// What happened to a node is told when it happens. Whoever came there while it did, or is found
// there by a scheduler that has just begun, has not heard of it.
void Desk::look_at_newly_used() {
  for (const std::string& name : std::exchange(newly_used_, {})) {
    const auto it = nodes_.find(name);
    if (it == nodes_.end() || !it->second.node) continue;
    const gs::Node& node = *it->second.node;
    if (!node.ready) lose_gangs(name);
    if (std::any_of(node.gpus.begin(), node.gpus.end(),
                    [](const Gpu& gpu) { return gpu.health == Health::Unhealthy; }))
      touch_node(name);
  }
}

// ---------------------------------------------------------------- what others take

void Desk::charge(PodRecord& record) {
  const Result<PodResources> takes = pod_resources(record.pod);
  record.charged = takes ? takes->resources : Resources{};
  add(nodes_.at(record.pod.node_name).used_by_others, *record.charged, +1);
  touch_node(record.pod.node_name);
  const std::vector<int> gpus = devices_of(record);
  if (!gpus.empty()) block("pod:" + record.pod.meta.uid, record.pod.node_name, gpus);
}

void Desk::discharge(PodRecord& record) {
  add(nodes_.at(record.pod.node_name).used_by_others, *record.charged, -1);
  record.charged.reset();
  touch_node(record.pod.node_name);
  unblock("pod:" + record.pod.meta.uid);
}

// The devices of a bound pod: as we wrote on it, as the node's agent sees it use them, or else, as
// many as it asked for from the end, where we give out last.
std::vector<int> Desk::devices_of(const PodRecord& record) const {
  if (const std::string* text = record.pod.meta.annotation(kAllocatedAnnotation)) {
    const Result<Allocated> allocated = parse_allocated(*text);
    if (allocated && allocated->node == record.pod.node_name) return allocated->gpus;
  }
  const NodeRecord& node = nodes_.at(record.pod.node_name);
  if (const auto seen = node.in_use.find(record.pod.meta.uid); seen != node.in_use.end())
    return seen->second;
  const Result<PodResources> takes = pod_resources(record.pod);
  std::vector<int> gpus;
  const NodeId id = engine_->cluster().find_node(record.pod.node_name);
  if (!takes || takes->gpus == 0 || !id.valid()) return gpus;
  const NodeState& state = engine_->cluster().node(id);
  for (int gpu = state.layout->count - 1; gpu >= 0 && static_cast<int>(gpus.size()) < takes->gpus;
       --gpu)
    if (state.gpus[static_cast<std::size_t>(gpu)].milli.used == 0) gpus.push_back(gpu);
  std::sort(gpus.begin(), gpus.end());
  return gpus;
}

std::vector<MigPlace> Desk::instances_of(const PodRecord& record) const {
  std::vector<MigPlace> places;
  if (const std::string* text = record.pod.meta.annotation(kInstancesAnnotation))
    if (Result<std::vector<MigPlace>> parsed = parse_instances(*text)) places = std::move(*parsed);
  return places;
}

// A job that nobody may evict stands for what somebody else holds, one for each GPU. Where a GPU is
// still taken (a pod of ours is about to fail to bind there), its blocker waits for it.
void Desk::block(const std::string& key, const std::string& node, const std::vector<int>& gpus) {
  std::vector<Blocker>& blockers = blockers_[key];
  for (const int gpu : gpus) {
    const bool known = std::any_of(blockers.begin(), blockers.end(), [&](const Blocker& blocker) {
      return blocker.node == node && blocker.gpu == gpu;
    });
    if (!known) blockers.push_back({node, gpu, {}});
  }
  stand(key);
}

// Whether nobody has it. Somebody may have been promised it, who has to look elsewhere; and it may
// be unhealthy or hot, but not for ever.
bool Desk::is_free_for(const Blocker& blocker) const {
  const NodeId id = engine_->cluster().find_node(blocker.node);
  if (!id.valid()) return false;
  const NodeState& node = engine_->cluster().node(id);
  return (node.whole & gpu_bit(blocker.gpu)) != 0 &&
         node.gpus[static_cast<std::size_t>(blocker.gpu)].milli.used == 0;
}

// A place that was found for a pod which is still to be made is nobody's yet.
void Desk::yield_to(const Blocker& blocker) {
  const Cluster& cluster = engine_->cluster();
  const NodeId node = cluster.find_node(blocker.node);
  if (!node.valid()) return;
  std::vector<TaskRef> there;
  for (const TaskId id : cluster.node(node).tasks)
    if (const Task& task = cluster.task(id); (task.place.gpus & gpu_bit(blocker.gpu)) != 0)
      there.push_back({cluster.job(task.job).id, task.group, task.rank});
  for (const TaskRef& task : there) {
    Slot* slot = find_slot(task);
    if (slot == nullptr || !slot->place || slot->stage == Stage::Binding) continue;
    const bool is_there =
        slot->stage == Stage::Bound && pods_.at(slot->pod).pod.node_name == blocker.node;
    if (!is_there) give_back(*slot, Outcome::Stopped);
  }
}

void Desk::stand(const std::string& key) {
  bool all = true;
  for (Blocker& blocker : blockers_.at(key)) {
    if (!blocker.job.empty()) continue;
    // The engine is told only what it will take: whatever it is told makes it look again.
    if (!is_free_for(blocker)) yield_to(blocker);
    if (!is_free_for(blocker)) {
      all = false;
      continue;
    }
    Job job;
    job.id = "others:" + key + "#" + std::to_string(++last_blocker_);
    job.name = key;
    job.tenant = kOthersTenant;
    Group group;
    group.name = "devices";
    group.request.gpu.count = 1;
    job.groups.push_back(std::move(group));
    const std::string id = job.id;
    const Status submitted = tell(SubmitJob{std::move(job)});
    CHECK_MSG(submitted.ok(), submitted.ok() ? "" : submitted.error().message);
    if (tell(AdoptTask{{id, 0, 0}, blocker.node, {blocker.gpu}, {}, now_, false})) {
      blocker.job = id;
    } else {
      (void)tell(CancelJob{id});
      all = false;
    }
  }
  if (all)
    waiting_blockers_.erase(key);
  else
    waiting_blockers_.insert(key);
}

void Desk::stand_waiting() {
  for (const std::string& key :
       std::vector<std::string>(waiting_blockers_.begin(), waiting_blockers_.end()))
    stand(key);
}

// The engine wants a device to be left, because it is unhealthy. Whoever is there does not hear of
// it and stays; to the engine it is a new job, lest it look for another place for the old one.
void Desk::stand_again(const std::string& job) {
  for (auto& [key, blockers] : blockers_)
    for (Blocker& blocker : blockers) {
      if (blocker.job != job) continue;
      (void)tell(CancelJob{job});
      blocker.job.clear();
      waiting_blockers_.insert(key);
      return;
    }
}

void Desk::unblock(const std::string& key) {
  const auto it = blockers_.find(key);
  if (it == blockers_.end()) return;
  const std::vector<Blocker> blockers = std::move(it->second);
  blockers_.erase(it);
  waiting_blockers_.erase(key);
  for (const Blocker& blocker : blockers)
    if (!blocker.job.empty()) (void)tell(TaskEnded{{blocker.job, 0, 0}, Outcome::Succeeded});
  stand_waiting();
}

}  // namespace gs::kube
