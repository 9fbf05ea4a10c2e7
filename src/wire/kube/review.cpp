#include "wire/kube/review.hpp"

#include <algorithm>
#include <utility>

#include "wire/kube/gang.hpp"
#include "wire/kube/mutate.hpp"
#include "wire/kube/names.hpp"
#include "wire/kube/scheduler_config.hpp"
#include "wire/kube/tenant.hpp"

namespace gs::kube {
namespace {

bool is_workload(const std::string& kind) {
  return kind == "Job" || kind == "Deployment" || kind == "ReplicaSet" || kind == "StatefulSet";
}

// Nothing where there is no object, or none that can be read.
Meta meta_of(std::string_view object) {
  Meta meta;
  Cursor in(object);
  in.object([&](std::string_view field) {
    if (field == "metadata") read(in, meta);
  });
  return in.finish() ? meta : Meta{};
}

// spec.template of a workload, as a pod that has no name yet.
Result<Pod> template_of(std::string_view object) {
  Pod pod;
  Cursor in(object);
  in.object([&](std::string_view field) {
    if (field != "spec") return;
    in.object([&](std::string_view inner) {
      if (inner == "template") read(in, pod);
    });
  });
  if (const Status status = in.finish(); !status) return status.error();
  return pod;
}

Result<Pod> pod_of(const AdmissionRequest& request) {
  return request.kind == "Pod" ? decode_new_pod(request.object) : template_of(request.object);
}

// The map must have a line for the pod, if it is known which one the pod is.
Result<const MapEntry*> entry_of(const SchedulingMap& map, const Meta& pod) {
  const std::optional<int> index = pod_index(pod);
  if (!index) return static_cast<const MapEntry*>(nullptr);
  if (const MapEntry* entry = map.find(*index)) return entry;
  return invalid(std::string(kMapAnnotation) + " has no line for index " + std::to_string(*index) +
                 ", which this pod has");
}

Status check_gang(const Pod& pod, const ReviewContext& context) {
  const auto name = gang_name(pod.meta, context.claim, context.owners);
  if (!name) return name.error();
  const auto ask = gang_ask(name->value_or(""), nullptr, pod.meta, context.owners);
  return ask ? ok_status() : Status(ask.error());
}

Status check_claim_name(const Pod& pod) {
  const std::string* name = pod.meta.annotation(kClaimAnnotation);
  if (name != nullptr && name->empty())
    return invalid(std::string("annotation ") + kClaimAnnotation +
                   " must name a GpuClaim of the pod's namespace");
  return ok_status();
}

void erase_totals(Meta& meta) {
  std::erase_if(meta.annotations, [](const auto& one) {
    return one.first == std::string(kTopologyPrefix) + "gpu-count" ||
           (one.first == kGangAnnotation && one.second == "true");
  });
}

// What is said of all pods together, checked for itself and then left out: their number is not
// known here (no owner), or there are none.
Status leave_out_totals(Pod& pod, Workload* owner) {
  const Owners owners = owner == nullptr ? Owners{} : Owners{owner};
  if (const Result<TopologyAsk> ask = read_topology_ask(pod.meta, owners); !ask) return ask.error();
  erase_totals(pod.meta);
  if (owner != nullptr) erase_totals(owner->meta);
  return ok_status();
}

Status check_pod(Pod pod, const ReviewContext& context, std::vector<std::string>& warnings) {
  if (Status status = check_claim_name(pod); !status) return status;
  if (pod.meta.controller() != nullptr && context.owners.empty())
    if (Status status = leave_out_totals(pod, nullptr); !status) return status;
  SchedulingMap map;
  RequestContext asked{context.claim, context.owners, nullptr, context.known_domains};
  const Found text = find_annotation(pod.meta, context.owners, kMapAnnotation);
  if (text.value != nullptr) {
    Result<SchedulingMap> parsed = parse_scheduling_map(*text.value);
    if (!parsed) return parsed.error();
    map = std::move(*parsed);
    const Result<const MapEntry*> entry = entry_of(map, pod.meta);
    if (!entry) return entry.error();
    asked.pin = *entry;
  }
  const Result<TaskReading> reading = task_request(pod, asked);
  if (!reading) return reading.error();
  warnings.insert(warnings.end(), reading->warnings.begin(), reading->warnings.end());
  return check_gang(pod, context);
}

// Its replicas change while its Deployment, which has been reviewed, is rolled out; a Deployment
// that goes may leave it behind as it is.
bool is_of_deployment(const AdmissionRequest& request) {
  return request.kind == "ReplicaSet" && (meta_of(request.object).controller() != nullptr ||
                                          meta_of(request.old_object).controller() != nullptr);
}

Status check_workload(const AdmissionRequest& request, ReviewContext context,
                      std::vector<std::string>& warnings) {
  Result<Pod> pod = template_of(request.object);
  if (!pod) return pod.error();
  if (!is_ours(*pod, context.scheduler_names)) return ok_status();
  Result<Workload> workload = decode_workload(request.object, request.kind);
  if (!workload) return workload.error();
  if (is_of_deployment(request)) return ok_status();
  if (workload->pods == 0)
    if (Status status = leave_out_totals(*pod, &*workload); !status) return status;
  context.owners = {&*workload};
  return check_pod(std::move(*pod), context, warnings);
}

template <typename T>
Status status_of(const Result<T>& result) {
  return result ? ok_status() : Status(result.error());
}

Status check(const AdmissionRequest& request, const ReviewContext& context,
             std::vector<std::string>& warnings) {
  if (request.kind == "GpuClaim") return status_of(decode_claim(request.object));
  if (request.kind == "GpuTenant") return status_of(decode_tenant(request.object));
  if (request.kind == "SchedulerConfig" || request.kind == "TopologySchedulerConfig")
    return status_of(decode_scheduler_config(request.object));
  if (is_workload(request.kind)) return check_workload(request, context, warnings);
  if (request.kind != "Pod" || request.operation != "CREATE") return ok_status();
  const Result<Pod> pod = decode_new_pod(request.object);
  if (!pod) return pod.error();
  if (!is_ours(*pod, context.scheduler_names)) return ok_status();
  return check_pod(*pod, context, warnings);
}

// The old object, by the same rules. One that named another claim can't be judged: that claim is
// not here.
bool was_wrong_before(const AdmissionRequest& request, const ReviewContext& context,
                      const std::string& why) {
  if (request.operation != "UPDATE" || request.old_object.empty()) return false;
  AdmissionRequest before = request;
  before.object = request.old_object;
  const auto& names = context.scheduler_names;
  if (claim_of(before, names) != claim_of(request, names)) return false;
  std::vector<std::string> unheard;
  const Status status = check(before, context, unheard);
  return !status && status.error().message == why;
}

}  // namespace

std::string claim_of(const AdmissionRequest& request,
                     const std::vector<std::string>& scheduler_names) {
  if (request.object.empty() || (request.kind != "Pod" && !is_workload(request.kind))) return {};
  const Result<Pod> pod = pod_of(request);
  if (!pod || !is_ours(*pod, scheduler_names)) return {};
  const std::string* name = pod->meta.annotation(kClaimAnnotation);
  return name == nullptr ? std::string() : *name;
}

AdmissionResponse validate(const AdmissionRequest& request, const ReviewContext& context) {
  AdmissionResponse response;
  response.uid = request.uid;
  if (request.operation == "DELETE" || request.operation == "CONNECT") return response;
  if (request.object.empty()) return refused(request, 400, "request.object is missing");
  if (request.operation == "UPDATE" && meta_of(request.object).deleted) return response;
  const Status status = check(request, context, response.warnings);
  if (status) return response;
  const std::string& why = status.error().message;
  if (!was_wrong_before(request, context, why)) return refused(request, 422, why);
  response.warnings.push_back("was wrong before, so it is let through: " + why);
  return response;
}

}  // namespace gs::kube
