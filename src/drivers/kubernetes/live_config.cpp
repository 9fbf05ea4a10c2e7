#include "drivers/kubernetes/live_config.hpp"

namespace gs::kube {

bool LiveConfig::put(ConfigSource source, const Result<SchedulerConfig>& config) {
  if (!config) return false;
  known_[source] = *config;
  return known_.begin()->first == source;
}

bool LiveConfig::remove(ConfigSource source) {
  const bool counted = !known_.empty() && known_.begin()->first == source;
  known_.erase(source);
  return counted;
}

SchedulerConfig LiveConfig::in_force() const {
  if (known_.empty()) return base_;
  SchedulerConfig config = known_.begin()->second;
  config.leases = base_.leases;
  config.lease_namespace = base_.lease_namespace;
  if (given_.scheduler_names) config.scheduler_names = base_.scheduler_names;
  if (given_.device_naming) config.device_naming = base_.device_naming;
  return config;
}

}  // namespace gs::kube
