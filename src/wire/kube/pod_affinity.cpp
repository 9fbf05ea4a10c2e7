#include <algorithm>
#include <utility>

#include "wire/kube/pod.hpp"

namespace gs::kube {
namespace {

void read_node_affinity(Cursor& in, NodeAffinity& affinity) {
  in.object([&](std::string_view field) {
    if (field == "requiredDuringSchedulingIgnoredDuringExecution")
      in.object([&](std::string_view inner) {
        if (inner != "nodeSelectorTerms") return;
        if (!affinity.required) affinity.required.emplace();
        in.array([&] { read(in, affinity.required->emplace_back()); });
      });
    if (field == "preferredDuringSchedulingIgnoredDuringExecution")
      in.array([&] {
        PreferredNodeTerm& one = affinity.preferred.emplace_back();
        in.object([&](std::string_view inner) {
          if (inner == "weight") in.read(one.weight);
          if (inner == "preference") read(in, one.term);
        });
        if (!in.failed() && (one.weight < 1 || one.weight > 100))
          in.fail("weight must be 1..100, got " + std::to_string(one.weight));
      });
  });
}

void read_pod_term(Cursor& in, PodTerm& term) {
  in.object([&](std::string_view field) {
    if (field == "topologyKey") in.read(term.topology_key);
    if (field == "labelSelector") read(in, term.selector);
    if (field == "namespaces") in.read(term.namespaces);
    if (field == "namespaceSelector") read(in, term.namespace_selector);
    if (field == "matchLabelKeys") in.read(term.match_label_keys);
    if (field == "mismatchLabelKeys") in.read(term.mismatch_label_keys);
  });
}

void read_pod_affinity(Cursor& in, PodAffinity& affinity) {
  in.object([&](std::string_view field) {
    if (field == "requiredDuringSchedulingIgnoredDuringExecution")
      in.array([&] { read_pod_term(in, affinity.required.emplace_back()); });
    if (field == "preferredDuringSchedulingIgnoredDuringExecution")
      in.array([&] {
        PodTerm& one = affinity.preferred.emplace_back();
        in.object([&](std::string_view inner) {
          if (inner == "weight") in.read(one.weight);
          if (inner == "podAffinityTerm") read_pod_term(in, one);
        });
      });
  });
}

// Since 1.29 the API server writes matchLabelKeys into the selector itself; older ones don't.
bool agree(const std::vector<std::string>& keys, const Labels& a, const Labels& b, bool wanted) {
  return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
    const std::string* own = find_label(a, key);
    const std::string* other = find_label(b, key);
    if (own == nullptr) return true;  // a key that the pod does not have is left out
    return (other != nullptr && *own == *other) == wanted;
  });
}

}  // namespace

void read(Cursor& in, NodeTerm& term) {
  in.object([&](std::string_view field) {
    if (field == "matchExpressions") in.array([&] { read(in, term.labels.emplace_back()); });
    if (field == "matchFields")
      in.array([&] {
        LabelTerm& one = term.fields.emplace_back();
        read(in, one);
        if (!in.failed() && one.key != "metadata.name")
          in.fail("key must be metadata.name, got '" + one.key + "'");
      });
  });
}

void read_affinity(Cursor& in, Pod& pod) {
  in.object([&](std::string_view field) {
    if (field == "nodeAffinity") read_node_affinity(in, pod.node_affinity);
    if (field == "podAffinity") read_pod_affinity(in, pod.pod_affinity);
    if (field == "podAntiAffinity") read_pod_affinity(in, pod.pod_anti_affinity);
  });
}

void read_spread(Cursor& in, TopologySpread& spread) {
  const auto is = [&](const char* wanted) {
    std::string word;
    in.read(word);
    return word == wanted;
  };
  in.object([&](std::string_view field) {
    if (field == "maxSkew") in.read(spread.max_skew);
    if (field == "topologyKey") in.read(spread.topology_key);
    if (field == "whenUnsatisfiable") spread.required = !is("ScheduleAnyway");
    if (field == "labelSelector") read(in, spread.selector);
    if (field == "minDomains") in.read(spread.min_domains);
    if (field == "nodeAffinityPolicy") spread.honor_affinity = !is("Ignore");
    if (field == "nodeTaintsPolicy") spread.honor_taints = is("Honor");
    if (field == "matchLabelKeys") in.read(spread.match_label_keys);
  });
}

bool matches(const PodTerm& term, const Meta& pod, const Meta& other,
             const Labels& namespace_labels) {
  const bool named =
      std::find(term.namespaces.begin(), term.namespaces.end(), other.ns) != term.namespaces.end();
  const bool own = term.namespaces.empty() && !term.namespace_selector && other.ns == pod.ns;
  if (!named && !own && !matches(term.namespace_selector, namespace_labels)) return false;
  return matches(term.selector, other.labels) &&
         agree(term.match_label_keys, pod.labels, other.labels, true) &&
         agree(term.mismatch_label_keys, pod.labels, other.labels, false);
}

}  // namespace gs::kube
