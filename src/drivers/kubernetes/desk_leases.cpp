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

std::string blocker_of(const Lease& lease) { return "lease:" + lease.meta.name; }

}  // namespace

void Desk::put(const Lease& lease) {
  if (lease.gpu < 0) return;
  LeaseRecord& record = leases_[lease.meta.name];
  record.lease = lease;
  record.seen = now_;
  record.ordered = {};
  if (!synced_) return;
  judge(record);
  settle();
}

void Desk::remove_lease(const std::string& name) {
  const auto it = leases_.find(name);
  if (it == leases_.end()) return;
  unblock(blocker_of(it->second.lease));
  wrong_leases_.erase(name);
  leases_.erase(it);
  settle();
}

// Whether a pod of ours stands, or is being put, where the lease says.
bool Desk::holds(const std::string& uid, const Lease& lease) const {
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
  return (slot.stage == Stage::Binding || slot.stage == Stage::Bound) && slot.place &&
         slot.place->node == lease.node &&
         std::find(slot.place->gpus.begin(), slot.place->gpus.end(), lease.gpu) !=
             slot.place->gpus.end();
}

void Desk::judge(LeaseRecord& record) {
  const Lease& lease = record.lease;
  const std::string key = blocker_of(lease);
  bool blocks = false, ours = false;
  for (const GpuHolder& holder : lease.holders) {
    if (holds(holder.pod_uid, lease)) {
      ours = true;
      continue;
    }
    blocks = true;
  }
  if (blocks && !ours)
    block(key, lease.node, {lease.gpu});
  else
    unblock(key);
  record.wrong = blocks;
  if (blocks)
    wrong_leases_.insert(lease.meta.name);
  else
    wrong_leases_.erase(lease.meta.name);
}

// Somebody was faster: until the lease itself is seen, this is all that we know of it.
void Desk::lease_taken(const std::string& node, int gpu, const std::string& holder) {
  const std::string name = gpu_lease_name(node, gpu);
  LeaseRecord& record = leases_[name];
  record.lease.meta.name = name;
  record.lease.node = node;
  record.lease.gpu = gpu;
  record.lease.holders = {GpuHolder{holder, kWholeGpu, 0, {}, {}, {}}};
  record.seen = now_;
  judge(record);
}

void Desk::check_leases() {
  for (const std::string& name :
       std::vector<std::string>(wrong_leases_.begin(), wrong_leases_.end())) {
    LeaseRecord& record = leases_.at(name);
    const bool under_way = record.ordered.ms > 0 && now_ < record.ordered + options_.lease_patience;
    if (under_way) continue;
    judge(record);
    if (!record.wrong) continue;
    for (const GpuHolder& holder : record.lease.holders) {
      if (holds(holder.pod_uid, record.lease)) continue;
      order_lease_gone(record, holder.pod_uid);
    }
  }
}

void Desk::order_lease_gone(LeaseRecord& record, const std::string& uid) {
  const Lease& lease = record.lease;
  const auto pod = pods_.find(uid);
  if (pod == pods_.end() || pod->second.gone || pod->second.pod.ended() ||
      !pod->second.pod.node_name.empty()) {
    PodName holder{{}, {}, uid};
    if (const std::string* key = lease.meta.annotation(kLeasePodAnnotation)) {
      const std::size_t slash = key->find('/');
      holder.ns = key->substr(0, slash);
      if (slash != std::string::npos) holder.name = key->substr(slash + 1);
    }
    orders_.emplace_back(Release{lease.node, lease.gpu, std::move(holder), true, {}});
    record.ordered = now_;
    return;
  }
  // Nobody else works beside us, or the one who did has had time enough.
  const bool patient = options_.alone || now_ >= record.seen + options_.lease_patience;
  if (!patient) return;
  orders_.emplace_back(Break{lease.node, lease.gpu, name_of(pod->second.pod)});
  record.ordered = now_;
}

void Desk::release_leases(const PodRecord& record, const TaskPlace& place) {
  if (!options_.leases) return;
  std::vector<int> gpus = place.gpus;
  for (const MigPlace& instance : place.mig) gpus.push_back(instance.gpu);
  std::sort(gpus.begin(), gpus.end());
  gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
  for (const int gpu : gpus) {
    Release order{place.node, gpu, name_of(record.pod), false, {}};
    // A lease that others may share is looked at first: somebody may have joined it just now.
    if (const auto it = leases_.find(gpu_lease_name(place.node, gpu)); it != leases_.end())
      if (const Lease& lease = it->second.lease; lease.holders.size() == 1 &&
                                                 lease.holders.front().is_alone() &&
                                                 lease.holder == record.pod.meta.uid)
        order.lease_uid = lease.meta.uid;
    orders_.emplace_back(std::move(order));
  }
}

}  // namespace gs::kube
