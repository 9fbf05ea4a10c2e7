// Label selectors: of pods (affinity, spreading, budgets), of namespaces and of nodes.
//
// A selector that is not given matches nothing; one that is empty matches everything.
#pragma once

#include <optional>

#include "model/request.hpp"
#include "wire/kube/cursor.hpp"

namespace gs::kube {

struct LabelSelector {
  LabelTerms terms;  // matchLabels and matchExpressions; all of them
  bool operator==(const LabelSelector&) const = default;
};

bool matches(const LabelSelector& selector, const Labels& labels);
bool matches(const std::optional<LabelSelector>& selector, const Labels& labels);

void read(Cursor& in, LabelSelector& selector);
void read(Cursor& in, std::optional<LabelSelector>& selector);
// One of matchExpressions: key, operator, values. Gt and Lt are for nodes only.
void read(Cursor& in, LabelTerm& term);

}  // namespace gs::kube
