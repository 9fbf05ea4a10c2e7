#include "drivers/kubernetes/rule_text.hpp"

#include <algorithm>

namespace gs::kube {
namespace {

constexpr char kNext = '\x1e';  // in no label and no name
constexpr char kPart = '\x1f';

void add(std::string& text, std::vector<std::string> words) {
  std::sort(words.begin(), words.end());
  for (const std::string& word : words) text.append(word) += kPart;
  text += kNext;
}

// A key that the speaker does not have is left out.
void add_values(std::string& text, const std::vector<std::string>& keys, const Meta& speaker) {
  std::vector<std::string> pairs;
  for (const std::string& key : keys)
    if (const std::string* value = speaker.label(key)) pairs.push_back(key + "=" + *value);
  add(text, std::move(pairs));
}

}  // namespace

std::string rule_text(const LabelTerms& terms) {
  std::vector<std::string> all;
  for (const LabelTerm& term : terms) {
    std::string one = term.key + std::to_string(static_cast<int>(term.op));
    one += kPart;
    add(one, term.values);
    all.push_back(std::move(one));
  }
  std::string text;
  add(text, std::move(all));
  return text;
}

std::string rule_text(const PodTerm& term, const Meta& speaker) {
  std::string text = term.selector ? "+" + rule_text(term.selector->terms) : "-";
  text += kNext;
  if (term.namespaces.empty() && !term.namespace_selector)
    add(text, {speaker.ns});
  else
    add(text, term.namespaces);
  text += term.namespace_selector ? "+" + rule_text(term.namespace_selector->terms) : "-";
  text += kNext;
  add_values(text, term.match_label_keys, speaker);
  add_values(text, term.mismatch_label_keys, speaker);
  return text;
}

std::string rule_text(const std::vector<PodTerm>& terms, const Meta& speaker) {
  std::vector<std::string> all;
  all.reserve(terms.size());
  for (const PodTerm& term : terms) all.push_back(rule_text(term, speaker));
  std::string text;
  add(text, std::move(all));
  return text;
}

std::string rule_text(const TaskRequest& nodes) {
  std::string text;
  for (const auto& [key, value] : nodes.selector)
    text.append(key).append("=").append(value) += kPart;
  text += kNext;
  add(text, nodes.only_nodes);
  for (const LabelTerms& alternative : nodes.affinity) text += rule_text(alternative);
  text += kNext;
  for (const Toleration& one : nodes.tolerations) {
    text.append(one.key).append(one.exists ? "*" : "=").append(one.value);
    text += one.any_effect ? '*' : static_cast<char>('0' + static_cast<int>(one.effect));
    text += kPart;
  }
  return text;
}

PodTerm term_of(const TopologySpread& spread) {
  PodTerm term;
  term.topology_key = spread.topology_key;
  term.selector = spread.selector;
  term.match_label_keys = spread.match_label_keys;
  return term;
}

}  // namespace gs::kube
