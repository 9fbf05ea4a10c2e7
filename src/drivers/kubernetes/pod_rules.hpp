// PodRules: where a pod may go because of where other pods are. Affinity and anti-affinity between
// pods (also what the running ones say about newcomers) and topology spread become label terms that
// a node must meet now.
//
// Pods are counted by node, once for each distinct selector that somebody has asked about: a pod
// that comes or goes costs as much as there are such selectors, and nothing where there are none.
//
// No thread, clock or I/O. Invariant: each count is the number of placed pods that its selector
// matches, and a count that is zero is not kept.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "drivers/kubernetes/device_choosers.hpp"
#include "drivers/kubernetes/shared_node.hpp"
#include "model/node.hpp"
#include "model/request.hpp"
#include "wire/kube/pod.hpp"

namespace gs::kube {

// What has to be looked at for a pod. Pods with equal keys may go to the same nodes.
struct RuleBook {
  std::string key;
  Meta speaker;                 // namespace and labels of the pod
  std::vector<PodTerm> near;    // required affinity
  std::vector<PodTerm> apart;   // required anti-affinity
  std::vector<PodTerm> wishes;  // preferred; weights below zero are of anti-affinity
  std::vector<TopologySpread> spread;
  std::vector<std::string> others;  // keys of anti-affinities of placed pods that speak of it
  TaskRequest nodes;                // its own node selector, affinity and tolerations
  std::string volumes_of;  // uid of the pod whose claims say where it may go; empty: none does
  Chooser chooser = Chooser::Nobody;  // Nobody: those of the other kind are not in its way
  bool may_begin = false;  // whom it wants to be near is the pod itself, or starts with it

  bool is_about_choosers_only() const {
    return near.empty() && apart.empty() && wishes.empty() && spread.empty() && others.empty() &&
           volumes_of.empty();
  }
};

class PodRules {
 public:
  using Counts = std::map<std::string, int>;  // by node

  void put_node(const SharedNode& node);
  void remove_node(const std::string& name);
  void put_namespace(const std::string& name, const Labels& labels);

  // It is bound to the node, or about to be. The pod stays where it is in memory, and keeps its
  // labels, until lift().
  void place(const Pod& pod, const std::string& node);
  std::string lift(const std::string& uid);  // the node where it was; empty: it was nowhere
  bool is_placed(const std::string& uid) const { return placed_.contains(uid); }
  // Grows whenever terms() may have changed.
  std::uint64_t version() const { return version_; }

  // Nothing: no rule concerns the pod. `fellows`: those that start together with it.
  std::optional<RuleBook> book(const Pod& pod, const std::vector<const Pod*>& fellows = {}) const;
  // What a node must be like for the pod now, all of it.
  LabelTerms terms(const RuleBook& book);
  // The same if these were placed as well. Their uids must not be placed yet.
  using Beside = std::pair<const Pod*, std::string>;  // a pod and its node
  LabelTerms terms_beside(const RuleBook& book, const std::vector<Beside>& beside);
  // What would be better: always as many as for any pod with this key.
  std::vector<PreferredTerms> wishes(const RuleBook& book);
  bool allows(const Pod& pod, const std::string& node);
  // How many of all nodes each kind of rule leaves; empty: all.
  std::string words(const RuleBook& book);

  const std::map<std::string, SharedNode>& nodes() const { return nodes_; }

 private:
  struct Placed {
    const Pod* pod = nullptr;
    std::string node;
    std::vector<std::string> apart;  // keys in apart_
  };
  struct Counter {
    Meta speaker;
    std::vector<PodTerm> terms;  // all of them
    bool skips_ending = false;
    Counts by_node;
  };
  struct Apart {  // an anti-affinity that placed pods have
    Meta speaker;
    PodTerm term;
    Counts by_node;
  };

  std::string key_of(const RuleBook& book) const;
  const Labels& labels_of_namespace(const std::string& name) const;
  bool speaks_of(const std::vector<PodTerm>& terms, const Meta& speaker, const Meta& other) const;
  const Counts& count(const Meta& speaker, const std::vector<PodTerm>& terms, bool skips_ending);
  void add(const Placed& placed, int sign);
  const std::string* value_at(const std::string& node, const std::string& key) const;
  std::vector<std::string> values_of(const Counts& counts, const std::string& key) const;
  LabelTerms work_out(const RuleBook& book);
  void add_near(const RuleBook& book, LabelTerms& terms);
  void add_apart(const RuleBook& book, LabelTerms& terms);
  void add_spread(const RuleBook& book, const TopologySpread& rule, LabelTerms& terms);
  Counts count_domains(const RuleBook& book, const TopologySpread& rule);
  bool counts_for(const RuleBook& book, const TopologySpread& rule, const gs::Node& node) const;

  std::map<std::string, SharedNode> nodes_;
  std::map<std::string, Labels> namespaces_;
  std::unordered_map<std::string, Placed> placed_;  // by uid
  std::map<std::string, Counter> counters_;         // by text
  std::map<std::string, Apart> apart_;              // by text and topology key
  std::uint64_t version_ = 1;
  // The last answer: many pods with one key are asked about in a row.
  std::string memo_key_;
  std::uint64_t memo_version_ = 0;
  LabelTerms memo_;
};

}  // namespace gs::kube
