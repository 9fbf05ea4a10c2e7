// Objects that pods refer to: claims, what made them, pod groups, namespaces, tenants, nodes. It
// turns a pod into what it asks for, and says which pods to look at again when one of these
// changes.
//
// No thread, clock or I/O; one thread calls it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "drivers/kubernetes/orders.hpp"
#include "drivers/kubernetes/pod_ask.hpp"
#include "drivers/kubernetes/shared_node.hpp"
#include "wire/kube/claim.hpp"
#include "wire/kube/node.hpp"
#include "wire/kube/node_status.hpp"
#include "wire/kube/pod.hpp"
#include "wire/kube/policy.hpp"
#include "wire/kube/scheduler_config.hpp"
#include "wire/kube/scheduling_map.hpp"
#include "wire/kube/tenant.hpp"
#include "wire/kube/topology_ask.hpp"
#include "wire/kube/workload.hpp"

namespace gs::kube {

using Uids = std::vector<std::string>;  // of pods to look at again

class Objects {
 public:
  explicit Objects(SchedulerConfig config) : config_(std::move(config)) {}

  PodAsk ask(const Pod& pod);
  Uids forget_pod(const std::string& uid);  // it has ended or is gone: whom that may help

  Uids put(GpuClaim claim);
  Uids put_broken_claim(const std::string& ns, const std::string& name, std::string error);
  Uids remove_claim(const std::string& ns, const std::string& name);
  Uids put(Workload workload);
  void remove_workload(const std::string& uid);
  Uids put(PodGroup group);
  Uids remove_pod_group(const std::string& ns, const std::string& name);
  Uids put(PriorityClass klass);
  Uids remove_priority_class(const std::string& name);
  Uids put(const Namespace& name_space);
  // The engine has to be told as well: of `tenant` itself.
  Uids put(GpuTenant tenant);
  Uids remove_tenant(const std::string& name);

  SharedNode put(Node node);
  void remove_node(const std::string& name);
  SharedNode put(GpuNodeStatus status);
  SharedNode remove_node_status(const std::string& name);
  // Pods that name this node in their map, and, after domains have changed, those that name one.
  Uids concerned_by(const std::string& node);
  // Which pods the node's agent has seen on which devices.
  std::map<std::string, std::vector<int>> in_use(const std::string& node) const;
  // The network adapters nearest to these devices, as NCCL_IB_HCA takes them: "mlx5_0,mlx5_1".
  std::string adapters(const PodPlace& place) const;
  // Instances by their UUIDs, which are right everywhere; the GPU's id where one is not known.
  DeviceNames instances(const PodPlace& place) const;

  const SchedulerConfig& config() const { return config_; }
  // All nodes as the new configuration reads them.
  std::vector<SharedNode> set_config(SchedulerConfig config);

 private:
  using Key = std::pair<std::string, std::string>;  // namespace, name
  using Index = std::map<Key, std::set<std::string>>;

  struct ClaimRecord {
    std::optional<GpuClaim> claim;
    std::string error;  // why it can't be read
  };

  // What made the pod, nearest first, as far as it has been seen.
  struct Makers {
    Owners owners;
    const OwnerReference* unseen = nullptr;  // the next one, which is on its way to us
  };
  Makers makers_of(const Pod& pod);
  SharedNode node_of(const std::string& name);
  std::vector<std::string> known_domains(const Pod& pod, const Owners& owners);
  void forget_domains();
  // Each returns false, with ask.waits_for, where the pod has to wait for something.
  bool find_claim(const Pod& pod, PodAsk& ask, const GpuClaim*& claim);
  bool may_use_claim(const Pod& pod, PodAsk& ask);
  bool find_gang(const Pod& pod, const GpuClaim* claim, const Owners& owners, PodAsk& ask);
  bool obey_group(const Pod& pod, const PodGroup& group, PodAsk& ask);
  bool find_queue(const Pod& pod, const PodGroup& group, PodAsk& ask);
  bool find_priority(const Pod& pod, const PodGroup& group, PodAsk& ask);
  const Meta& namespace_of(const Pod& pod);
  bool find_pin(const Pod& pod, const Owners& owners, PodAsk& ask, std::optional<MapEntry>& pin,
                std::string& group);
  int index_of(const Pod& pod, const std::string& owner);
  void free_index(const std::string& uid);
  void watch(Index& index, Key key, const std::string& uid);
  Uids waiting_for(const Index& index, const Key& key) const;
  Uids all_pods() const;

  SchedulerConfig config_;
  std::map<Key, ClaimRecord> claims_;
  std::map<std::string, Workload> workloads_;  // by uid
  std::map<Key, PodGroup> groups_;
  std::map<std::string, PriorityClass> classes_;
  std::map<std::string, Namespace> namespaces_;
  std::vector<GpuTenant> tenants_;  // by name
  std::map<std::string, Node> nodes_;
  std::map<std::string, GpuNodeStatus> reports_;
  std::map<std::string, SharedNode> read_nodes_;
  std::set<std::string> domains_;  // known ones; empty: to be gathered
  bool domains_changed_ = false;   // since concerned_by() told of it
  SharedRequest last_request_;     // pods that ask for the same come one after the other

  // Who refers to what. Pods leave with forget_pod().
  struct Mentions {
    std::string ns;
    std::vector<std::pair<Index*, Key>> others;
  };
  Index by_claim_, by_group_, by_class_, by_owner_, by_node_, by_domain_;
  std::map<std::string, Mentions> of_pod_;
  std::map<std::string, std::map<int, std::string>> indexes_;  // owner, index: pod
  std::map<std::string, std::pair<std::string, int>> index_of_pod_;
  struct ClaimUser {
    std::string uid, name;
  };
  std::map<Key, ClaimUser> claim_users_;  // of claims that serve one pod
};

}  // namespace gs::kube
