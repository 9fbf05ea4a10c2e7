// Nodes: they come, change, and go with what lies on them.
#include <algorithm>

#include "drivers/kubernetes/desk.hpp"
#include "wire/kube/host_ports.hpp"

namespace gs::kube {
namespace {

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
    set_resized(it->second, {});
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
    std::vector<Hold> holds = holds_in(*slot.place);
    give_back(slot, Outcome::NodeLost);
    block("pod:" + uid, name, std::move(holds));
    set_resized(record, {});
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

}  // namespace gs::kube
