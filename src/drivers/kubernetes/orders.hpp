// What the desk wants written to the API server. The binder and the teller carry it out and put
// what came of it back into the inbox.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "model/command.hpp"
#include "wire/kube/claim.hpp"
#include "wire/kube/device_names.hpp"
#include "wire/kube/tenant.hpp"

namespace gs::kube {

struct PodName {
  std::string ns, name, uid;
  bool operator==(const PodName&) const = default;
};

// What a claim gets that waits for its pod's node.
struct VolumeChoice {
  std::string claim, claim_uid;  // of the pod's namespace
  std::string volume;            // empty: one is made on the node
  std::string volume_version;    // as it was when it was chosen
};

// What a pod takes of a GPU that it shares.
struct GpuShare {
  int milli = 0;
  std::int64_t memory_mib = 0;      // 0: not limited
  std::int64_t gpu_memory_mib = 0;  // of the whole GPU; 0: not known
};

// A pod and the devices that it gets. Its lease names `pod` as holder.
struct PodPlace {
  PodName pod;
  // As it was when the place was chosen. The Binding is refused if the pod was changed since, which
  // is how another scheduler can break our leases without a race.
  std::string resource_version;
  Labels labels, annotations;  // as they were then: while they are the same, the place is right
  std::string node;
  std::vector<int> gpus;
  std::vector<MigPlace> mig;
  DeviceNames devices;                // as the pod's environment has them
  std::vector<GpuShare> shares;       // of each of `gpus`; empty: whole GPUs
  std::string share_group;            // whole GPUs are shared with pods of this; empty: with nobody
  int index = -1;                     // among its siblings; -1: none
  std::vector<VolumeChoice> volumes;  // before it is bound
  std::string adapters;               // of the network, near its devices; empty: none is known
};

// All leases of all these pods, then all their Bindings; or none of the leases.
struct Bind {
  std::uint64_t id = 0;  // comes back with the result
  std::vector<PodPlace> pods;
};

// A lease of a pod that has gone, or that was not bound after all. `confirm`: look at the pod
// itself first, because our picture of it may be older than the lease.
struct Release {
  std::string node;
  int gpu = 0;
  PodName holder;
  bool confirm = false;
  std::string lease_uid;  // of a lease that only this pod has held; empty: not known
};

// A lease whose pod is not bound and which somebody else holds, or held: the pod is changed first,
// so that a Binding under way is refused; then the lease goes.
struct Break {
  std::string node;
  int gpu = 0;
  PodName holder;
};

struct Evict {
  PodName pod;
  std::string reason;   // "Preempted"
  std::string message;  // for people
};

// Why a pod waits (its condition PodScheduled), and where it will go.
struct Tell {
  PodName pod;
  std::string reason;  // "Unschedulable", "SchedulingGated", ...
  std::string message;
  std::string nominated_node;
  bool operator==(const Tell&) const = default;
};

// The pod waits no more: what was told of that, and is not written yet, need not be.
struct Retract {
  std::string uid;
};

// Something that happened to a pod, for its list of events. If it is no warning, it may be lost.
struct Note {
  PodName pod;
  bool warning = false;
  std::string reason, message;
  bool again = false;  // was said before, and still holds: events go from the server after a while
};

struct TellClaim {
  std::string ns, name;
  ClaimStatus status;
};

struct TellTenant {
  std::string name, uid;
  TenantStatus status;
  bool is_news = false;  // more than figures: an event says it too
};

using Order = std::variant<Bind, Release, Break, Evict, Tell, Retract, Note, TellClaim, TellTenant>;

// --- what came of them ---

enum class BindFailure : std::uint8_t {
  None,
  Sibling,     // another pod of the unit could not get its leases
  LeaseTaken,  // by `holder`, on `gpu`
  PodChanged,  // since we looked: the next look decides
  PodGone,
  NodeGone,
  Bound,    // somebody bound it before us
  Refused,  // by the API server, for good: `message` says why
  Failed,   // the API server could not be reached or had no time
};

struct PodBound {
  PodName pod;
  BindFailure failure = BindFailure::None;
  int gpu = -1;        // LeaseTaken
  std::string holder;  // LeaseTaken: uid of the pod that has it
  std::string message;
};
struct BindDone {
  std::uint64_t id = 0;
  std::vector<PodBound> pods;
};

}  // namespace gs::kube
