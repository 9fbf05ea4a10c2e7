// What makes pods: Jobs, ReplicaSets, Deployments, StatefulSets, and where they are installed
// JobSets, Kubeflow's training jobs and RayClusters. And PodGroups, in the styles of
// scheduler-plugins, Volcano and KAI.
#pragma once

#include <span>

#include "base/result.hpp"
#include "model/job.hpp"
#include "wire/kube/pod.hpp"

namespace gs::kube {

// A kind whose objects make pods, or make what makes them.
struct WorkloadKind {
  const char *group, *version, *plural, *kind;
  bool built_in;  // every API server has it
};
std::span<const WorkloadKind> workload_kinds();
bool makes_pods(const OwnerReference& owner);

struct Workload {
  Meta meta;
  std::string kind;
  std::optional<int> pods;  // that run together: parallelism or replicas; nullopt: it does not say
  std::optional<Duration> deadline;  // activeDeadlineSeconds, from when it started
};

// `kind` counts where the object has none of its own, as items of lists do.
// Of kinds that are not known, annotations and owners are read, and spec.replicas or
// spec.parallelism where they are given.
Result<Workload> decode_workload(std::string_view text, std::string_view kind = {});

struct PodGroup {
  Meta meta;
  int min_member = 1;
  std::string queue;            // Volcano, KAI
  std::string priority_class;   // of pods that have none
  TopologyWish topology;        // KAI
  bool has_sub_groups = false;  // KAI: with a minimum of their own
};
Result<PodGroup> decode_pod_group(std::string_view text);

// The name of the PodGroup that the pod says it belongs to, in any style; nullptr: none.
const std::string* pod_group_name(const Meta& pod);

}  // namespace gs::kube
