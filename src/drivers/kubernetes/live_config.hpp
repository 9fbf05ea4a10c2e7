// LiveConfig: the configuration in force, of all that could say it. Objects in the cluster count
// more than what the scheduler was started with: a SchedulerConfig, then a TopologySchedulerConfig,
// then ConfigMaps, each by the name topology-scheduler-config.
//
// An object that can't be read changes nothing: what it said before stays in force. Leases, and
// what was given on the command line, are not changed while the scheduler runs.
#pragma once

#include <map>
#include <string>

#include "base/result.hpp"
#include "wire/kube/scheduler_config.hpp"

namespace gs::kube {

inline constexpr const char* kConfigName = "topology-scheduler-config";

enum class ConfigSource { SchedulerConfig, TopologySchedulerConfig, OwnConfigMap, SystemConfigMap };

// On the command line.
struct Given {
  bool scheduler_names = false;
  bool device_naming = false;
};

// Whether an object's configuration holds, in words for whoever wrote it.
struct ConfigStanding {
  bool in_force = false;
  std::string words;
  bool operator==(const ConfigStanding&) const = default;
};

class LiveConfig {
 public:
  LiveConfig(SchedulerConfig base, Given given) : base_(std::move(base)), given_(given) {}

  // Whether the configuration in force may be another one now.
  bool put(ConfigSource source, const Result<SchedulerConfig>& config);
  bool remove(ConfigSource source);

  SchedulerConfig in_force() const;
  // Of an object that could be read.
  ConfigStanding standing(ConfigSource source) const;

 private:
  std::string title_of(ConfigSource source) const;

  const SchedulerConfig base_;
  const Given given_;
  std::map<ConfigSource, SchedulerConfig> known_;  // the first counts
};

}  // namespace gs::kube
