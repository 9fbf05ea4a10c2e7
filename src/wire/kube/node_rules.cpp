// Node selectors, node affinity and tolerations.
#include <algorithm>
#include <utility>

#include "wire/kube/node_model.hpp"
#include "wire/kube/task_request.hpp"

namespace gs::kube {
namespace {

LabelTerms all_terms(const NodeTerm& term) {
  LabelTerms terms = term.labels;
  for (LabelTerm field : term.fields) {
    field.key = kNodeNameKey;
    terms.push_back(std::move(field));
  }
  return terms;
}

// A term of nothing but names: {"metadata.name" in [...]}.
bool names_nodes(const NodeTerm& term) {
  return term.labels.empty() && term.fields.size() == 1 && term.fields[0].op == LabelOp::In;
}

}  // namespace

// A term without any condition takes no node, as in Kubernetes; so does an empty list of terms.
std::vector<LabelTerms> node_alternatives(const std::vector<NodeTerm>& terms) {
  std::vector<LabelTerms> alternatives;
  for (const NodeTerm& term : terms)
    if (LabelTerms all = all_terms(term); !all.empty()) alternatives.push_back(std::move(all));
  if (alternatives.empty()) alternatives.push_back({{kNodeNameKey, LabelOp::In, {}}});
  return alternatives;
}

void require(const LabelTerms& terms, TaskRequest& request) {
  if (terms.empty()) return;
  if (request.affinity.empty()) request.affinity.emplace_back();
  for (LabelTerms& alternative : request.affinity)
    alternative.insert(alternative.end(), terms.begin(), terms.end());
}

void add_node_rules(const Pod& pod, TaskRequest& request) {
  request.selector = pod.node_selector;
  request.tolerations = pod.tolerations;
  if (const auto& required = pod.node_affinity.required) {
    const bool names =
        !required->empty() && std::all_of(required->begin(), required->end(), names_nodes);
    if (names) {
      for (const NodeTerm& term : *required)
        request.only_nodes.insert(request.only_nodes.end(), term.fields[0].values.begin(),
                                  term.fields[0].values.end());
    }
    if (!names || request.only_nodes.empty()) request.affinity = node_alternatives(*required);
  }
  for (const PreferredNodeTerm& one : pod.node_affinity.preferred)
    if (LabelTerms terms = all_terms(one.term); !terms.empty())
      request.preferred_affinity.push_back({one.weight, std::move(terms)});
}

}  // namespace gs::kube
