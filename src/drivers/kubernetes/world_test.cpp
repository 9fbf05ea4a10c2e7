#include "drivers/kubernetes/world_test.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "base/check.hpp"
#include "drivers/kubernetes/binder.hpp"
#include "wire/kube/names.hpp"
#include "wire/kube/pod_resources.hpp"
#include "wire/kube/quantity.hpp"
#include "wire/kube/runtime.hpp"

namespace gs::kube {
namespace {

constexpr const char* kTestGang = "test/gang";
constexpr const char* kTestSize = "test/gang-size";
constexpr const char* kTestPin = "test/pin";  // node:ids
constexpr const char* kTestPinGroup = "test/pin-group";
constexpr const char* kTestShare = "test/share";  // milli,MiB
constexpr const char* kTestClaimGone = "test/claim-gone";
constexpr std::int64_t kTestGpuMemory = 81920;

TaskRequest request_of(const Pod& pod) {
  const Result<PodResources> takes = pod_resources(pod);
  TaskRequest request;
  request.resources = takes->resources;
  request.gpu.count = takes->gpus;
  if (const std::string* named = pod.meta.annotation(kTestNamed))
    request.gpu.count = std::stoi(*named);
  if (const std::string* pin = pod.meta.annotation(kTestPin)) {
    const Result<Allocated> devices = parse_allocated(*pin);
    request.only_nodes = {devices->node};
    request.gpu.pinned_ids = devices->gpus;
    request.gpu.pin_group = *pod.meta.annotation(kTestPinGroup);
  }
  if (const std::string* share = pod.meta.annotation(kTestShare)) {
    request.gpu.sharing = Sharing::Shared;
    request.gpu.milli = std::stoi(*share);
    request.gpu.memory_mib = std::stoll(share->substr(share->find(',') + 1));
  }
  return request;
}

PodAsk ask_of(const Pod& pod) {
  PodAsk ask;
  ask.tenant = "team";
  ask.priority = 10'000 + pod.priority;
  if (const auto runtime = expected_runtime(pod, {})) ask.expected_runtime = *runtime;
  if (pod.meta.annotation(kTestClaimGone) != nullptr) {
    ask.waits_for = "its claim does not exist";
    return ask;
  }
  if (const auto gang = World::gang_of(pod)) {
    ask.gang = pod.meta.ns + "/" + gang->first;
    ask.gang_size = gang->second;
    ask.gang_owner = pod.meta.controller()->uid;
  }
  ask.request = SharedRequest(request_of(pod));
  return ask;
}

}  // namespace

World::World(int schedulers, bool alone, bool leases, bool kubelet_chooses)
    : alone_(alone), with_leases_(leases), kubelet_chooses_(kubelet_chooses) {
  schedulers_.resize(static_cast<std::size_t>(schedulers));
  for (Scheduler& scheduler : schedulers_) {
    scheduler.leads = !alone || &scheduler == &schedulers_.front();
    start(scheduler);
  }
}

void World::start(Scheduler& scheduler) {
  DeskOptions options;
  options.alone = alone_;
  options.leases = with_leases_;
  options.kubelet_chooses = kubelet_chooses_;
  scheduler.desk = std::make_unique<Desk>(options, ask_of);
  scheduler.news.clear();
  scheduler.writes.clear();
  scheduler.binds.clear();
  GpuTenant team;
  team.meta.name = team.meta.uid = team.tenant.id = "team";
  scheduler.desk->begin(now_);
  scheduler.desk->put(team);
  for (const auto& [name, node] : nodes_)
    scheduler.desk->put_node(std::make_shared<const gs::Node>(node), {});
  for (const auto& [uid, pod] : pods_) scheduler.desk->put(pod);
  for (const auto& [name, lease] : leases_) scheduler.desk->put(lease);
  if (scheduler.leads) scheduler.desk->synced();
}

void World::take_over(std::size_t scheduler) {
  for (Scheduler& other : schedulers_) {
    if (&other == &schedulers_[scheduler] || !std::exchange(other.leads, false)) continue;
    start(other);
  }
  if (std::exchange(schedulers_[scheduler].leads, true)) return;
  schedulers_[scheduler].desk->begin(now_);
  schedulers_[scheduler].desk->synced();
}

void World::restart(std::size_t scheduler) { start(schedulers_[scheduler]); }

void World::tell_all(const News& news) {
  for (Scheduler& scheduler : schedulers_) scheduler.news.push_back(news);
}

void World::changed(Pod& pod) {
  pod.meta.resource_version = std::to_string(++version_);
  tell_all([copy = pod](Desk& desk) { desk.put(copy); });
  check();
}

void World::changed(Lease& lease) {
  lease.meta.resource_version = std::to_string(++version_);
  tell_all([copy = lease](Desk& desk) { desk.put(copy); });
}

// ---------------------------------------------------------------- users, controllers, kubelets

void World::add_node(const std::string& name, int gpus, const Labels& labels) {
  gs::Node node;
  node.name = name;
  node.labels = labels;
  set_label(node.labels, "kubernetes.io/hostname", name);
  node.capacity = {64'000, 512 * 1024 * kMiB, {{"pods", 110}}};
  for (int i = 0; i < gpus; ++i) {
    Gpu gpu;
    gpu.index = i;
    gpu.uuid = name + "-" + std::to_string(i);
    gpu.model = "H100";
    gpu.memory_mib = kTestGpuMemory;
    node.gpus.push_back(gpu);
  }
  changed(nodes_[name] = node);
}

void World::changed(const gs::Node& node) {
  tell_all(
      [shared = std::make_shared<const gs::Node>(node)](Desk& desk) { desk.put_node(shared, {}); });
}

void World::set_ready(const std::string& name, bool ready) {
  nodes_.at(name).ready = ready;
  changed(nodes_.at(name));
}

void World::set_health(const std::string& name, std::size_t gpu, Health health) {
  nodes_.at(name).gpus[gpu].health = health;
  changed(nodes_.at(name));
}

void World::set_model(const std::string& name, const std::string& model) {
  for (Gpu& gpu : nodes_.at(name).gpus) gpu.model = model;
  changed(nodes_.at(name));
}

void World::remove_node(const std::string& name) {
  nodes_.erase(name);
  tell_all([name](Desk& desk) { desk.remove_node(name); });
}

Pod World::make_pod(const std::string& name, int gpus, const std::string& gang,
                    int gang_size) const {
  Pod pod;
  pod.meta.name = name;
  pod.meta.ns = "default";
  pod.meta.uid = "uid-" + name;
  pod.scheduler_name = "gpu-scheduler";
  if (!gang.empty()) {
    set_label(pod.meta.annotations, kTestGang, gang);
    set_label(pod.meta.annotations, kTestSize, std::to_string(gang_size));
    pod.meta.owners = {{"batch/v1", "Job", gang, "uid-of-" + gang, true}};
  }
  Container container;
  container.name = "main";
  container.limits = {{std::string(kGpuResource), *parse_quantity(std::to_string(gpus))}};
  container.requests = container.limits;
  pod.containers.push_back(container);
  return pod;
}

Pod World::make_named(const std::string& name, int gpus, const std::string& gang,
                      int gang_size) const {
  Pod pod = make_pod(name, 0, gang, gang_size);
  pod.containers.front().limits.clear();
  pod.containers.front().requests.clear();
  set_label(pod.meta.annotations, kTestNamed, std::to_string(gpus));
  if (kubelet_chooses_) set_label(pod.meta.annotations, kTestToldDevices, "true");
  return pod;
}

void World::forget_claim(const std::string& uid) { annotate(uid, kTestClaimGone, "true"); }

std::string World::add_pinned(const std::string& name, const std::string& node,
                              const std::vector<int>& gpus, const std::string& group) {
  Pod pod = make_pod(name, static_cast<int>(gpus.size()));
  set_label(pod.meta.annotations, kTestPin, allocated_text(node, gpus));
  set_label(pod.meta.annotations, kTestPinGroup, group);
  return add(std::move(pod));
}

std::string World::add_shared(const std::string& name, int milli, std::int64_t memory_mib) {
  Pod pod = make_pod(name, 1);
  set_label(pod.meta.annotations, kTestShare,
            std::to_string(milli) + "," + std::to_string(memory_mib));
  return add(std::move(pod));
}

std::string World::add(Pod pod) {
  std::string uid = pod.meta.uid;
  pod.meta.created = now_;
  changed(pods_[uid] = std::move(pod));
  return uid;
}

void World::annotate(const std::string& uid, const std::string& name, const std::string& value) {
  set_label(pods_.at(uid).meta.annotations, name, value);
  changed(pods_.at(uid));
}

void World::put(const PodDisruptionBudget& budget) {
  tell_all([budget](Desk& desk) { desk.put(budget); });
}

void World::configure(const std::vector<std::string>& levels, const std::vector<std::string>& names,
                      DeviceNaming naming) {
  tell_all([levels, names, naming](Desk& desk) {
    EXPECT_TRUE(desk.configure(Config{}, levels, names, naming).ok());
  });
}

std::string World::add_pod(const std::string& name, int gpus, const std::string& gang,
                           int gang_size, const std::string& scheduler, int priority) {
  Pod pod = make_pod(name, gpus, gang, gang_size);
  pod.scheduler_name = scheduler;
  pod.priority = priority;
  return add(std::move(pod));
}

void World::end_pod(const std::string& uid, PodPhase phase) {
  pods_.at(uid).phase = phase;
  changed(pods_.at(uid));
}

void World::remove_pod(const std::string& uid) {
  pods_.erase(uid);
  tell_all([uid](Desk& desk) { desk.remove_pod(uid); });
}

std::string World::make_anew(const std::string& uid) {
  std::string next = add_follower(uid);
  remove_pod(uid);
  return next;
}

std::string World::add_follower(const std::string& uid) {
  Pod pod = pods_.at(uid);
  pod.meta.name += "+";
  pod.meta.uid = "uid-" + pod.meta.name;
  pod.meta.deleted.reset();
  std::erase_if(pod.meta.annotations,
                [](const auto& one) { return one.first == kAllocatedAnnotation; });
  pod.node_name.clear();
  pod.phase = PodPhase::Pending;
  return add(std::move(pod));
}

std::optional<std::pair<std::string, int>> World::gang_of(const Pod& pod) {
  const std::string* gang = pod.meta.annotation(kTestGang);
  if (gang == nullptr) return std::nullopt;
  return std::pair(*gang, std::stoi(*pod.meta.annotation(kTestSize)));
}

void World::bind_by_another(const std::string& uid, const std::string& node,
                            std::vector<int> gpus) {
  Pod& pod = pods_.at(uid);
  pod.node_name = node;
  if (!gpus.empty())
    set_label(pod.meta.annotations, kAllocatedAnnotation, allocated_text(node, gpus));
  changed(pod);
}

void World::take_lease(const std::string& node, int gpu, const GpuHolder& holder, bool seen) {
  Lease lease;
  lease.meta.name = gpu_lease_name(node, gpu);
  lease.node = node;
  lease.gpu = gpu;
  lease.meta.uid = lease.meta.name + "#" + std::to_string(++version_);
  lease.holder = holder.pod_uid;
  lease.holders = {holder};
  leases_[lease.meta.name] = lease;
  if (seen) changed(leases_[lease.meta.name]);
}

void World::kill_evicted() {
  std::vector<std::string> gone;
  for (const auto& [uid, pod] : pods_) {
    const auto node = nodes_.find(pod.node_name);
    const bool answers = node == nodes_.end() || node->second.ready;
    if (pod.meta.deleted && answers) gone.push_back(uid);
  }
  for (const std::string& uid : gone) remove_pod(uid);
}

// ---------------------------------------------------------------- time

bool World::think(Scheduler& scheduler) {
  scheduler.desk->begin(now_);
  bool busy = false;
  if (scheduler.desk->wants_cycle()) {
    scheduler.desk->cycle();
    busy = true;
  }
  for (const Order& order : scheduler.desk->take()) {
    carry_out(scheduler, order);
    busy = true;
  }
  scheduler.desk->engine().verify();
  scheduler.stood.clear();
  for (const Standing& other : standing()) scheduler.stood.emplace_back(*other.pod);
  scheduler.knew = known_nodes(scheduler);
  return busy;
}

bool World::turn() {
  bool busy = false;
  for (Scheduler& scheduler : schedulers_) {
    while (!scheduler.news.empty()) {
      const News news = std::move(scheduler.news.front());
      scheduler.news.pop_front();
      news(*scheduler.desk);
      busy = true;
    }
    busy |= think(scheduler);
    while (!scheduler.writes.empty()) {
      const auto write = std::move(scheduler.writes.front());
      scheduler.writes.pop_front();
      write();
      busy = true;
    }
  }
  return busy;
}

void World::play() {
  for (int round = 0; round < 200; ++round) {
    const bool busy = turn();
    kill_evicted();
    now_ = now_ + milliseconds(10);
    if (!busy) return;
  }
  ADD_FAILURE() << "the schedulers do not come to rest";
}

void World::advance(Duration duration) {
  const Instant until = now_ + duration;
  while (now_ < until) {
    play();
    now_ = now_ + milliseconds(500);
  }
  play();
}

void World::step(std::size_t index, Rng& rng) {
  Scheduler& scheduler = schedulers_[index];
  const std::uint64_t dice = rng.below(3);
  if (dice == 0 && !scheduler.news.empty()) {
    const News news = std::move(scheduler.news.front());
    scheduler.news.pop_front();
    news(*scheduler.desk);
  } else if (dice == 1 && !scheduler.writes.empty()) {
    const std::size_t pick = rng.below(scheduler.writes.size());
    const auto write = std::move(scheduler.writes[pick]);
    scheduler.writes.erase(scheduler.writes.begin() + static_cast<std::ptrdiff_t>(pick));
    write();
  } else {
    (void)think(scheduler);
  }
  now_ = now_ + milliseconds(static_cast<std::int64_t>(rng.below(50)));
}

// ---------------------------------------------------------------- writes

struct World::BindState {
  World* world = nullptr;
  std::size_t scheduler = 0;
  Bind bind;
  BindDone done;
  struct Taken {
    std::size_t pod;
    Lease lease;  // as this bind made it
  };
  std::vector<Taken> taken;
  std::size_t left = 0;
};

void World::carry_out(Scheduler& scheduler, const Order& order) {
  if (const auto* bind = std::get_if<Bind>(&order)) {
    carry_out_bind(scheduler, *bind);
  } else if (const auto* drop = std::get_if<Release>(&order)) {
    scheduler.writes.push_back([this, drop = *drop] { release(drop); });
  } else if (const auto* breaks = std::get_if<Break>(&order)) {
    scheduler.writes.push_back([this, order = *breaks] {
      if (const auto it = pods_.find(order.holder.uid); it != pods_.end()) {
        if (!it->second.node_name.empty()) return;
        changed(it->second);
      }
      drop_lease(order.node, order.gpu, order.holder.uid);
    });
  } else if (const auto* evict = std::get_if<Evict>(&order)) {
    scheduler.writes.push_back([this, uid = evict->pod.uid] {
      if (const auto it = pods_.find(uid); it != pods_.end() && !it->second.meta.deleted) {
        it->second.meta.deleted = now_;
        changed(it->second);
        if (controllers_ && gang_of(it->second)) add_follower(uid);
      }
    });
  } else if (const auto* words = std::get_if<Tell>(&order)) {
    told_[words->pod.uid] = *words;
  }
}

// Those that are there and that it has heard of.
std::set<std::string> World::known_nodes(const Scheduler& scheduler) const {
  std::set<std::string> names;
  const Cluster& cluster = scheduler.desk->engine().cluster();
  for (const auto& [name, node] : nodes_)
    if (const NodeId id = cluster.find_node(name);
        id.valid() && !cluster.node(id).gone && !cluster.node(id).spec.cordoned)  // or about to go
      names.insert(name);
  return names;
}

std::vector<Standing> World::standing() const {
  std::vector<Standing> all;
  for (const auto& [uid, pod] : pods_)
    if (!pod.node_name.empty() && !pod.ended()) all.push_back({&pod, pod.node_name});
  return all;
}

void World::check_rules(const Scheduler& scheduler, const Bind& bind) const {
  // Two schedulers do not know of each other's plans.
  if (schedulers_.size() > 1) return;
  std::vector<Standing> all = standing();
  const auto unbound = [&](const PodPlace& place) {
    const auto it = pods_.find(place.pod.uid);
    return it != pods_.end() && it->second.node_name.empty() ? &it->second : nullptr;
  };
  for (const auto& [id, other] : scheduler.binds)
    for (const PodPlace& place : other.pods)
      if (const Pod* pod = unbound(place)) all.push_back({pod, place.node});
  // Some pods are bound as soon as they are heard of: whoever went in the same turn, and the nodes
  // that came back with their pods, may have been heard of later.
  std::vector<Standing> departed;
  for (const Pod& pod : scheduler.stood)
    if (const auto it = pods_.find(pod.meta.uid); it == pods_.end() || it->second.ended())
      departed.push_back({&pod, pod.node_name});
  std::map<std::string, gs::Node> known;
  for (const std::string& name : known_nodes(scheduler))
    if (scheduler.knew.contains(name)) known.emplace(name, nodes_.at(name));
  const auto judge = scheduler.news.empty() ? broken_rule : conflict_with;
  const auto broken = [&](const Pod& pod, const std::string& node) {
    std::string why = judge(pod, node, all, nodes_);
    if (why.empty() || judge(pod, node, all, known).empty()) return std::string{};
    std::vector<Standing> before = all;
    before.insert(before.end(), departed.begin(), departed.end());
    return judge(pod, node, before, nodes_).empty() ? std::string{} : why;
  };
  std::vector<const PodPlace*> left;
  for (const PodPlace& place : bind.pods)
    if (unbound(place) != nullptr) left.push_back(&place);
  std::string why;
  for (bool progress = true; progress && !left.empty();) {
    progress = false;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const Pod& pod = *unbound(*left[i]);
      why = broken(pod, left[i]->node);
      if (!why.empty()) continue;
      all.push_back({&pod, left[i]->node});
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(i--));
      progress = true;
    }
  }
  if (!left.empty())
    ADD_FAILURE() << left[0]->pod.name << " must not go to " << left[0]->node << ": " << why;
}

void World::carry_out_bind(Scheduler& scheduler, const Bind& bind) {
  check_rules(scheduler, bind);
  scheduler.binds[bind.id] = bind;
  auto state = std::make_shared<BindState>();
  state->world = this;
  state->scheduler = static_cast<std::size_t>(&scheduler - schedulers_.data());
  state->bind = bind;
  state->done.id = bind.id;
  for (const PodPlace& place : bind.pods) state->done.pods.push_back({place.pod, {}, -1, {}, {}});
  scheduler.writes.push_back([this, state] { take_leases(state); });
}

void World::take_leases(const std::shared_ptr<BindState>& state) {
  bool taken = true;
  for (std::size_t i = 0; with_leases_ && i < state->bind.pods.size(); ++i)
    for (const auto& [gpu, holder] : shares_of(state->bind.pods[i])) {
      const PodPlace& place = state->bind.pods[i];
      const std::string name = gpu_lease_name(place.node, gpu);
      const auto it = leases_.find(name);
      if (it == leases_.end()) {
        take_lease(place.node, gpu, holder);
        state->taken.push_back({i, leases_.at(name)});
        continue;
      }
      const bool is_in =
          std::any_of(it->second.holders.begin(), it->second.holders.end(),
                      [&](const GpuHolder& known) { return known.pod_uid == holder.pod_uid; });
      if (!is_in && may_join(it->second, holder)) {
        it->second.holders.push_back(holder);
        changed(it->second);
        state->taken.push_back({i, it->second});
        continue;
      }
      taken = false;
      state->done.pods[i].failure = BindFailure::LeaseTaken;
      state->done.pods[i].gpu = gpu;
      state->done.pods[i].holder = it->second.holder;
    }
  Scheduler& scheduler = schedulers_[state->scheduler];
  if (taken) {
    state->left = state->bind.pods.size();
    for (std::size_t i = 0; i < state->bind.pods.size(); ++i)
      scheduler.writes.push_back([this, state, i] { bind_one(state, i); });
    return;
  }
  scheduler.binds.erase(state->bind.id);
  for (const auto& [pod, lease] : state->taken) give_back(lease, state->bind.pods[pod]);
  for (PodBound& pod : state->done.pods)
    if (pod.failure == BindFailure::None) pod.failure = BindFailure::Sibling;
  scheduler.news.push_back([done = state->done](Desk& desk) { desk.done(done); });
}

void World::bind_one(const std::shared_ptr<BindState>& state, std::size_t index) {
  const PodPlace& place = state->bind.pods[index];
  PodBound& result = state->done.pods[index];
  const auto it = pods_.find(place.pod.uid);
  if (it == pods_.end()) {
    result.failure = BindFailure::PodGone;
  } else if (!it->second.node_name.empty()) {
    result.failure = BindFailure::Bound;
  } else if (it->second.meta.resource_version != place.resource_version) {
    result.failure = BindFailure::PodChanged;
  } else if (!nodes_.contains(place.node)) {
    result.failure = BindFailure::NodeGone;
  } else {
    it->second.node_name = place.node;
    set_label(it->second.meta.annotations, kAllocatedAnnotation,
              allocated_text(place.node, place.gpus));
    set_label(it->second.meta.annotations, kVisibleDevicesAnnotation, place.devices.on_node);
    changed(it->second);
  }
  if (result.failure != BindFailure::None)
    for (const auto& [pod, lease] : state->taken)
      if (pod == index) give_back(lease, place);
  if (--state->left > 0) return;
  schedulers_[state->scheduler].binds.erase(state->bind.id);
  schedulers_[state->scheduler].news.push_back(
      [done = state->done](Desk& desk) { desk.done(done); });
}

void World::delete_lease(const std::string& name) {
  leases_.erase(name);
  tell_all([name](Desk& desk) { desk.remove_lease(name); });
}

// Only the very lease that was made: whoever broke it may have made one of the same name.
void World::give_back(const Lease& lease, const PodPlace& place) {
  if (!shares_of(place).at(lease.gpu).is_alone())
    return drop_lease(lease.node, lease.gpu, place.pod.uid);
  const auto it = leases_.find(lease.meta.name);
  if (it != leases_.end() && it->second.meta.uid == lease.meta.uid) delete_lease(lease.meta.name);
}

void World::drop_lease(const std::string& node, int gpu, const std::string& uid) {
  const std::string name = gpu_lease_name(node, gpu);
  const auto it = leases_.find(name);
  if (it == leases_.end()) {
    tell_all([name](Desk& desk) { desk.remove_lease(name); });
  } else {
    std::vector<GpuHolder>& holders = it->second.holders;
    if (std::erase_if(holders, [&](const GpuHolder& holder) { return holder.pod_uid == uid; }) == 0)
      return;
    if (holders.empty()) return delete_lease(name);
    it->second.holder = holders.front().pod_uid;
    changed(it->second);
  }
}

void World::release(const Release& order) {
  if (const auto it = pods_.find(order.holder.uid);
      order.confirm && it != pods_.end() && !it->second.ended()) {
    if (it->second.node_name.empty() || has(order.holder.uid, order.node, order.gpu)) return;
  }
  if (order.lease_uid.empty()) return drop_lease(order.node, order.gpu, order.holder.uid);
  // One write that does not look who else is in it.
  const std::string name = gpu_lease_name(order.node, order.gpu);
  const auto it = leases_.find(name);
  if (it != leases_.end() && it->second.meta.uid == order.lease_uid) delete_lease(name);
}

// ---------------------------------------------------------------- looking

std::vector<int> World::devices(const std::string& uid) const {
  const std::string* text = pods_.at(uid).meta.annotation(kAllocatedAnnotation);
  return text == nullptr ? std::vector<int>{} : parse_allocated(*text)->gpus;
}

bool World::has(const std::string& uid, const std::string& node, int gpu) const {
  const auto it = pods_.find(uid);
  if (it == pods_.end() || it->second.ended() || it->second.node_name != node) return false;
  const std::vector<int> gpus = devices(uid);
  return std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
}

std::vector<std::string> World::without_lease() const {
  std::vector<std::string> uids;
  for (const auto& [uid, pod] : pods_) {
    if (!with_leases_ || pod.node_name.empty() || pod.ended()) continue;
    if (pod.scheduler_name != "gpu-scheduler") continue;
    for (const int gpu : devices(uid)) {
      const auto it = leases_.find(gpu_lease_name(pod.node_name, gpu));
      if (it == leases_.end() ||
          std::none_of(it->second.holders.begin(), it->second.holders.end(),
                       [&](const GpuHolder& holder) { return holder.pod_uid == uid; }))
        uids.push_back(uid);
    }
  }
  return uids;
}

void World::check() const {
  std::map<std::pair<std::string, int>, std::vector<std::string>> users;
  for (const auto& [uid, pod] : pods_) {
    if (pod.node_name.empty() || pod.ended()) continue;
    for (const int gpu : devices(uid)) users[{pod.node_name, gpu}].push_back(uid);
  }
  for (const auto& [gpu, uids] : users)
    EXPECT_TRUE(may_be_together(uids)) << "GPU " << gpu.second << " of " << gpu.first
                                       << " belongs to " << uids.front() << " and " << uids.back();
}

// Those of one map, or parts that one GPU has room for.
bool World::may_be_together(const std::vector<std::string>& uids) const {
  if (uids.size() == 1) return true;
  const std::string* map = pods_.at(uids.front()).meta.annotation(kTestPinGroup);
  GpuPart taken;
  for (const std::string& uid : uids) {
    const Pod& pod = pods_.at(uid);
    if (map != nullptr) {
      const std::string* other = pod.meta.annotation(kTestPinGroup);
      if (other == nullptr || *other != *map) return false;
      continue;
    }
    const GpuRequest gpu = request_of(pod).gpu;
    if (gpu.sharing != Sharing::Shared) return false;
    const GpuPart part = gpu_part(gpu, kTestGpuMemory);
    taken.milli += part.milli;
    taken.memory_mib += part.memory_mib;
  }
  return taken.milli <= kWholeGpu && taken.memory_mib <= kTestGpuMemory;
}

std::vector<std::string> World::left_over() const {
  std::vector<std::string> names;
  for (const auto& [name, lease] : leases_)
    for (const GpuHolder& holder : lease.holders)
      if (!has(holder.pod_uid, lease.node, lease.gpu)) names.push_back(name);
  return names;
}

}  // namespace gs::kube
