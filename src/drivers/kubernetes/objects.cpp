#include "drivers/kubernetes/objects.hpp"

#include <algorithm>
#include <charconv>

#include "wire/kube/gang.hpp"
#include "wire/kube/names.hpp"
#include "wire/kube/node_model.hpp"
#include "wire/kube/runtime.hpp"
#include "wire/kube/task_request.hpp"

namespace gs::kube {
namespace {

// As it was written on the pod when it was bound.
std::optional<int> given_index(const Meta& pod) {
  const std::string* text = pod.annotation(kIndexAnnotation);
  int index = -1;
  if (text != nullptr) std::from_chars(text->data(), text->data() + text->size(), index);
  return index >= 0 ? std::optional(index) : std::nullopt;
}

bool waits(PodAsk& ask, const char* reason, std::string message) {
  ask.reason = reason;
  ask.waits_for = std::move(message);
  return false;
}

// Of what only a newcomer has to wait for: who is bound holds what it has.
bool newcomer_waits(const Pod& pod, PodAsk& ask, const char* reason, std::string message) {
  return !pod.node_name.empty() || waits(ask, reason, std::move(message));
}

// Volcano writes it where the user chose no queue.
constexpr const char* kNoQueue = "default";

// Among whose pods the lines of a map are given out, by uid: those of a Deployment are, whichever
// of its ReplicaSets made them. Empty: nobody made the pod.
std::string counted_among(const Pod& pod, const Owners& owners) {
  if (const Workload* whole = whole_of(owners)) return whole->meta.uid;
  const OwnerReference* owner = pod.meta.controller();
  return owner == nullptr ? std::string{} : owner->uid;
}

// What pods read of it; its status changes with each of them.
bool says_the_same(const Workload& a, const Workload& b) {
  return a.pods == b.pods && a.deadline == b.deadline && a.meta.annotations == b.meta.annotations &&
         a.meta.owners == b.meta.owners;
}

// Devices that a node does not offer any more. Its agent has lost them; where there is none, the
// device plugin may just be restarted, and pods run on: nothing new is placed on them.
void keep_missing(const gs::Node& before, gs::Node& now, Health health) {
  const std::size_t had = before.gpus.size(), has = now.gpus.size();
  if (has >= had) return;
  for (std::size_t i = has; i < had; ++i) {
    now.gpus.push_back(before.gpus[i]);
    now.gpus.back().health = health;
  }
  if (now.peer_bandwidth_gbps.empty()) return;
  std::vector<int> peers(had * had, 0);
  for (std::size_t i = 0; i < has; ++i)
    for (std::size_t j = 0; j < has; ++j) peers[i * had + j] = now.peer_bandwidth_gbps[i * has + j];
  now.peer_bandwidth_gbps = std::move(peers);
}

// Rules that would be broken if nobody looked at them: such a pod waits rather than lies wrong.
const char* unknown_rule(const Pod& pod) {
  if (!pod.device_claims.empty()) return "resource claims";
  return nullptr;
}

}  // namespace

// ---------------------------------------------------------------- what a pod asks for

PodAsk Objects::ask(const Pod& pod) {
  const std::string& uid = pod.meta.uid;
  PodAsk ask;
  ask.priority = engine_priority(pod.priority);
  ask.may_preempt = pod.may_preempt;
  of_pod_[uid].ns = pod.meta.ns;
  ask.tenant = tenant_of(namespace_of(pod), tenants_);
  const auto [owners, unseen] = makers_of(pod);
  // A wrong one is told with the request.
  if (const auto runtime = expected_runtime(pod, owners)) ask.expected_runtime = *runtime;
  const GpuClaim* claim = nullptr;
  std::optional<MapEntry> pin;
  std::string pin_group;
  if (const char* rule = unknown_rule(pod)) {
    waits(ask, "NotSupported",
          std::string("this scheduler does not place pods with required ") + rule);
    return ask;
  }
  // It may say that the pod belongs to a gang, or where it has to lie.
  if (unseen != nullptr &&
      !newcomer_waits(pod, ask, "OwnerUnseen",
                      unseen->kind + " " + unseen->name + ", which made it, has not been seen yet"))
    return ask;
  if (!find_claim(pod, ask, claim) || !find_gang(pod, claim, owners, ask)) return ask;
  if (pod.ended()) return ask;  // its gang may count it, but its claim and its line are free
  if (!may_use_claim(pod, ask) || !find_pin(pod, owners, ask, pin, pin_group)) return ask;
  const RequestContext context{claim, owners, pin ? &*pin : nullptr, known_domains(pod, owners)};
  Result<TaskReading> reading = task_request(pod, context);
  if (reading) {
    reading->request.gpu.pin_group = pin_group;
    if (reading->request != *last_request_)
      last_request_ = SharedRequest(std::move(reading->request));
    ask.request = last_request_;
  } else {
    waits(ask, "InvalidRequest", reading.error().message);
  }
  return ask;
}

Objects::Makers Objects::makers_of(const Pod& pod) {
  Makers makers;
  const OwnerReference* next = pod.meta.controller();
  while (next != nullptr && makers.owners.size() < 4) {
    watch(by_owner_, {{}, next->uid}, pod.meta.uid);
    const auto it = workloads_.find(next->uid);
    if (it == workloads_.end()) {
      if (makes_pods(*next)) makers.unseen = next;
      break;
    }
    makers.owners.push_back(&it->second);
    next = it->second.meta.controller();
  }
  return makers;
}

bool Objects::find_claim(const Pod& pod, PodAsk& ask, const GpuClaim*& claim) {
  const std::string* name = pod.meta.annotation(kClaimAnnotation);
  if (name == nullptr) return true;
  ask.claim = *name;
  const Key key{pod.meta.ns, *name};
  watch(by_claim_, key, pod.meta.uid);
  const auto it = claims_.find(key);
  const std::string text = "GpuClaim " + pod.meta.ns + "/" + *name;
  if (it == claims_.end()) return waits(ask, "ClaimMissing", text + " does not exist");
  if (!it->second.claim) return waits(ask, "ClaimInvalid", text + ": " + it->second.error);
  claim = &*it->second.claim;
  return true;
}

// A claim serves the pods of a gang, or else one pod: who runs with it, or who came first.
bool Objects::may_use_claim(const Pod& pod, PodAsk& ask) {
  if (ask.claim.empty() || !ask.gang.empty()) return true;
  ClaimUser& user = claim_users_[{pod.meta.ns, ask.claim}];
  if (user.uid.empty() || !pod.node_name.empty()) user = {pod.meta.uid, pod.meta.name};
  if (user.uid == pod.meta.uid) return true;
  return waits(ask, "ClaimInUse",
               "GpuClaim " + pod.meta.ns + "/" + ask.claim + " serves pod " + user.name +
                   " already; without gangRef a claim serves one pod");
}

bool Objects::find_gang(const Pod& pod, const GpuClaim* claim, const Owners& owners, PodAsk& ask) {
  const Result<std::optional<std::string>> name = gang_name(pod.meta, claim, owners);
  if (!name) return waits(ask, "InvalidGang", name.error().message);
  if (!*name) return true;
  const Key key{pod.meta.ns, **name};
  watch(by_group_, key, pod.meta.uid);
  const auto group = groups_.find(key);
  const Result<GangAsk> gang =
      gang_ask(**name, group == groups_.end() ? nullptr : &group->second, pod.meta, owners);
  if (!gang) return waits(ask, "InvalidGang", gang.error().message);
  if (!gang->size) return waits(ask, "GangSizeUnknown", gang->size_from);
  ask.gang = pod.meta.ns + "/" + gang->name;
  ask.gang_size = *gang->size;
  ask.gang_owner = counted_among(pod, owners);
  return group == groups_.end() || obey_group(pod, group->second, ask);
}

// What a PodGroup says besides the size of the gang.
bool Objects::obey_group(const Pod& pod, const PodGroup& group, PodAsk& ask) {
  ask.topology = group.topology;
  if (group.has_sub_groups)
    return newcomer_waits(pod, ask, "NotSupported",
                          "PodGroup " + group.meta.name +
                              " has subGroups, which this scheduler does not know; make a " +
                              "PodGroup of each");
  return find_queue(pod, group, ask) && find_priority(pod, group, ask);
}

// A queue of a GpuTenant's name is that tenant, if it takes the pod's namespace: nobody uses up
// what is another's.
bool Objects::find_queue(const Pod& pod, const PodGroup& group, PodAsk& ask) {
  const auto tenant = std::find_if(tenants_.begin(), tenants_.end(), [&](const GpuTenant& one) {
    return one.meta.name == group.queue;
  });
  if (tenant == tenants_.end()) return true;
  if (!takes(*tenant, namespace_of(pod)))
    return group.queue == kNoQueue ||
           newcomer_waits(pod, ask, "QueueRefused",
                          "PodGroup " + group.meta.name + " names queue " + group.queue +
                              ", but GpuTenant " + group.queue + " does not take namespace " +
                              pod.meta.ns);
  ask.tenant = group.queue;
  return true;
}

bool Objects::find_priority(const Pod& pod, const PodGroup& group, PodAsk& ask) {
  if (group.priority_class.empty() || !pod.priority_class.empty()) return true;
  watch(by_class_, {{}, group.priority_class}, pod.meta.uid);
  const auto klass = classes_.find(group.priority_class);
  if (klass == classes_.end())
    return newcomer_waits(pod, ask, "PriorityClassMissing",
                          "PodGroup " + group.meta.name + " names PriorityClass " +
                              group.priority_class + ", which does not exist");
  ask.priority = engine_priority(klass->second.value);
  ask.may_preempt = klass->second.may_preempt;
  return true;
}

const Meta& Objects::namespace_of(const Pod& pod) {
  const auto [it, is_new] = namespaces_.try_emplace(pod.meta.ns);
  if (is_new) it->second.meta.name = pod.meta.ns;
  return it->second.meta;
}

bool Objects::find_pin(const Pod& pod, const Owners& owners, PodAsk& ask,
                       std::optional<MapEntry>& pin, std::string& group) {
  ask.index = pod_index(pod.meta).value_or(-1);
  const Found text = find_annotation(pod.meta, owners, kMapAnnotation);
  if (text.value == nullptr) return true;
  const Result<SchedulingMap> map = parse_scheduling_map(*text.value);
  if (!map) return waits(ask, "BadSchedulingMap", map.error().message);
  const std::string owner = counted_among(pod, owners);
  ask.index = index_of(pod, owner);
  const MapEntry* entry = map->find(ask.index);
  if (entry == nullptr) {
    free_index(pod.meta.uid);  // it may get that of a sibling that goes
    return waits(
        ask, "BadSchedulingMap",
        std::string(kMapAnnotation) + " has no line for index " + std::to_string(ask.index));
  }
  watch(by_node_, {{}, entry->node}, pod.meta.uid);
  const auto node = read_nodes_.find(entry->node);
  if (Status fits = check_entry(*entry, node == read_nodes_.end() ? nullptr : node->second.get());
      !fits)
    return waits(ask, "BadSchedulingMap", fits.error().message);
  pin = *entry;
  group = share_group(pod.meta.ns, owner, *map, *entry);
  return true;
}

// The pod's own, the one that it was given before, or the lowest that is free among its siblings.
int Objects::index_of(const Pod& pod, const std::string& owner) {
  const std::string& uid = pod.meta.uid;
  if (const auto known = index_of_pod_.find(uid); known != index_of_pod_.end())
    return known->second.second;
  const std::string& among = owner.empty() ? uid : owner;
  std::map<int, std::string>& taken = indexes_[among];
  std::optional<int> own = pod_index(pod.meta);
  if (!own && !pod.node_name.empty()) own = given_index(pod.meta);
  int index = own.value_or(0);
  while (!own && taken.contains(index)) ++index;
  taken[index] = uid;
  index_of_pod_[uid] = {among, index};
  return index;
}

void Objects::free_index(const std::string& uid) {
  const auto it = index_of_pod_.find(uid);
  if (it == index_of_pod_.end()) return;
  const auto owner = indexes_.find(it->second.first);
  const auto taken = owner->second.find(it->second.second);
  if (taken != owner->second.end() && taken->second == uid) owner->second.erase(taken);
  if (owner->second.empty()) indexes_.erase(owner);
  index_of_pod_.erase(it);
}

Uids Objects::forget_pod(const std::string& uid) {
  Uids siblings;  // one of them may wait for its index or its claim
  if (const auto it = index_of_pod_.find(uid); it != index_of_pod_.end())
    siblings = waiting_for(by_owner_, {{}, it->second.first});
  free_index(uid);
  if (const auto it = of_pod_.find(uid); it != of_pod_.end()) {
    for (const auto& [index, key] : it->second.others) {
      if (const auto user = claim_users_.find(key);
          index == &by_claim_ && user != claim_users_.end() && user->second.uid == uid) {
        claim_users_.erase(user);
        for (const std::string& next : waiting_for(by_claim_, key)) siblings.push_back(next);
      }
      const auto entry = index->find(key);
      if (entry == index->end()) continue;
      entry->second.erase(uid);
      if (entry->second.empty()) index->erase(entry);
    }
    of_pod_.erase(it);
  }
  std::erase(siblings, uid);
  return siblings;
}

// ---------------------------------------------------------------- who refers to what

void Objects::watch(Index& index, Key key, const std::string& uid) {
  if (index[key].insert(uid).second) of_pod_[uid].others.emplace_back(&index, std::move(key));
}

Uids Objects::waiting_for(const Index& index, const Key& key) const {
  const auto it = index.find(key);
  return it == index.end() ? Uids{} : Uids(it->second.begin(), it->second.end());
}

Uids Objects::all_pods() const {
  Uids uids;
  for (const auto& [uid, mentions] : of_pod_) uids.push_back(uid);
  return uids;
}

Uids Objects::put(GpuClaim claim) {
  const Key key{claim.meta.ns, claim.meta.name};
  claims_[key] = {std::move(claim), {}};
  return waiting_for(by_claim_, key);
}

Uids Objects::put_broken_claim(const std::string& ns, const std::string& name, std::string error) {
  claims_[{ns, name}] = {std::nullopt, std::move(error)};
  return waiting_for(by_claim_, {ns, name});
}

Uids Objects::remove_claim(const std::string& ns, const std::string& name) {
  claims_.erase({ns, name});
  return waiting_for(by_claim_, {ns, name});
}

Uids Objects::put(Workload workload) {
  const std::string uid = workload.meta.uid;
  const auto known = workloads_.find(uid);
  const bool same = known != workloads_.end() && says_the_same(known->second, workload);
  workloads_[uid] = std::move(workload);
  return same ? Uids{} : waiting_for(by_owner_, {{}, uid});
}

void Objects::remove_workload(const std::string& uid) { workloads_.erase(uid); }

Uids Objects::put(PodGroup group) {
  const Key key{group.meta.ns, group.meta.name};
  groups_[key] = std::move(group);
  return waiting_for(by_group_, key);
}

Uids Objects::remove_pod_group(const std::string& ns, const std::string& name) {
  groups_.erase({ns, name});
  return waiting_for(by_group_, {ns, name});
}

Uids Objects::put(PriorityClass klass) {
  const std::string name = klass.meta.name;
  classes_[name] = std::move(klass);
  return waiting_for(by_class_, {{}, name});
}

Uids Objects::remove_priority_class(const std::string& name) {
  classes_.erase(name);
  return waiting_for(by_class_, {{}, name});
}

Uids Objects::put(const Namespace& name_space) {
  const std::string name = name_space.meta.name;
  const bool same =
      namespaces_.contains(name) && namespaces_[name].meta.labels == name_space.meta.labels;
  namespaces_[name] = name_space;
  Uids inside;
  for (const auto& [uid, mentions] : of_pod_)
    if (!same && mentions.ns == name) inside.push_back(uid);
  return inside;
}

Uids Objects::put(GpuTenant tenant) {
  const auto at = std::lower_bound(
      tenants_.begin(), tenants_.end(), tenant.meta.name,
      [](const GpuTenant& known, const std::string& name) { return known.meta.name < name; });
  if (at != tenants_.end() && at->meta.name == tenant.meta.name)
    *at = std::move(tenant);
  else
    tenants_.insert(at, std::move(tenant));
  return all_pods();
}

Uids Objects::remove_tenant(const std::string& name) {
  std::erase_if(tenants_, [&](const GpuTenant& tenant) { return tenant.meta.name == name; });
  return all_pods();
}

// ---------------------------------------------------------------- nodes

SharedNode Objects::node_of(const std::string& name) {
  const auto it = nodes_.find(name);
  if (it == nodes_.end()) return nullptr;
  const auto report = reports_.find(name);
  NodeReading reading =
      to_node(it->second, report == reports_.end() ? nullptr : &report->second, config_);
  SharedNode& known = read_nodes_[name];
  const bool reported = report != reports_.end() && !report->second.devices.empty();
  if (known) keep_missing(*known, reading.node, reported ? Health::Unhealthy : Health::Unknown);
  if (known && *known == reading.node) return known;  // a heartbeat
  const auto& domain = reading.node.domain;
  if (known ? known->domain != domain : !domain.empty()) forget_domains();
  known = std::make_shared<const gs::Node>(std::move(reading.node));
  return known;
}

Uids Objects::concerned_by(const std::string& node) {
  Uids uids = waiting_for(by_node_, {{}, node});
  if (!std::exchange(domains_changed_, false)) return uids;
  const Uids named = waiting_for(by_domain_, {});
  uids.insert(uids.end(), named.begin(), named.end());
  return uids;
}

// Those that nodes lie in or the configuration names, where the pod names one itself.
std::vector<std::string> Objects::known_domains(const Pod& pod, const Owners& owners) {
  if (find_annotation(pod.meta, owners, kPreferredDomainAnnotation).value == nullptr) return {};
  watch(by_domain_, {}, pod.meta.uid);
  if (domains_.empty()) {  // once for all pods that ask before they change
    for (const NamedDomain& domain : config_.domains) domains_.insert(domain.name);
    for (const auto& [name, node] : read_nodes_)
      domains_.insert(node->domain.begin(), node->domain.end());
  }
  return {domains_.begin(), domains_.end()};
}

void Objects::forget_domains() {
  domains_.clear();
  domains_changed_ = true;
}

SharedNode Objects::put(Node node) {
  const std::string name = node.meta.name;
  nodes_[name] = std::move(node);
  return node_of(name);
}

void Objects::remove_node(const std::string& name) {
  nodes_.erase(name);
  read_nodes_.erase(name);
  forget_domains();
}

SharedNode Objects::put(GpuNodeStatus status) {
  const std::string name = status.node_name.empty() ? status.meta.name : status.node_name;
  reports_[name] = std::move(status);
  return node_of(name);
}

SharedNode Objects::remove_node_status(const std::string& name) {
  reports_.erase(name);
  return node_of(name);
}

std::map<std::string, std::vector<int>> Objects::in_use(const std::string& node) const {
  std::map<std::string, std::vector<int>> users;
  if (const auto it = reports_.find(node); it != reports_.end())
    for (const Device& device : it->second.devices)
      for (const std::string& uid : device.in_use_by) users[uid].push_back(device.gpu.index);
  return users;
}

std::string Objects::adapters(const PodPlace& place) const {
  const auto report = reports_.find(place.node);
  if (report == reports_.end()) return {};
  std::set<int> gpus(place.gpus.begin(), place.gpus.end());
  for (const MigPlace& instance : place.mig) gpus.insert(instance.gpu);
  std::set<std::string> nearest;
  for (const Device& device : report->second.devices)
    if (gpus.contains(device.gpu.index) && !device.rdma.empty()) nearest.insert(device.rdma);
  std::string text;
  for (const std::string& adapter : nearest) text.append(text.empty() ? "" : ",").append(adapter);
  return text;
}

DeviceNames Objects::instances(const PodPlace& place) const {
  const auto report = reports_.find(place.node);
  std::string text;
  std::set<std::string> named;
  for (const MigPlace& instance : place.mig) {
    std::string one = std::to_string(instance.gpu);
    if (report != reports_.end())
      for (const Device& device : report->second.devices)
        for (std::size_t i = 0; device.gpu.index == instance.gpu && i < device.gpu.mig.size(); ++i)
          if (device.gpu.mig[i] == MigInstance{instance.profile, instance.start} &&
              i < device.mig_uuids.size() && !device.mig_uuids[i].empty())
            one = device.mig_uuids[i];
    if (named.insert(one).second) text.append(text.empty() ? "" : ",").append(one);
  }
  return {text, text};
}

std::vector<SharedNode> Objects::set_config(SchedulerConfig config) {
  config_ = std::move(config);
  forget_domains();
  std::vector<SharedNode> nodes;
  for (const auto& [name, node] : nodes_) nodes.push_back(node_of(name));
  return nodes;
}

}  // namespace gs::kube
