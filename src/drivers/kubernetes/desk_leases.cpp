// Leases: whose GPU is whose, across schedulers and lives.
//
// A lease is right while its pod is bound to that node and alive. Any other is in the way: of a pod
// that has gone it is released; of a pod that is not bound, somebody may be about to bind it, so it
// keeps the engine off the GPU for a while and is broken then (Break makes that safe).
#include <algorithm>

#include "drivers/kubernetes/desk.hpp"
#include "wire/kube/names.hpp"

namespace gs::kube {
namespace {

std::string blocker_of(const std::string& lease) { return "lease:" + lease; }

std::vector<int> devices_in(const TaskPlace& place) {
  std::vector<int> gpus = place.gpus;
  for (const MigPlace& instance : place.mig) gpus.push_back(instance.gpu);
  std::sort(gpus.begin(), gpus.end());
  gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
  return gpus;
}

}  // namespace

void Desk::put(const Lease& lease) {
  if (lease.gpu < 0) return;
  LeaseRecord& record = leases_[lease.meta.name];
  const std::string* pod = lease.meta.annotation(kLeasePodAnnotation);
  record = {lease.meta.uid,  lease.node, lease.gpu,    lease.holders,
            pod ? *pod : "", now_,       record.wrong, {}};
  if (!synced_) return;
  judge(lease.meta.name, record);
  settle();
}

void Desk::remove_lease(const std::string& name) {
  const auto it = leases_.find(name);
  if (it == leases_.end()) return;
  unblock(blocker_of(name));
  wrong_leases_.erase(name);
  leases_.erase(it);
  settle();
}

// Whether a pod of ours stands, or is being put, where the lease says.
bool Desk::holds(const std::string& uid, const LeaseRecord& lease) const {
  const auto it = pods_.find(uid);
  if (it == pods_.end() || it->second.gone || it->second.pod.ended()) return false;
  const PodRecord& record = it->second;
  if (!record.pod.node_name.empty()) {
    if (record.pod.node_name != lease.node) return false;
    const std::vector<int> gpus = devices_of(record);
    return std::find(gpus.begin(), gpus.end(), lease.gpu) != gpus.end();
  }
  if (record.unit.empty()) return false;
  const Slot& slot = units_.at(record.unit).slots[record.slot];
  if (slot.stage != Stage::Binding && slot.stage != Stage::Bound) return false;
  if (!slot.place || slot.place->node != lease.node) return false;
  const std::vector<int> gpus = devices_in(*slot.place);
  return std::find(gpus.begin(), gpus.end(), lease.gpu) != gpus.end();
}

void Desk::judge(const std::string& name, LeaseRecord& lease) {
  bool blocks = false, ours = false;
  std::vector<Hold> taken;
  for (const GpuHolder& holder : lease.holders) {
    if (holds(holder.pod_uid, lease)) {
      ours = true;
      continue;
    }
    blocks = true;
    for (const std::string& profile : holder.mig) taken.push_back({lease.gpu, profile, -1});
  }
  if (blocks && !ours && taken.empty()) taken.push_back({lease.gpu, {}, -1});
  block(blocker_of(name), lease.node, std::move(taken));
  lease.wrong = blocks;
  if (blocks)
    wrong_leases_.insert(name);
  else
    wrong_leases_.erase(name);
}

// Their names differ in the id at the end only.
void Desk::judge_leases_of(const std::string& node) {
  std::string prefix = gpu_lease_name(node, 0);
  prefix.pop_back();
  for (auto it = leases_.lower_bound(prefix); it != leases_.end(); ++it) {
    if (!it->first.starts_with(prefix)) break;
    if (it->second.node == node) judge(it->first, it->second);
  }
}

// Somebody was faster: until the lease itself is seen, this is all that we know of it. Not that its
// holder is alone: it must not be removed unseen. False: its holder is right there, so nothing
// keeps the engine off what it takes for free.
bool Desk::lease_taken(const std::string& node, int gpu, const std::string& holder) {
  const std::string name = gpu_lease_name(node, gpu);
  LeaseRecord& lease = leases_[name];
  lease.node = node;
  lease.gpu = gpu;
  if (std::none_of(lease.holders.begin(), lease.holders.end(),
                   [&](const GpuHolder& known) { return known.pod_uid == holder; })) {
    lease.uid.clear();
    lease.holders = {GpuHolder{holder, kWholeGpu, 0, {}, {}, {}}};
  }
  lease.seen = now_;
  judge(name, lease);
  return blockers_.contains(blocker_of(name)) && !is_cut(node, gpu);
}

// A pod was not bound here. Leases that the binder took for it are on their way out and in nobody's
// way; but one that another scheduler, or another life of ours, once took for it was right only as
// long as the pod was about to come here.
void Desk::look_later_at_leases(const std::string& uid, const TaskPlace& place) {
  for (const int gpu : devices_in(place)) {
    const auto it = leases_.find(gpu_lease_name(place.node, gpu));
    if (it == leases_.end() || it->second.wrong) continue;
    LeaseRecord& lease = it->second;
    if (std::none_of(lease.holders.begin(), lease.holders.end(),
                     [&](const GpuHolder& holder) { return holder.pod_uid == uid; }))
      continue;
    lease.ordered = now_;
    wrong_leases_.insert(it->first);
  }
}

void Desk::check_leases() {
  for (const std::string& name :
       std::vector<std::string>(wrong_leases_.begin(), wrong_leases_.end())) {
    LeaseRecord& lease = leases_.at(name);
    const bool under_way = lease.ordered.ms > 0 && now_ < lease.ordered + options_.lease_patience;
    if (under_way) continue;
    judge(name, lease);
    if (!lease.wrong) continue;
    for (const GpuHolder& holder : lease.holders) {
      if (holds(holder.pod_uid, lease)) continue;
      order_lease_gone(lease, holder.pod_uid);
    }
  }
}

void Desk::order_lease_gone(LeaseRecord& lease, const std::string& uid) {
  const auto pod = pods_.find(uid);
  if (pod == pods_.end() || pod->second.gone || pod->second.pod.ended() ||
      !pod->second.pod.node_name.empty()) {
    PodName holder{{}, {}, uid};
    const std::size_t slash = lease.pod.find('/');
    holder.ns = lease.pod.substr(0, slash);
    if (slash != std::string::npos) holder.name = lease.pod.substr(slash + 1);
    orders_.emplace_back(Release{lease.node, lease.gpu, std::move(holder), true, {}});
    lease.ordered = now_;
    return;
  }
  // Nobody else works on our pods, or the one who did has had time enough.
  const bool patient =
      (options_.alone && pod->second.ours) || now_ >= lease.seen + options_.lease_patience;
  if (!patient) return;
  orders_.emplace_back(Break{lease.node, lease.gpu, name_of(pod->second.pod)});
  lease.ordered = now_;
}

void Desk::release_leases(const PodRecord& record, const TaskPlace& place) {
  if (!options_.leases) return;
  for (const int gpu : devices_in(place)) {
    Release order{place.node, gpu, name_of(record.pod), false, {}};
    // A lease that others may share is looked at first: somebody may have joined it just now.
    if (const auto it = leases_.find(gpu_lease_name(place.node, gpu)); it != leases_.end())
      if (const LeaseRecord& lease = it->second;
          lease.holders.size() == 1 && lease.holders.front().is_alone() &&
          lease.holders.front().pod_uid == record.pod.meta.uid)
        order.lease_uid = lease.uid;
    orders_.emplace_back(std::move(order));
  }
}

}  // namespace gs::kube
