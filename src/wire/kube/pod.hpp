// A Pod, as far as a scheduler looks at it. Decoded once; what an absent field means is Kubernetes'
// own default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/request.hpp"
#include "wire/kube/meta.hpp"
#include "wire/kube/quantity.hpp"
#include "wire/kube/selector.hpp"

namespace gs::kube {

struct NamedQuantity {
  std::string name;
  Quantity amount;
  bool operator==(const NamedQuantity&) const = default;
};
using ResourceList = std::vector<NamedQuantity>;
const Quantity* find(const ResourceList& list, std::string_view name);
void read(Cursor& in, ResourceList& list);  // amounts may be strings or numbers; none is negative

struct HostPort {
  std::string ip = "0.0.0.0";
  int port = 0;
  std::string protocol = "TCP";
  bool operator==(const HostPort&) const = default;
};
bool conflict(const HostPort& a, const HostPort& b);

struct Container {
  std::string name;
  ResourceList requests, limits;
  bool sidecar = false;  // an init container that goes on running
  bool operator==(const Container&) const = default;
};

struct NodeTerm {
  LabelTerms labels;
  LabelTerms fields;  // of metadata.name only
  bool operator==(const NodeTerm&) const = default;
};
struct PreferredNodeTerm {
  int weight = 1;
  NodeTerm term;
  bool operator==(const PreferredNodeTerm&) const = default;
};
struct NodeAffinity {
  std::optional<std::vector<NodeTerm>> required;  // any of these
  std::vector<PreferredNodeTerm> preferred;
  bool operator==(const NodeAffinity&) const = default;
};

struct PodTerm {
  int weight = 0;  // of a preferred one
  std::string topology_key;
  std::optional<LabelSelector> selector;
  std::vector<std::string> namespaces;  // none and no selector of them: the pod's own
  std::optional<LabelSelector> namespace_selector;
  std::vector<std::string> match_label_keys, mismatch_label_keys;
  bool operator==(const PodTerm&) const = default;
};
struct PodAffinity {
  std::vector<PodTerm> required, preferred;
  bool operator==(const PodAffinity&) const = default;
};

struct TopologySpread {
  int max_skew = 1;
  std::string topology_key;
  bool required = true;  // DoNotSchedule
  std::optional<LabelSelector> selector;
  int min_domains = 0;  // 0: not given
  bool honor_affinity = true;
  bool honor_taints = false;
  std::vector<std::string> match_label_keys;
  bool operator==(const TopologySpread&) const = default;
};

enum class PodPhase : std::uint8_t { Pending, Running, Succeeded, Failed, Unknown };

struct Pod {
  Meta meta;
  // spec
  std::string scheduler_name = "default-scheduler";
  std::string node_name;  // empty: not bound
  std::string priority_class;
  int priority = 0;
  bool may_preempt = true;  // preemptionPolicy
  bool host_network = false;
  std::vector<Container> init_containers, containers;
  ResourceList overhead;
  ResourceList pod_requests, pod_limits;  // resources of the pod as a whole
  Labels node_selector;
  NodeAffinity node_affinity;
  PodAffinity pod_affinity, pod_anti_affinity;
  std::vector<TopologySpread> spread;
  std::vector<Toleration> tolerations;
  std::vector<HostPort> host_ports;
  std::vector<std::string> volume_claims;  // names of PersistentVolumeClaims of its namespace
  std::vector<std::string> gates;          // schedulingGates
  std::vector<std::string> device_claims;  // resourceClaims of dynamic resource allocation
  std::int64_t grace_s = 30;
  std::optional<Duration> deadline;  // activeDeadlineSeconds
  // status
  PodPhase phase = PodPhase::Pending;
  std::string nominated_node;
  std::optional<bool> scheduled;  // condition PodScheduled
  std::string scheduled_reason, scheduled_message;
  Instant started;
  bool operator==(const Pod&) const = default;

  bool ended() const { return phase == PodPhase::Succeeded || phase == PodPhase::Failed; }
};

// Whether a term of `pod` speaks of another pod: its labels, and the namespace that it lies in.
bool matches(const PodTerm& term, const Meta& pod, const Meta& other,
             const Labels& namespace_labels);

Result<Pod> decode_pod(std::string_view text);
void read(Cursor& in, Pod& pod);

// Parts of the reader, by file.
void read(Cursor& in, NodeTerm& term);
void read_affinity(Cursor& in, Pod& pod);
void read_spread(Cursor& in, TopologySpread& spread);
void read_deadline(Cursor& in, std::optional<Duration>& deadline);  // at least a second

}  // namespace gs::kube
