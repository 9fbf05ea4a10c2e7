// What pods would rather have, and how rules are put into words.
#include <algorithm>
#include <cstdlib>

#include "drivers/kubernetes/pod_rules.hpp"
#include "drivers/kubernetes/rule_text.hpp"

namespace gs::kube {
namespace {

// Of a constraint that may be broken; terms between pods bring weights of 1 to 100 themselves.
constexpr int kSpreadWeight = 50;

}  // namespace

std::vector<PreferredTerms> PodRules::wishes(const RuleBook& book) {
  std::vector<PreferredTerms> wishes;
  for (const PodTerm& term : book.wishes) {
    const Counts& counts = count(book.speaker, {term}, false);
    const LabelOp op = term.weight > 0 ? LabelOp::In : LabelOp::NotIn;
    wishes.push_back({std::clamp(std::abs(term.weight), 1, 100),
                      {{term.topology_key, op, values_of(counts, term.topology_key)}}});
  }
  for (const TopologySpread& rule : book.spread) {
    if (rule.required) continue;
    const Counts domains = count_domains(book, rule);
    int fewest = domains.empty() ? 0 : domains.begin()->second;
    for (const auto& [value, n] : domains) fewest = std::min(fewest, n);
    std::vector<std::string> emptiest;
    for (const auto& [value, n] : domains)
      if (n == fewest) emptiest.push_back(value);
    wishes.push_back({kSpreadWeight, {{rule.topology_key, LabelOp::In, std::move(emptiest)}}});
  }
  return wishes;
}

std::string PodRules::words(const RuleBook& book) {
  std::string text;
  const auto say = [&](const std::string& what, const LabelTerms& terms) {
    if (terms.empty()) return;
    const auto left = std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& node) {
      return gs::matches(terms, node.second->labels);
    });
    if (left == static_cast<std::ptrdiff_t>(nodes_.size())) return;
    text += (text.empty() ? "" : ", ") + what + " leaves " + std::to_string(left) + " of " +
            std::to_string(nodes_.size()) + " nodes";
  };
  LabelTerms near, apart;
  add_near(book, near);
  add_apart(book, apart);
  say("affinity to other pods", near);
  say(book.others.empty() ? "anti-affinity to other pods" : "anti-affinity between it and others",
      apart);
  for (const TopologySpread& rule : book.spread) {
    LabelTerms terms;
    if (rule.required) add_spread(book, rule, terms);
    say("topology spread over " + rule.topology_key, terms);
  }
  return text;
}

// As if those were placed, too; what is known for good stays as it is.
LabelTerms PodRules::terms_beside(const RuleBook& book, const std::vector<Beside>& beside) {
  const std::uint64_t before = version_;
  for (const auto& [pod, node] : beside) place(*pod, node);
  RuleBook full = book;
  full.others.clear();
  Meta& meta = full.speaker;
  for (const auto& [key, apart] : apart_)
    if (speaks_of({apart.term}, apart.speaker, meta)) full.others.push_back(key);
  LabelTerms found = work_out(full);
  for (const auto& [pod, node] : beside) (void)lift(pod->meta.uid);
  version_ = before;
  return found;
}

}  // namespace gs::kube
