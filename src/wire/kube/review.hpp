// The webhook's /validate: claims, maps and annotations with wrong content are refused when they
// are created or made wrong, with the reason that the scheduler would give later. What is there
// already can be deleted, and changed elsewhere, however wrong it is.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "wire/kube/admission.hpp"
#include "wire/kube/task_request.hpp"

namespace gs::kube {

struct ReviewContext {
  std::vector<std::string> scheduler_names = {"gpu-scheduler", "topology-aware-scheduler"};
  const GpuClaim* claim = nullptr;  // that the pod names, where it is there already
  Owners owners;                    // of the pod, where they are known
  std::vector<std::string> known_domains;
};

// The claim that a pod of ours, or the pods of a workload, would name; empty: none.
std::string claim_of(const AdmissionRequest& request,
                     const std::vector<std::string>& scheduler_names);

// Pods (on CREATE), Jobs, Deployments, ReplicaSets and StatefulSets of ours, GpuClaims, GpuTenants
// and SchedulerConfigs; everything else is allowed. What depends on an owner that is not known here
// (a total of all its pods, its gang) is left to the owner's own review and to the scheduler; a
// total of no pods is as good as any.
// An UPDATE of what is being deleted is allowed; so is, with a warning, one whose refusal the old
// object would have got word for word.
AdmissionResponse validate(const AdmissionRequest& request, const ReviewContext& context);

}  // namespace gs::kube
