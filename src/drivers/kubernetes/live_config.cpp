#include "drivers/kubernetes/live_config.hpp"

#include <utility>
#include <vector>

namespace gs::kube {
namespace {

// What an object says beyond the usual, and is not taken.
template <typename T>
bool is_missed(T SchedulerConfig::*field, const SchedulerConfig& said,
               const SchedulerConfig& holds) {
  return said.*field != SchedulerConfig{}.*field && said.*field != holds.*field;
}

std::string exceptions(const SchedulerConfig& said, const SchedulerConfig& holds) {
  using Config = SchedulerConfig;
  const std::pair<bool, const char*> fields[] = {
      {is_missed(&Config::scheduler_names, said, holds),
       "schedulerNames (--scheduler-name counts more)"},
      {is_missed(&Config::device_naming, said, holds),
       "deviceNaming (--device-naming counts more)"},
      {is_missed(&Config::leases, said, holds), "leases (with a restart only)"},
      {is_missed(&Config::lease_namespace, said, holds), "leaseNamespace (with a restart only)"},
      {is_missed(&Config::leader_lease, said, holds), "leaderElectLease (with a restart only)"}};
  std::string text;
  for (const auto& [missed, words] : fields)
    if (missed) text.append(text.empty() ? ", except for " : ", ").append(words);
  return text;
}

}  // namespace

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
  config.leader_lease = base_.leader_lease;
  if (given_.scheduler_names) config.scheduler_names = base_.scheduler_names;
  if (given_.device_naming) config.device_naming = base_.device_naming;
  return config;
}

ConfigStanding LiveConfig::standing(ConfigSource source) const {
  const auto& [first, config] = *known_.begin();
  if (first != source) return {false, "outranked by " + title_of(first)};
  return {true, "in force" + exceptions(config, in_force())};
}

std::string LiveConfig::title_of(ConfigSource source) const {
  switch (source) {
    case ConfigSource::SchedulerConfig:
      return std::string("SchedulerConfig ") + kConfigName;
    case ConfigSource::TopologySchedulerConfig:
      return std::string("TopologySchedulerConfig ") + kConfigName;
    case ConfigSource::OwnConfigMap:
      return "ConfigMap " + base_.lease_namespace + "/" + kConfigName;
    case ConfigSource::SystemConfigMap:
      break;
  }
  return std::string("ConfigMap kube-system/") + kConfigName;
}

}  // namespace gs::kube
