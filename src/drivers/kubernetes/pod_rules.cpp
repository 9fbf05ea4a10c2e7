#include "drivers/kubernetes/pod_rules.hpp"

#include <algorithm>
#include <set>

#include "drivers/kubernetes/rule_text.hpp"
#include "wire/kube/node_model.hpp"
#include "wire/kube/task_request.hpp"

namespace gs::kube {
namespace {

// Selectors that nobody asks about any more are forgotten, all together, when there are so many.
constexpr std::size_t kMostCounters = 1024;

Meta speaker_of(const Meta& pod) {
  Meta speaker;
  speaker.ns = pod.ns;
  speaker.labels = pod.labels;
  return speaker;
}

void change(PodRules::Counts& counts, const std::string& node, int by) {
  int& count = counts[node];
  count += by;
  if (count == 0) counts.erase(node);
}

std::string apart_key(const PodTerm& term, const Meta& speaker) {
  return term.topology_key + '\n' + rule_text(term, speaker);
}

}  // namespace

// ---------------------------------------------------------------- what is where

void PodRules::put_node(const SharedNode& node) {
  SharedNode& known = nodes_[node->name];
  if (!known || known->labels != node->labels || known->taints != node->taints) ++version_;
  known = node;
}

void PodRules::remove_node(const std::string& name) {
  if (nodes_.erase(name) > 0) ++version_;
}

void PodRules::put_namespace(const std::string& name, const Labels& labels) {
  Labels& known = namespaces_[name];
  if (known == labels) return;
  known = labels;
  counters_.clear();
  ++version_;
}

void PodRules::place(const Pod& pod, const std::string& node) {
  if (const auto it = placed_.find(pod.meta.uid); it != placed_.end()) {
    if (it->second.node == node && it->second.pod == &pod) return;
    (void)lift(pod.meta.uid);
  }
  Placed placed{&pod, node, {}};
  for (const PodTerm& term : pod.pod_anti_affinity.required) {
    std::string key = apart_key(term, pod.meta);
    Apart& apart = apart_[key];
    if (apart.by_node.empty()) {
      apart.speaker = speaker_of(pod.meta);
      apart.term = term;
    }
    change(apart.by_node, node, +1);
    placed.apart.push_back(std::move(key));
  }
  add(placed, +1);
  placed_[pod.meta.uid] = std::move(placed);
}

std::string PodRules::lift(const std::string& uid) {
  const auto it = placed_.find(uid);
  if (it == placed_.end()) return {};
  for (const std::string& key : it->second.apart) {
    const auto apart = apart_.find(key);
    change(apart->second.by_node, it->second.node, -1);
    if (apart->second.by_node.empty()) apart_.erase(apart);
  }
  add(it->second, -1);
  std::string node = std::move(it->second.node);
  placed_.erase(it);
  return node;
}

void PodRules::add(const Placed& placed, int sign) {
  ++version_;
  for (auto& [text, counter] : counters_) {
    if (counter.skips_ending && placed.pod->meta.deleted) continue;
    if (speaks_of(counter.terms, counter.speaker, placed.pod->meta))
      change(counter.by_node, placed.node, sign);
  }
}

// ---------------------------------------------------------------- counting

const Labels& PodRules::labels_of_namespace(const std::string& name) const {
  static const Labels kNone;
  const auto it = namespaces_.find(name);
  return it == namespaces_.end() ? kNone : it->second;
}

bool PodRules::speaks_of(const std::vector<PodTerm>& terms, const Meta& speaker,
                         const Meta& other) const {
  const Labels& labels = labels_of_namespace(other.ns);
  return std::all_of(terms.begin(), terms.end(),
                     [&](const PodTerm& term) { return matches(term, speaker, other, labels); });
}

const PodRules::Counts& PodRules::count(const Meta& speaker, const std::vector<PodTerm>& terms,
                                        bool skips_ending) {
  std::string text = (skips_ending ? "-" : "+") + rule_text(terms, speaker);
  if (const auto it = counters_.find(text); it != counters_.end()) return it->second.by_node;
  if (counters_.size() >= kMostCounters) counters_.clear();
  Counter& counter = counters_[std::move(text)];
  counter.speaker = speaker;
  counter.terms = terms;
  counter.skips_ending = skips_ending;
  for (const auto& [uid, placed] : placed_)
    if (!(skips_ending && placed.pod->meta.deleted) && speaks_of(terms, speaker, placed.pod->meta))
      ++counter.by_node[placed.node];
  return counter.by_node;
}

const std::string* PodRules::value_at(const std::string& node, const std::string& key) const {
  const auto it = nodes_.find(node);
  return it == nodes_.end() ? nullptr : find_label(it->second->labels, key);
}

// The domains in which somebody was counted, sorted.
std::vector<std::string> PodRules::values_of(const Counts& counts, const std::string& key) const {
  std::vector<std::string> values;
  for (const auto& [node, n] : counts)
    if (const std::string* value = value_at(node, key)) values.push_back(*value);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

// ---------------------------------------------------------------- what follows

std::optional<RuleBook> PodRules::book(const Pod& pod,
                                       const std::vector<const Pod*>& fellows) const {
  RuleBook book;
  for (const auto& [key, apart] : apart_)
    if (speaks_of({apart.term}, apart.speaker, pod.meta)) book.others.push_back(key);
  const bool own = !pod.pod_affinity.required.empty() || !pod.pod_affinity.preferred.empty() ||
                   !pod.pod_anti_affinity.required.empty() ||
                   !pod.pod_anti_affinity.preferred.empty() || !pod.spread.empty();
  if (!own && book.others.empty()) return std::nullopt;
  book.speaker = speaker_of(pod.meta);
  book.near = pod.pod_affinity.required;
  book.apart = pod.pod_anti_affinity.required;
  book.wishes = pod.pod_affinity.preferred;
  for (PodTerm term : pod.pod_anti_affinity.preferred) {
    term.weight = -term.weight;
    book.wishes.push_back(std::move(term));
  }
  book.spread = pod.spread;
  if (!book.near.empty()) {
    book.may_begin = speaks_of(book.near, pod.meta, pod.meta) ||
                     std::any_of(fellows.begin(), fellows.end(), [&](const Pod* fellow) {
                       return speaks_of(book.near, pod.meta, fellow->meta);
                     });
  }
  add_node_rules(pod, book.nodes);
  book.key = key_of(book);
  return book;
}

// All that terms() and wishes() look at.
std::string PodRules::key_of(const RuleBook& book) const {
  std::string key = book.may_begin ? "begins\n" : "\n";
  for (const auto* terms : {&book.near, &book.apart, &book.wishes}) {
    for (const PodTerm& term : *terms)
      key += apart_key(term, book.speaker) + std::to_string(term.weight) + "\n";
    key += "\n\n";
  }
  for (const TopologySpread& rule : book.spread)
    key += apart_key(term_of(rule), book.speaker) + std::to_string(rule.max_skew) + "/" +
           std::to_string(rule.min_domains) + (rule.required ? "!" : "?") +
           (rule.honor_affinity ? "a" : "-") + (rule.honor_taints ? "t" : "-") +
           (speaks_of({term_of(rule)}, book.speaker, book.speaker) ? "self\n" : "\n");
  if (!book.spread.empty()) key += rule_text(book.nodes);
  for (const std::string& other : book.others) key += "\nfrom " + other;
  return key;
}

LabelTerms PodRules::terms(const RuleBook& book) {
  if (memo_version_ == version_ && memo_key_ == book.key) return memo_;
  memo_ = work_out(book);
  memo_key_ = book.key;
  memo_version_ = version_;
  return memo_;
}

LabelTerms PodRules::work_out(const RuleBook& book) {
  LabelTerms terms;
  add_near(book, terms);
  add_apart(book, terms);
  for (const TopologySpread& rule : book.spread)
    if (rule.required) add_spread(book, rule, terms);
  return terms;
}

bool PodRules::allows(const Pod& pod, const std::string& node) {
  const std::optional<RuleBook> rules = book(pod);
  if (!rules) return true;
  const auto it = nodes_.find(node);
  return it == nodes_.end() || gs::matches(terms(*rules), it->second->labels);
}

// A pod counts for affinity only if it meets all terms. The first of a group that wants to be
// together finds nobody, and may begin anywhere.
void PodRules::add_near(const RuleBook& book, LabelTerms& terms) {
  if (book.near.empty()) return;
  const Counts& counts = count(book.speaker, book.near, false);
  const bool begins = counts.empty() && book.may_begin;
  for (const PodTerm& term : book.near)
    if (begins)
      terms.push_back({term.topology_key, LabelOp::Exists, {}});
    else
      terms.push_back({term.topology_key, LabelOp::In, values_of(counts, term.topology_key)});
}

void PodRules::add_apart(const RuleBook& book, LabelTerms& terms) {
  const auto keep_off = [&](const std::string& key, const Counts& counts) {
    std::vector<std::string> values = values_of(counts, key);
    if (!values.empty()) terms.push_back({key, LabelOp::NotIn, std::move(values)});
  };
  for (const PodTerm& term : book.apart)
    keep_off(term.topology_key, count(book.speaker, {term}, false));
  for (const std::string& other : book.others)
    if (const auto it = apart_.find(other); it != apart_.end())
      keep_off(it->second.term.topology_key, it->second.by_node);
}

// Whether pods on this node count, and its domain is one of those that are compared.
bool PodRules::counts_for(const RuleBook& book, const TopologySpread& rule,
                          const gs::Node& node) const {
  for (const TopologySpread& each : book.spread)
    if (each.required == rule.required && find_label(node.labels, each.topology_key) == nullptr)
      return false;
  if (rule.honor_taints)
    for (const Taint& taint : node.taints)
      if (taint.effect != TaintEffect::PreferNoSchedule &&
          !tolerates(book.nodes.tolerations, taint))
        return false;
  if (!rule.honor_affinity) return true;
  const auto& only = book.nodes.only_nodes;
  if (!only.empty() && std::find(only.begin(), only.end(), node.name) == only.end()) return false;
  for (const auto& [key, wanted] : book.nodes.selector)
    if (const std::string* value = find_label(node.labels, key); !value || *value != wanted)
      return false;
  const auto& any = book.nodes.affinity;
  return any.empty() || std::any_of(any.begin(), any.end(), [&](const LabelTerms& alternative) {
           return gs::matches(alternative, node.labels);
         });
}

PodRules::Counts PodRules::count_domains(const RuleBook& book, const TopologySpread& rule) {
  const Counts& counts = count(book.speaker, {term_of(rule)}, true);
  Counts domains;
  for (const auto& [name, node] : nodes_) {
    if (!counts_for(book, rule, *node)) continue;
    const auto at = counts.find(name);
    domains[*find_label(node->labels, rule.topology_key)] += at == counts.end() ? 0 : at->second;
  }
  return domains;
}

void PodRules::add_spread(const RuleBook& book, const TopologySpread& rule, LabelTerms& terms) {
  const Counts domains = count_domains(book, rule);
  int fewest = domains.empty() ? 0 : domains.begin()->second;
  for (const auto& [value, n] : domains) fewest = std::min(fewest, n);
  if (static_cast<int>(domains.size()) < rule.min_domains) fewest = 0;
  const int self = speaks_of({term_of(rule)}, book.speaker, book.speaker) ? 1 : 0;
  std::vector<std::string> full;
  for (const auto& [value, n] : domains)
    if (n + self - fewest > rule.max_skew) full.push_back(value);
  terms.push_back({rule.topology_key, LabelOp::Exists, {}});
  if (!full.empty()) terms.push_back({rule.topology_key, LabelOp::NotIn, std::move(full)});
}

}  // namespace gs::kube
