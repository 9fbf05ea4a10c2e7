#include "wire/kube/encode.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/hash.hpp"
#include "wire/clock_json.hpp"
#include "wire/kube/names.hpp"
#include "wire/kube/storage.hpp"

namespace gs::kube {
namespace {

constexpr std::size_t kMaxNote = 1024;  // of events.k8s.io
constexpr std::size_t kMaxMessage = 4096;
constexpr std::size_t kMaxName = 253;

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Cut at the end of a character.
std::string cut(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text + "...";
}

// With microseconds, as Lease and Event want it.
std::string micro_time(Instant time) {
  std::string text = time_text(time);
  text.insert(text.size() - 1, "000");
  return text;
}

std::string second_time(Instant time) {
  std::string text = time_text(time);
  return text.substr(0, text.size() - 5) + "Z";
}

Json ids_json(const std::vector<int>& ids) { return Json(ids); }

Json reference_json(const ObjectReference& about) {
  Json json = {{"apiVersion", about.api_version}, {"kind", about.kind}, {"name", about.name}};
  if (!about.ns.empty()) json["namespace"] = about.ns;
  if (!about.uid.empty()) json["uid"] = about.uid;
  if (!about.resource_version.empty()) json["resourceVersion"] = about.resource_version;
  return json;
}

Json allocation_json(const ClaimAllocation& one) {
  Json json = {{"pod", one.pod}, {"nodeName", one.node}, {"gpuIds", ids_json(one.gpus)}};
  if (!one.mig.empty()) json["migProfiles"] = one.mig;
  return json;
}

}  // namespace

std::string encode_binding(const Binding& binding) {
  Json annotations = Json::object();
  for (const auto& [name, value] : binding.annotations) annotations[name] = value;
  if (!binding.gpus.empty()) {
    annotations[kAllocatedAnnotation] = allocated_text(binding.node, binding.gpus);
    annotations[kVisibleDevicesAnnotation] = binding.devices.on_node;
    annotations[kContainerDevicesAnnotation] = binding.devices.in_container;
  }
  Json meta = {{"name", binding.pod}, {"namespace", binding.ns}};
  if (!binding.uid.empty()) meta["uid"] = binding.uid;
  if (!binding.resource_version.empty()) meta["resourceVersion"] = binding.resource_version;
  if (!annotations.empty()) meta["annotations"] = std::move(annotations);
  return text_of({{"apiVersion", "v1"},
                  {"kind", "Binding"},
                  {"metadata", std::move(meta)},
                  {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", binding.node}}}});
}

std::string event_name(const ObjectReference& about, std::string_view reason,
                       std::string_view note) {
  const std::string tail =
      fmt::format(".{:016x}", Hash{}.add(about.uid).add(reason).add(note).value());
  return about.name.substr(0, kMaxName - tail.size()) + tail;
}

std::string encode_event(const Event& event) {
  const std::string ns = event.about.ns.empty() ? "default" : event.about.ns;
  Json json = {{"apiVersion", "events.k8s.io/v1"},
               {"kind", "Event"},
               {"metadata", {{"name", event.name}, {"namespace", ns}}},
               {"eventTime", micro_time(event.at)},
               {"type", event.warning ? "Warning" : "Normal"},
               {"reason", cut(event.reason, 128)},
               {"action", cut(event.action, 128)},
               {"note", cut(event.note, kMaxNote)},
               {"regarding", reference_json(event.about)},
               {"reportingController", event.controller},
               {"reportingInstance", cut(event.instance, 128)}};
  if (event.count > 1)
    json["series"] = {{"count", event.count}, {"lastObservedTime", micro_time(event.at)}};
  return text_of(json);
}

std::string encode_unscheduled(const PodCondition& condition) {
  Json status = {
      {"conditions", Json::array({{{"type", "PodScheduled"},
                                   {"status", "False"},
                                   {"reason", condition.reason},
                                   {"message", cut(condition.message, kMaxMessage)},
                                   {"lastProbeTime", nullptr},
                                   {"lastTransitionTime", second_time(condition.since)}}})}};
  if (condition.nominated_node) {
    const std::string& node = *condition.nominated_node;
    status["nominatedNodeName"] = node.empty() ? Json(nullptr) : Json(node);
  }
  return text_of({{"status", std::move(status)}});
}

std::string encode_eviction(const std::string& ns, const std::string& pod, const std::string& uid,
                            std::optional<std::int64_t> grace_s) {
  Json options = Json::object();
  if (!uid.empty()) options["preconditions"] = {{"uid", uid}};
  if (grace_s) options["gracePeriodSeconds"] = *grace_s;
  return text_of({{"apiVersion", "policy/v1"},
                  {"kind", "Eviction"},
                  {"metadata", {{"name", pod}, {"namespace", ns}}},
                  {"deleteOptions", std::move(options)}});
}

std::string encode_selected_node(const std::string& node) {
  return text_of({{"metadata", {{"annotations", {{kSelectedNodeAnnotation, node}}}}}});
}

std::string encode_delete(const std::string& uid, const std::string& resource_version) {
  Json conditions = Json::object();
  if (!uid.empty()) conditions["uid"] = uid;
  if (!resource_version.empty()) conditions["resourceVersion"] = resource_version;
  return text_of(
      {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", std::move(conditions)}});
}

ClaimStatus claim_status(ClaimPhase phase, std::vector<ClaimAllocation> allocations,
                         std::string message) {
  ClaimStatus status;
  status.phase = phase;
  status.message = std::move(message);
  for (const ClaimAllocation& one : allocations) {
    if (!status.allocated.empty()) status.allocated += ' ';
    status.allocated += allocated_text(one.node, one.gpus);
  }
  if (!allocations.empty()) {
    status.node = allocations.front().node;
    status.gpus = allocations.front().gpus;
  }
  status.allocations = std::move(allocations);
  return status;
}

std::string encode_claim_status(const std::string& ns, const std::string& name,
                                const ClaimStatus& status) {
  Json said = Json::object();
  const auto say = [&](const char* field, const std::string& text) {
    if (!text.empty()) said[field] = text;
  };
  say("phase", phase_word(status.phase));
  say("nodeName", status.node);
  if (!status.gpus.empty()) said["gpuIds"] = ids_json(status.gpus);
  say("allocated", status.allocated);
  say("message", cut(status.message, kMaxMessage));
  for (const ClaimAllocation& one : status.allocations)
    said["allocations"].push_back(allocation_json(one));
  return text_of({{"apiVersion", kGpuApi},
                  {"kind", "GpuClaim"},
                  {"metadata", {{"name", name}, {"namespace", ns}}},
                  {"status", std::move(said)}});
}

std::string encode_tenant_status(const std::string& name, const TenantStatus& status) {
  const std::int64_t used = status.used_gpu_milli;
  return text_of(
      {{"apiVersion", kGpuApi},
       {"kind", "GpuTenant"},
       {"metadata", {{"name", name}}},
       {"status",
        {{"accepted", status.accepted},
         {"message", cut(status.message, kMaxMessage)},
         {"usedGPUs", used % 1000 == 0 ? std::to_string(used / 1000) : std::to_string(used) + "m"},
         {"waitingJobs", status.waiting_jobs}}}});
}

std::string encode_config_status(const std::string& kind, const std::string& name,
                                 const ConfigStatus& status) {
  return text_of({{"apiVersion", kTopologyApi},
                  {"kind", kind},
                  {"metadata", {{"name", name}}},
                  {"status",
                   {{"accepted", status.accepted},
                    {"inForce", status.in_force},
                    {"message", cut(status.message, kMaxMessage)}}}});
}

std::string encode_gpu_lease(const GpuLease& lease) {
  Json annotations = {{kLeaseNodeAnnotation, lease.node},
                      {kLeaseGpuAnnotation, std::to_string(lease.gpu)}};
  if (!lease.pod.empty()) annotations[kLeasePodAnnotation] = lease.pod;
  if (!lease.scheduler.empty()) annotations[kSchedulerAnnotation] = lease.scheduler;
  const GpuHolder whole{
      lease.holders.empty() ? "" : lease.holders.front().pod_uid, 1000, 0, {}, {}, {}};
  if (lease.holders.size() != 1 || lease.holders.front() != whole) {
    Json holders = Json::array();
    for (const GpuHolder& holder : lease.holders) {
      Json one = {{"uid", holder.pod_uid}, {"milli", holder.milli}};
      if (holder.memory_mib > 0) one["memoryMiB"] = holder.memory_mib;
      if (!holder.mig.empty()) one["mig"] = holder.mig;
      if (!holder.group.empty()) one["group"] = holder.group;
      if (!holder.scheduler.empty()) one["by"] = holder.scheduler;
      if (holder.gpu_memory_mib > 0) one["gpuMemoryMiB"] = holder.gpu_memory_mib;
      holders.push_back(std::move(one));
    }
    annotations[kHoldersAnnotation] = text_of(holders);
  }
  Json meta = {{"name", gpu_lease_name(lease.node, lease.gpu)},
               {"namespace", lease.ns},
               {"labels", {{kManagedLabel, "true"}}},
               {"annotations", std::move(annotations)}};
  if (!lease.resource_version.empty()) meta["resourceVersion"] = lease.resource_version;
  return text_of(
      {{"apiVersion", "coordination.k8s.io/v1"},
       {"kind", "Lease"},
       {"metadata", std::move(meta)},
       {"spec", {{"holderIdentity", whole.pod_uid}, {"acquireTime", micro_time(lease.acquired)}}}});
}

std::string encode_leader_lease(const LeaderLease& lease) {
  Json meta = {{"name", lease.name}, {"namespace", lease.ns}};
  if (!lease.resource_version.empty()) meta["resourceVersion"] = lease.resource_version;
  return text_of({{"apiVersion", "coordination.k8s.io/v1"},
                  {"kind", "Lease"},
                  {"metadata", std::move(meta)},
                  {"spec",
                   {{"holderIdentity", lease.holder},
                    {"leaseDurationSeconds", lease.duration_s},
                    {"acquireTime", micro_time(lease.acquired)},
                    {"renewTime", micro_time(lease.renewed)},
                    {"leaseTransitions", lease.transitions}}}});
}

}  // namespace gs::kube
