// Rules about pods as text, so that equal ones can be found: what the text says is all that decides
// which pods a rule speaks of.
#pragma once

#include <string>
#include <vector>

#include "wire/kube/pod.hpp"

namespace gs::kube {

// Without its topology key and weight. `speaker`: whose rule it is.
std::string rule_text(const PodTerm& term, const Meta& speaker);
std::string rule_text(const std::vector<PodTerm>& terms, const Meta& speaker);
std::string rule_text(const LabelTerms& terms);
std::string rule_text(const TaskRequest& nodes);  // selector, affinity and tolerations
// A spread constraint speaks of pods as a term without namespaces does.
PodTerm term_of(const TopologySpread& spread);

}  // namespace gs::kube
