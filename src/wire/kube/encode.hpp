// What is sent to the API server. Each function returns the body of one request; the comment says
// which request. Texts that are no UTF-8 are mended, so that every body is valid JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wire/kube/claim.hpp"
#include "wire/kube/device_names.hpp"
#include "wire/kube/lease.hpp"
#include "wire/kube/node_status.hpp"
#include "wire/kube/tenant.hpp"

namespace gs::kube {

inline constexpr const char* kJsonType = "application/json";
inline constexpr const char* kMergePatchType = "application/merge-patch+json";
inline constexpr const char* kStrategicPatchType = "application/strategic-merge-patch+json";
inline constexpr const char* kApplyType = "application/apply-patch+yaml";

struct Binding {
  std::string pod, ns, uid;  // uid: of the pod that was decided about; another one is not bound
  std::string node;
  std::vector<int> gpus;  // empty: no GPU annotations
  DeviceNames devices;
  Labels annotations;  // further ones
  // As the pod was when that was decided: refused if it was changed since. Empty: whatever it is.
  std::string resource_version = {};
};
// POST .../pods/{name}/binding. Its annotations are copied onto the pod in the same write.
std::string encode_binding(const Binding& binding);

struct ObjectReference {
  std::string api_version, kind, ns, name, uid, resource_version;
};
struct Event {
  ObjectReference about;
  std::string name;  // of the event, unique
  std::string reason, action, note;
  bool warning = false;
  Instant at;
  std::string controller = "gpu-scheduler";
  std::string instance;  // which of several
  int count = 1;         // more than one: a series
};
// POST /apis/events.k8s.io/v1/namespaces/{ns}/events; for a series PUT or PATCH of the same.
std::string encode_event(const Event& event);
// The same event about the same object has the same name, so a repetition finds its series.
std::string event_name(const ObjectReference& about, std::string_view reason,
                       std::string_view note);

struct PodCondition {
  std::string reason, message;
  Instant since;
  std::optional<std::string> nominated_node;  // "": takes the nomination back
};
// PATCH .../pods/{name}/status with kStrategicPatchType: PodScheduled is False, and why.
std::string encode_unscheduled(const PodCondition& condition);

// POST .../pods/{name}/eviction
std::string encode_eviction(const std::string& ns, const std::string& pod, const std::string& uid,
                            std::optional<std::int64_t> grace_s = std::nullopt);

// PATCH .../gpuclaims/{name}/status with kApplyType: what it does not say any more, goes.
std::string encode_claim_status(const std::string& ns, const std::string& name,
                                const ClaimStatus& status);
// PATCH .../gputenants/{name}/status with kApplyType
std::string encode_tenant_status(const std::string& name, const TenantStatus& status);

struct ConfigStatus {
  bool accepted = false;
  bool in_force = false;
  std::string message;
};
// PATCH .../schedulerconfigs/{name}/status (topologyschedulerconfigs) with kApplyType
std::string encode_config_status(const std::string& kind, const std::string& name,
                                 const ConfigStatus& status);
// What a claim's status says of these allocations: node, ids and text follow from them.
ClaimStatus claim_status(ClaimPhase phase, std::vector<ClaimAllocation> allocations,
                         std::string message);

// PATCH .../gpunodestatuses/{name} and .../status with kApplyType. The first takes name, node and
// owners of it, the second the status.
std::string encode_node_status(const GpuNodeStatus& status);

// PATCH .../persistentvolumeclaims/{name} with kMergePatchType
std::string encode_selected_node(const std::string& node);

// DELETE, only if it is still this one
std::string encode_delete(const std::string& uid, const std::string& resource_version);

struct GpuLease {
  std::string ns, node;
  int gpu = 0;
  std::string pod;                 // namespace/name of the first holder, for people
  std::vector<GpuHolder> holders;  // at least one
  Instant acquired;
  std::string resource_version;  // of an update: refused if somebody else was quicker
  std::string scheduler = {};    // who made it
};
// POST or PUT /apis/coordination.k8s.io/v1/namespaces/{ns}/leases
std::string encode_gpu_lease(const GpuLease& lease);

struct LeaderLease {
  std::string ns, name, holder;
  std::int64_t duration_s = 8;
  Instant acquired, renewed;
  int transitions = 0;
  std::string resource_version;
};
std::string encode_leader_lease(const LeaderLease& lease);

}  // namespace gs::kube
