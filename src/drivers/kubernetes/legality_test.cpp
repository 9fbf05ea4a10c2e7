#include "drivers/kubernetes/legality_test.hpp"

#include <algorithm>

namespace gs::kube {
namespace {

using Nodes = std::map<std::string, gs::Node>;

const std::string* value(const Nodes& nodes, const std::string& node, const std::string& key) {
  const auto it = nodes.find(node);
  return it == nodes.end() ? nullptr : find_label(it->second.labels, key);
}

bool same_domain(const Nodes& nodes, const std::string& a, const std::string& b,
                 const std::string& key) {
  const std::string* one = value(nodes, a, key);
  const std::string* other = value(nodes, b, key);
  return one != nullptr && other != nullptr && *one == *other;
}

bool meets_all(const std::vector<PodTerm>& terms, const Pod& speaker, const Pod& other) {
  return std::all_of(terms.begin(), terms.end(), [&](const PodTerm& term) {
    return matches(term, speaker.meta, other.meta, {});
  });
}

std::string broken_affinity(const Pod& pod, const std::string& node,
                            const std::vector<Standing>& all, const Nodes& nodes) {
  const auto& terms = pod.pod_affinity.required;
  bool anybody = false;
  for (const Standing& other : all) anybody |= meets_all(terms, pod, *other.pod);
  for (const PodTerm& term : terms) {
    if (value(nodes, node, term.topology_key) == nullptr) return "affinity: no domain";
    if (!anybody && meets_all(terms, pod, pod)) continue;
    const bool near = std::any_of(all.begin(), all.end(), [&](const Standing& other) {
      return meets_all(terms, pod, *other.pod) &&
             same_domain(nodes, node, other.node, term.topology_key);
    });
    if (!near) return "affinity: nobody near";
  }
  return {};
}

std::string broken_spread(const Pod& pod, const std::string& node, const std::vector<Standing>& all,
                          const Nodes& nodes) {
  for (const TopologySpread& rule : pod.spread) {
    if (!rule.required) continue;
    const std::string* own = value(nodes, node, rule.topology_key);
    if (own == nullptr) return "spread: no domain";
    std::map<std::string, int> counts;
    for (const auto& [name, each] : nodes)
      if (const std::string* domain = find_label(each.labels, rule.topology_key)) {
        counts[*domain] += 0;
        for (const Standing& other : all)
          counts[*domain] += other.node == name && !other.pod->meta.deleted &&
                             other.pod->meta.ns == pod.meta.ns &&
                             matches(rule.selector, other.pod->meta.labels);
      }
    int fewest = 1'000'000;
    for (const auto& [domain, n] : counts) fewest = std::min(fewest, n);
    if (static_cast<int>(counts.size()) < rule.min_domains) fewest = 0;
    const int self = matches(rule.selector, pod.meta.labels) ? 1 : 0;
    if (counts[*own] + self - fewest > rule.max_skew) return "spread: skew";
  }
  return {};
}

// A device plugin gives the one devices, and may give it those that the other was told.
bool share_devices(const Pod& told, const Pod& limited) {
  const ResourceList& limits = limited.containers.front().limits;
  return told.meta.annotation(kTestToldDevices) != nullptr && !limits.empty() &&
         limits.front().amount.value() > 0;
}

}  // namespace

std::string conflict_with(const Pod& pod, const std::string& node, const std::vector<Standing>& all,
                          const Nodes& nodes) {
  for (const Standing& other : all) {
    for (const PodTerm& term : pod.pod_anti_affinity.required)
      if (matches(term, pod.meta, other.pod->meta, {}) &&
          same_domain(nodes, node, other.node, term.topology_key))
        return "anti-affinity to " + other.pod->meta.name;
    for (const PodTerm& term : other.pod->pod_anti_affinity.required)
      if (matches(term, other.pod->meta, pod.meta, {}) &&
          same_domain(nodes, node, other.node, term.topology_key))
        return "anti-affinity of " + other.pod->meta.name;
    if (other.node != node) continue;
    if (share_devices(pod, *other.pod) || share_devices(*other.pod, pod))
      return "who chooses the devices of " + other.pod->meta.name;
    for (const HostPort& mine : pod.host_ports)
      for (const HostPort& theirs : other.pod->host_ports)
        if (conflict(mine, theirs)) return "host port of " + other.pod->meta.name;
  }
  return {};
}

std::string broken_rule(const Pod& pod, const std::string& node, const std::vector<Standing>& all,
                        const Nodes& nodes) {
  std::string why = conflict_with(pod, node, all, nodes);
  if (why.empty()) why = broken_affinity(pod, node, all, nodes);
  if (why.empty()) why = broken_spread(pod, node, all, nodes);
  return why;
}

}  // namespace gs::kube
