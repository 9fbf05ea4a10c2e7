// What others have: their CPU and memory are taken off what nodes offer, and for each of their
// devices, or instances of one, there is a *blocker*, a job of the engine that nobody may evict.
#include <algorithm>
#include <set>

#include "base/check.hpp"
#include "base/gpu_mask.hpp"
#include "drivers/kubernetes/desk.hpp"
#include "wire/kube/claim.hpp"
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

// As we wrote on it, for the node that it is on.
std::vector<int> allocated_to(const Pod& pod) {
  const std::string* text = pod.meta.annotation(kAllocatedAnnotation);
  if (text == nullptr) return {};
  const Result<Allocated> allocated = parse_allocated(*text);
  return allocated && allocated->node == pod.node_name ? allocated->gpus : std::vector<int>{};
}

}  // namespace

void Desk::charge(PodRecord& record) {
  set_resized(record, {});
  const Result<PodResources> takes = pod_resources(record.pod);
  record.charged = takes ? takes->resources : Resources{};
  add(nodes_.at(record.pod.node_name).used_by_others, *record.charged, +1);
  touch_node(record.pod.node_name);
  block("pod:" + record.pod.meta.uid, record.pod.node_name, holds_of(record));
}

void Desk::discharge(PodRecord& record) {
  add(nodes_.at(record.pod.node_name).used_by_others, *record.charged, -1);
  record.charged.reset();
  touch_node(record.pod.node_name);
  unblock("pod:" + record.pod.meta.uid);
}

// It was resized where it is: its devices are as they were.
void Desk::charge_anew(PodRecord& record) {
  const Result<PodResources> takes = pod_resources(record.pod);
  if (!takes || takes->resources == *record.charged) return;
  Resources& used = nodes_.at(record.pod.node_name).used_by_others;
  add(used, *record.charged, -1);
  add(used, takes->resources, +1);
  record.charged = takes->resources;
  touch_node(record.pod.node_name);
}

// A job of the engine keeps the request that it began with. What its pod takes more, or less, since
// it was resized where it is, goes as others'. Only CPU and memory can be resized.
void Desk::follow_resize(PodRecord& record) {
  Resources beyond;
  const Slot* slot = slot_of(record);
  const bool held = slot != nullptr && slot->stage == Stage::Bound && slot->place &&
                    slot->place->node == record.pod.node_name;
  if (const Result<PodResources> takes = pod_resources(record.pod); held && takes) {
    const Unit& unit = units_.at(record.unit);
    const auto group = static_cast<std::size_t>(slot->task.group);
    const Resources& engine_has = unit.groups[group]->resources;
    beyond.cpu_milli = takes->resources.cpu_milli - engine_has.cpu_milli;
    beyond.memory_bytes = takes->resources.memory_bytes - engine_has.memory_bytes;
  }
  set_resized(record, beyond);
}

void Desk::set_resized(PodRecord& record, const Resources& now) {
  if (record.resized == now) return;
  Resources& used = nodes_.at(record.pod.node_name).used_by_others;
  add(used, record.resized, -1);
  add(used, now, +1);
  record.resized = now;
  touch_node(record.pod.node_name);
}

// Of other schedulers' pods the devices were guessed until the node's agent saw them.
void Desk::look_at_users(const NodeRecord& node) {
  for (const auto& [uid, seen] : node.in_use)
    if (const auto it = pods_.find(uid); it != pods_.end() && it->second.charged)
      block("pod:" + uid, it->second.pod.node_name, holds_of(it->second));
}

// The devices of a bound pod: as we wrote on it, as the node's agent sees it use them, or else, as
// many as it asked for from the end, where we give out last.
std::vector<int> Desk::devices_of(const PodRecord& record) const {
  if (std::vector<int> given = allocated_to(record.pod); !given.empty()) return given;
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
    if ((state.whole & gpu_bit(gpu)) != 0 &&
        state.gpus[static_cast<std::size_t>(gpu)].milli.used == 0)
      gpus.push_back(gpu);
  std::sort(gpus.begin(), gpus.end());
  return gpus;
}

// Only those that agree with the allocation: others came along when the pod was copied.
std::vector<MigPlace> Desk::instances_of(const PodRecord& record) const {
  const std::string* text = record.pod.meta.annotation(kInstancesAnnotation);
  Result<std::vector<MigPlace>> places = parse_instances(text == nullptr ? "" : *text);
  if (!places || places->empty()) return {};
  std::set<int> cut;
  for (const MigPlace& place : *places) cut.insert(place.gpu);
  const std::vector<int> given = allocated_to(record.pod);
  return std::set<int>(given.begin(), given.end()) == cut ? std::move(*places)
                                                          : std::vector<MigPlace>{};
}

bool Desk::is_cut(const std::string& node, int gpu) const {
  const NodeId id = engine_->cluster().find_node(node);
  return id.valid() && engine_->cluster().node(id).mig_gpu(gpu) != nullptr;
}

std::vector<Desk::Hold> Desk::holds_in(const TaskPlace& place) {
  std::vector<Hold> holds;
  for (const int gpu : place.gpus) holds.push_back({gpu, {}, -1});
  for (const MigPlace& instance : place.mig)
    holds.push_back({instance.gpu, instance.profile, instance.start});
  return holds;
}

// Which instance it is nobody tells, if we did not give it: one of the profile on the GPU that the
// agent sees the pod use, or else on any. A device plugin goes by their number, too.
std::vector<Desk::Hold> Desk::holds_of(const PodRecord& record) const {
  if (std::vector<MigPlace> given = instances_of(record); !given.empty())
    return holds_in({{}, {}, {}, std::move(given)});
  std::vector<Hold> holds;
  int cut = -1, cut_count = 0;
  for (const int gpu : devices_of(record)) {
    if (!is_cut(record.pod.node_name, gpu)) {
      holds.push_back({gpu, {}, -1});
      continue;
    }
    cut = gpu;
    ++cut_count;
  }
  if (const Result<PodResources> takes = pod_resources(record.pod))
    for (const MigAsk& ask : takes->mig)
      for (int i = 0; i < ask.count; ++i)
        holds.push_back({cut_count == 1 ? cut : -1, ask.profile, -1});
  return holds;
}

// From now on this key stands for these. Where one is still taken (a pod of ours is about to fail
// to bind there), its blocker waits for it.
void Desk::block(const std::string& key, const std::string& node, std::vector<Hold> holds) {
  std::sort(holds.begin(), holds.end());
  if (const auto it = blockers_.find(key); it != blockers_.end()) {
    const bool same = std::equal(it->second.begin(), it->second.end(), holds.begin(), holds.end(),
                                 [&](const Blocker& blocker, const Hold& hold) {
                                   return blocker.node == node && blocker.hold == hold;
                                 });
    if (!same) unblock(key);
  }
  if (holds.empty()) return;
  if (std::vector<Blocker>& blockers = blockers_[key]; blockers.empty())
    for (Hold& hold : holds) blockers.push_back({node, std::move(hold), {}});
  stand(key);
}

// Where it can stand: nobody has it. Somebody may have been promised it, who has to look elsewhere;
// and it may be unhealthy or hot, but not for ever.
std::optional<AdoptTask> Desk::room_for(const Blocker& blocker) const {
  const Cluster& cluster = engine_->cluster();
  const NodeId id = cluster.find_node(blocker.node);
  if (!id.valid()) return std::nullopt;
  const NodeState& node = cluster.node(id);
  const Hold& hold = blocker.hold;
  if (hold.gpu >= node.layout->count) return std::nullopt;
  AdoptTask there{{}, blocker.node, {}, {}, now_, false};
  if (hold.profile.empty()) {
    if ((node.whole & gpu_bit(hold.gpu)) == 0 ||
        node.gpus[static_cast<std::size_t>(hold.gpu)].milli.used != 0)
      return std::nullopt;
    there.gpus = {hold.gpu};
    return there;
  }
  for (auto gpu = node.mig.rbegin(); gpu != node.mig.rend(); ++gpu) {
    if (hold.gpu >= 0 && gpu->gpu != hold.gpu) continue;
    for (const MigSlotState& instance : gpu->instances) {
      if (instance.used || !is_of(instance.profile, hold)) continue;
      if (hold.start >= 0 && instance.start != hold.start) continue;
      there.mig = {{gpu->gpu, hold.profile, instance.start, false}};
      return there;
    }
  }
  return std::nullopt;
}

bool Desk::is_of(std::uint32_t profile, const Hold& hold) const {
  return engine_->cluster().shapes().resources().name(profile) == "mig:" + hold.profile;
}

bool Desk::is_in_the_way(const Allocation& place, const Hold& hold) const {
  if (hold.profile.empty()) return (place.gpus & gpu_bit(hold.gpu)) != 0;
  return std::any_of(place.mig.begin(), place.mig.end(), [&](const MigPick& pick) {
    return (hold.gpu < 0 || pick.gpu == hold.gpu) && is_of(pick.profile, hold) &&
           (hold.start < 0 || pick.start == hold.start);
  });
}

// A place that was found for a pod which is still to be made is nobody's yet.
void Desk::yield_to(const Blocker& blocker) {
  const Cluster& cluster = engine_->cluster();
  const NodeId node = cluster.find_node(blocker.node);
  if (!node.valid()) return;
  std::vector<TaskRef> there;
  for (const TaskId id : cluster.node(node).tasks)
    if (const Task& task = cluster.task(id); is_in_the_way(task.place, blocker.hold))
      there.push_back({cluster.job(task.job).id, task.group, task.rank});
  for (const TaskRef& task : there) {
    if (room_for(blocker)) return;
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
    if (!room_for(blocker)) yield_to(blocker);
    std::optional<AdoptTask> there = room_for(blocker);
    if (!there) {
      all = false;
      continue;
    }
    Job job;
    job.id = "others:" + key + "#" + std::to_string(++last_blocker_);
    job.name = key;
    job.tenant = kOthersTenant;
    Group group;
    group.name = "devices";
    group.request.gpu.count = static_cast<int>(there->gpus.size());
    if (!blocker.hold.profile.empty()) {
      group.request.gpu.sharing = Sharing::Mig;
      group.request.gpu.mig = {{blocker.hold.profile, 1}};
    }
    job.groups.push_back(std::move(group));
    const std::string id = job.id;
    const Status submitted = tell(SubmitJob{std::move(job)});
    CHECK_MSG(submitted.ok(), submitted.ok() ? "" : submitted.error().message);
    there->task = {id, 0, 0};
    if (tell(*there)) {
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
