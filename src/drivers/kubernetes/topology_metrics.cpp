#include "drivers/kubernetes/topology_metrics.hpp"

#include <algorithm>
#include <vector>

namespace gs::kube {
namespace {

std::vector<double> bounds() {
  return {0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800};
}

double seconds_between(Instant from, Instant to) {
  return static_cast<double>(std::max<std::int64_t>(0, to.ms - from.ms)) / 1000.0;
}

// What makes a pod anew: its controller, or whoever creates one of the same name.
std::string maker_of(const Pod& pod) {
  for (const OwnerReference& owner : pod.meta.owners)
    if (owner.controller) return owner.uid;
  return pod.meta.ns + "/" + pod.meta.name;
}

bool is_recovery(const std::string& reason) {
  return reason == "NodeLost" || reason == "NodeNotReady" ||
         reason == to_string(StopReason::Unhealthy) || reason == to_string(StopReason::GangBroken);
}

const char* result_of(BindFailure failure) {
  switch (failure) {
    case BindFailure::None:
      return "bound";
    case BindFailure::Sibling:
    case BindFailure::LeaseTaken:
      return "lease_taken";
    case BindFailure::PodChanged:
    case BindFailure::PodGone:
    case BindFailure::NodeGone:
    case BindFailure::Bound:
      return "overtaken";
    case BindFailure::Refused:
      return "refused";
    case BindFailure::Failed:
      return "failed";
  }
  return "failed";
}

struct GpuCounts {
  int usable = 0, free = 0;
  int free_beside_others = 0;  // on nodes that are partly taken

  void add(const GpuCounts& other) {
    usable += other.usable;
    free += other.free;
    free_beside_others += other.free_beside_others;
  }
  double taken_ratio() const { return usable > 0 ? 1.0 - static_cast<double>(free) / usable : 0.0; }
  double fragmented_ratio() const {
    return free > 0 ? static_cast<double>(free_beside_others) / free : 0.0;
  }
};

GpuCounts counts_of(const NodeState& node) {
  GpuCounts counts;
  if (node.gone || !node.schedulable()) return counts;
  counts.usable = gpu_count(node.usable());
  counts.free = gpu_count(node.free_gpus(View::Now));
  if (counts.free < counts.usable) counts.free_beside_others = counts.free;
  return counts;
}

// By domain; the root's are those of the whole cluster.
std::vector<GpuCounts> by_domain(const Cluster& cluster) {
  std::vector<GpuCounts> counts(cluster.domains().size());
  for (std::size_t i = 0; i < cluster.node_count(); ++i) {
    const NodeState& node = cluster.node(NodeId{i});
    const GpuCounts own = counts_of(node);
    for (DomainId at = node.domain; at.valid(); at = cluster.domains().at(at).parent)
      counts[at.index()].add(own);
  }
  return counts;
}

}  // namespace

TopologyMetrics::TopologyMetrics()
    : latency_(metrics_
                   .histograms("scheduler_latency_seconds",
                               "From when a pod was first seen to its binding.", {}, bounds())
                   .with({})),
      cycles_(metrics_
                  .histograms("scheduler_placement_duration_seconds",
                              "Time that a scheduling cycle took to decide.", {}, bounds())
                  .with({})),
      recovery_(metrics_
                    .histograms("scheduler_recovery_duration_seconds",
                                "From the eviction for a lost node or GPU to the binding of the "
                                "last replacement.",
                                {}, bounds())
                    .with({})),
      decisions_(metrics_.counters("placement_decisions_total",
                                   "Pods that were given a place, by what came of it.",
                                   {"result"})) {}

void TopologyMetrics::waits(const Pod& pod, Instant now) {
  waiting_.try_emplace(pod.meta.uid, now);
}

void TopologyMetrics::evicted(const Pod& pod, const std::string& reason, Instant now) {
  if (!is_recovery(reason)) return;
  Recovery& recovery = recoveries_.try_emplace(maker_of(pod), Recovery{now, 0}).first->second;
  ++recovery.missing;
}

void TopologyMetrics::ended(const PodBound& result, const Pod* pod, Instant now) {
  decisions_.with({result_of(result.failure)}).add();
  if (result.failure != BindFailure::None) return;
  if (const auto it = waiting_.find(result.pod.uid); it != waiting_.end()) {
    latency_.observe(seconds_between(it->second, now));
    waiting_.erase(it);
  }
  if (pod == nullptr) return;
  const auto it = recoveries_.find(maker_of(*pod));
  if (it == recoveries_.end() || --it->second.missing > 0) return;
  recovery_.observe(seconds_between(it->second.since, now));
  recoveries_.erase(it);
}

void TopologyMetrics::write(MetricsText& out, const Cluster& cluster) const {
  metrics_.write(out);
  const DomainTree& tree = cluster.domains();
  const std::vector<GpuCounts> counts = by_domain(cluster);
  const auto write_each = [&](auto ratio) {
    for (std::size_t i = 1; i < tree.size(); ++i) {
      const Domain& domain = tree.at(DomainId{i});
      if (!domain.listed) continue;
      const std::string path = tree.path(DomainId{i});
      out.sample(
          ratio(counts[i]),
          {{"level", tree.levels()[static_cast<std::size_t>(domain.level)]}, {"domain", path}});
    }
  };
  out.family("gpu_allocation_ratio", "gauge", "Share of the usable GPUs that are given out.");
  out.sample(counts[DomainTree::root().index()].taken_ratio());
  out.family("domain_utilization_ratio", "gauge", "The same, by domain.");
  write_each([](const GpuCounts& one) { return one.taken_ratio(); });
  out.family("scheduler_domain_fragmentation_ratio", "gauge",
             "Share of the free GPUs that lie on partly taken nodes, by domain.");
  write_each([](const GpuCounts& one) { return one.fragmented_ratio(); });
}

}  // namespace gs::kube
