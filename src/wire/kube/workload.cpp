#include "wire/kube/workload.hpp"

#include <algorithm>

namespace gs::kube {
namespace {

constexpr WorkloadKind kKinds[] = {{"batch", "v1", "jobs", "Job", true},
                                   {"apps", "v1", "replicasets", "ReplicaSet", true},
                                   {"apps", "v1", "deployments", "Deployment", true},
                                   {"apps", "v1", "statefulsets", "StatefulSet", true},
                                   {"jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", false},
                                   {"kubeflow.org", "v1", "pytorchjobs", "PyTorchJob", false},
                                   {"kubeflow.org", "v1", "tfjobs", "TFJob", false},
                                   {"kubeflow.org", "v1", "mpijobs", "MPIJob", false},
                                   {"ray.io", "v1", "rayclusters", "RayCluster", false}};
constexpr int kMaxPods = 1'000'000;

// What the spec says of pods, by the names that the known kinds use.
struct Counts {
  std::optional<int> replicas, parallelism, completions;
  std::int64_t inner = 0;  // pods of all parts together
  bool parts = false;
  bool changes = false;  // somebody else says how many they are
  std::optional<Duration> deadline;
};

void read(Cursor& in, std::optional<int>& out) {
  if (in.next() == 'n') return in.skip();
  in.read(out.emplace(0));
}

void read_counts(Cursor& in, Counts& counts);

int pods_of(const Counts& counts) {
  const int parallelism = counts.parallelism.value_or(1);
  return std::max(0, counts.completions ? std::min(parallelism, *counts.completions) : parallelism);
}

// JobSet: {"replicas": 2, "template": {"spec": <of a Job>}}.
void read_replicated_job(Cursor& in, Counts& all) {
  std::optional<int> replicas;
  Counts job;
  in.object([&](std::string_view field) {
    if (field == "replicas") read(in, replicas);
    if (field == "template")
      in.object([&](std::string_view inner) {
        if (inner == "spec") read_counts(in, job);
      });
  });
  all.inner += std::int64_t{std::clamp(replicas.value_or(1), 0, kMaxPods)} * pods_of(job);
}

// PyTorchJob and its like: {"Worker": {"replicas": 4, ...}, ...}.
void read_replica_specs(Cursor& in, Counts& all) {
  in.object([&](std::string_view) {
    std::optional<int> replicas;
    in.object([&](std::string_view field) {
      if (field == "replicas") read(in, replicas);
    });
    all.inner += std::clamp(replicas.value_or(1), 0, kMaxPods);
  });
}

// RayCluster: {"replicas": 2, "numOfHosts": 4, ...}.
void read_worker_group(Cursor& in, Counts& all) {
  std::optional<int> replicas, least, most, hosts;
  bool suspended = false;
  in.object([&](std::string_view field) {
    if (field == "replicas") read(in, replicas);
    if (field == "minReplicas") read(in, least);
    if (field == "maxReplicas") read(in, most);
    if (field == "numOfHosts") read(in, hosts);
    if (field == "suspend") in.read(suspended);
  });
  if (suspended) return;
  const int wanted =
      std::min(std::max(replicas.value_or(0), least.value_or(0)), most.value_or(kMaxPods));
  all.inner +=
      std::int64_t{std::clamp(wanted, 0, kMaxPods)} * std::clamp(hosts.value_or(1), 0, kMaxPods);
}

void read_counts(Cursor& in, Counts& counts) {
  in.object([&](std::string_view field) {
    if (field == "replicas") read(in, counts.replicas);
    if (field == "parallelism") read(in, counts.parallelism);
    if (field == "completions") read(in, counts.completions);
    if (field == "enableInTreeAutoscaling") in.read(counts.changes);
    if (field == "activeDeadlineSeconds") read_deadline(in, counts.deadline);
    if (field == "runPolicy")  // of Kubeflow's
      in.object([&](std::string_view inner) {
        if (inner == "activeDeadlineSeconds") read_deadline(in, counts.deadline);
      });
    const bool jobs = field == "replicatedJobs";
    const bool specs = field.ends_with("ReplicaSpecs");
    const bool head = field == "headGroupSpec", workers = field == "workerGroupSpecs";
    counts.parts |= jobs || specs || head || workers;
    if (jobs) in.array([&] { read_replicated_job(in, counts); });
    if (specs) read_replica_specs(in, counts);
    if (head) ++counts.inner;
    if (workers) in.array([&] { read_worker_group(in, counts); });
  });
}

std::optional<int> pods_together(const std::string& kind, const Counts& counts) {
  if (counts.changes) return std::nullopt;
  if (counts.parts) return static_cast<int>(std::min<std::int64_t>(counts.inner, kMaxPods));
  if (kind == "Job" || counts.parallelism) return pods_of(counts);
  if (counts.replicas) return std::max(0, *counts.replicas);
  const bool has_default = kind == "ReplicaSet" || kind == "Deployment" || kind == "StatefulSet";
  return has_default ? std::optional(1) : std::nullopt;
}

void read_group_spec(Cursor& in, PodGroup& group) {
  in.object([&](std::string_view field) {
    if (field == "minMember") in.read(group.min_member);
    if (field == "queue") in.read(group.queue);
    if (field == "priorityClassName") in.read(group.priority_class);
    if (field == "subGroups")
      in.array([&] {
        in.skip();
        group.has_sub_groups = true;
      });
    if (field == "topologyConstraint")
      in.object([&](std::string_view inner) {
        if (inner == "requiredTopologyLevel") in.read(group.topology.required_level);
        if (inner == "preferredTopologyLevel") in.read(group.topology.preferred_level);
      });
  });
}

}  // namespace

std::span<const WorkloadKind> workload_kinds() { return kKinds; }

bool makes_pods(const OwnerReference& owner) {
  return std::any_of(std::begin(kKinds), std::end(kKinds), [&](const WorkloadKind& known) {
    return owner.kind == known.kind &&
           owner.api_version == std::string(known.group) + "/" + known.version;
  });
}

Result<Workload> decode_workload(std::string_view text, std::string_view kind) {
  Workload workload;
  workload.kind = kind;
  Counts counts;
  Cursor in(text);
  in.object([&](std::string_view field) {
    if (field == "kind") in.read(workload.kind);
    if (field == "metadata") read(in, workload.meta);
    if (field == "spec") read_counts(in, counts);
  });
  if (const Status status = in.finish(); !status) return status.error();
  workload.pods = pods_together(workload.kind, counts);
  workload.deadline = counts.deadline;
  return workload;
}

Result<PodGroup> decode_pod_group(std::string_view text) {
  PodGroup group;
  Cursor in(text);
  in.object([&](std::string_view field) {
    if (field == "metadata") read(in, group.meta);
    if (field == "spec") read_group_spec(in, group);
  });
  if (const Status status = in.finish(); !status) return status.error();
  if (group.min_member < 0 || group.min_member > 100'000)
    return invalid("spec.minMember must be 0..100000, got " + std::to_string(group.min_member));
  return group;
}

const std::string* pod_group_name(const Meta& pod) {
  for (const char* label : {"scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io"})
    if (const std::string* name = pod.label(label)) return name;
  for (const char* annotation :
       {"scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name", "pod-group-name"})
    if (const std::string* name = pod.annotation(annotation)) return name;
  return nullptr;
}

}  // namespace gs::kube
