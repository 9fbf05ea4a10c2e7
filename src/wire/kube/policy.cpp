#include "wire/kube/policy.hpp"

#include <algorithm>

namespace gs::kube {

Result<PriorityClass> decode_priority_class(std::string_view text) {
  PriorityClass klass;
  Cursor in(text);
  in.object([&](std::string_view field) {
    if (field == "metadata") read(in, klass.meta);
    if (field == "value") in.read(klass.value);
    if (field == "globalDefault") in.read(klass.is_default);
    if (field == "preemptionPolicy") {
      std::string policy;
      in.read(policy);
      klass.may_preempt = policy != "Never";
    }
  });
  if (const Status status = in.finish(); !status) return status.error();
  return klass;
}

Result<PodDisruptionBudget> decode_disruption_budget(std::string_view text) {
  PodDisruptionBudget budget;
  std::int64_t observed = -1;
  Cursor in(text);
  in.object([&](std::string_view field) {
    if (field == "metadata") read(in, budget.meta);
    if (field == "spec")
      in.object([&](std::string_view inner) {
        if (inner == "selector") read(in, budget.selector);
      });
    if (field == "status")
      in.object([&](std::string_view inner) {
        if (inner == "disruptionsAllowed") in.read(budget.disruptions_allowed);
        if (inner == "observedGeneration") in.read(observed);
      });
  });
  if (const Status status = in.finish(); !status) return status.error();
  budget.current = observed >= budget.meta.generation;
  return budget;
}

Result<Namespace> decode_namespace(std::string_view text) {
  Namespace ns;
  Cursor in(text);
  in.object([&](std::string_view field) {
    if (field == "metadata") read(in, ns.meta);
    if (field == "status")
      in.object([&](std::string_view inner) {
        if (inner != "phase") return;
        std::string phase;
        in.read(phase);
        ns.terminating = phase == "Terminating";
      });
  });
  if (const Status status = in.finish(); !status) return status.error();
  return ns;
}

int engine_priority(int priority) {
  constexpr int kLowest = -10'000, kHighest = 900'000, kStep = 24'000;
  const int kept = std::clamp(priority, kLowest, kHighest) - kLowest;
  if (priority <= kHighest) return kept;
  return kept + 1 + (priority - kHighest) / kStep;
}
static_assert((2'147'483'647 - 900'000) / 24'000 + 910'001 <= 1'000'000);

}  // namespace gs::kube
