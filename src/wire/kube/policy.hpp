// What an administrator says about whole groups of pods: priorities, disruption budgets and
// namespaces.
#pragma once

#include "base/result.hpp"
#include "wire/kube/meta.hpp"
#include "wire/kube/selector.hpp"

namespace gs::kube {

struct PriorityClass {
  Meta meta;
  int value = 0;
  bool is_default = false;  // globalDefault
  bool may_preempt = true;
};

struct PodDisruptionBudget {
  Meta meta;
  std::optional<LabelSelector> selector;  // of pods of its namespace; not given: of none
  int disruptions_allowed = 0;
  bool current = false;  // the controller has seen the newest spec: its numbers may be trusted
};

struct Namespace {
  Meta meta;
  bool terminating = false;
};

Result<PriorityClass> decode_priority_class(std::string_view text);
Result<PodDisruptionBudget> decode_disruption_budget(std::string_view text);
Result<Namespace> decode_namespace(std::string_view text);

// The engine's priorities are 0..1000000. Kubernetes' -10000..900000 keep their distances; what is
// above is pressed together in steps of about 24000, what is below becomes 0.
int engine_priority(int priority);

}  // namespace gs::kube
