// SchedulerConfig and TopologySchedulerConfig (topology.scheduler/v1alpha1): the same thing under
// two names, as a custom resource or as the text of a ConfigMap.
//
// What is not given keeps its default. Fields that do not exist are refused with the name that was
// probably meant.
#pragma once

#include "base/result.hpp"
#include "model/config.hpp"
#include "model/node.hpp"
#include "wire/json_reader.hpp"
#include "wire/kube/device_names.hpp"
#include "wire/kube/meta.hpp"

namespace gs::kube {

// A level of the network, and the node labels that name a node's domain there: the first label
// that a node has counts.
struct TopologyLevel {
  std::string name;
  std::vector<std::string> labels;
  bool operator==(const TopologyLevel&) const = default;
};

// A domain that is written down instead of labelled.
struct NamedDomain {
  std::string name;
  std::string parent;              // empty: a domain of the outermost level
  std::vector<std::string> nodes;  // of the innermost level
  bool operator==(const NamedDomain&) const = default;
};

struct SchedulerConfig {
  Config engine;
  std::vector<std::string> scheduler_names = {"gpu-scheduler", "topology-aware-scheduler"};
  std::vector<TopologyLevel> levels;  // outermost first
  std::vector<NamedDomain> domains;
  bool leases = true;
  std::string lease_namespace = "gpu-scheduler";
  std::string leader_lease;  // by which one of several leads; empty: leader_lease_of
  DeviceNaming device_naming = DeviceNaming::Index;

  SchedulerConfig();  // levels spine and leaf
};

// {"kind", "apiVersion", "metadata", "spec"} as JSON, or as YAML.
Result<SchedulerConfig> decode_scheduler_config(std::string_view json);
Result<SchedulerConfig> scheduler_config_of_yaml(std::string_view yaml);
// Out of data["config.yaml"], or of the only entry.
Result<SchedulerConfig> scheduler_config_of_map(std::string_view config_map);

// Whether a Lease of the election may be called so: it must not look like that of a GPU.
Status check_leader_lease(const std::string& name);
// The Lease by which these schedulers elect who leads: "gpu-scheduler" with one of the usual names,
// and without leases of GPUs, when only one may give them out; else it is called like the first
// name, so that schedulers of different names lead side by side.
Result<std::string> leader_lease_of(const SchedulerConfig& config);

// Where a node lies, outermost first; empty where nothing is known of it. A domain that is written
// down counts more than labels. A level without a label is named "-" where one further in has one,
// and after the node itself where none has: what is not known to be near is not near.
std::vector<std::string> network_path(const Meta& node, const SchedulerConfig& config);

}  // namespace gs::kube
