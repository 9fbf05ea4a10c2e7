// The figures that the topology-aware scheduler promises: topology_scheduler_* and topology_*.
//
// What happens is counted as it happens, by the scheduler's thread; how full the domains are is
// read from the engine's books when somebody asks.
#pragma once

#include <string>
#include <unordered_map>

#include "base/time.hpp"
#include "cluster/cluster.hpp"
#include "drivers/kubernetes/orders.hpp"
#include "net/metrics.hpp"
#include "wire/kube/pod.hpp"

namespace gs::kube {

class TopologyMetrics {
 public:
  TopologyMetrics();

  void cycle_took(double seconds) { cycles_.observe(seconds); }
  void waits(const Pod& pod, Instant now);  // a pod of ours without a node
  void gone(const std::string& uid) { waiting_.erase(uid); }
  // It has to leave because of its node or GPU; its replacement, when bound, ends the recovery.
  void evicted(const Pod& pod, const std::string& reason, Instant now);
  void ended(const PodBound& result, const Pod* pod, Instant now);

  // All families, in the namespace "topology".
  void write(MetricsText& out, const Cluster& cluster) const;

 private:
  struct Recovery {
    Instant since;
    int missing = 0;  // pods
  };

  Metrics metrics_;
  Histogram& latency_;
  Histogram& cycles_;
  Histogram& recovery_;
  Family<Counter>& decisions_;
  std::unordered_map<std::string, Instant> waiting_;      // by uid
  std::unordered_map<std::string, Recovery> recoveries_;  // by what makes the pods anew
};

}  // namespace gs::kube
