// Disruption budgets: pods that must not go now are the last to be asked to leave.
//
// The engine asks the least important first. As long as a budget allows no more of its pods to go,
// they count as the most important ones there can be; of those that it does allow, the least
// important and youngest are the ones. A gang that looks for a place is as important as it says: it
// must not take one from others because a budget keeps its other pods.
#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "drivers/kubernetes/desk.hpp"

namespace gs::kube {
namespace {

constexpr int kHighestPriority = 1'000'000;

}  // namespace

void Desk::put(PodDisruptionBudget budget) {
  const std::string key = budget.meta.key();
  budgets_[key].budget = std::move(budget);
  dirty_budgets_.insert(key);
}

void Desk::remove_budget(const std::string& key) {
  const auto it = budgets_.find(key);
  if (it == budgets_.end()) return;
  for (const std::string& id : it->second.units) change_guard(id, -1);
  budgets_.erase(it);
  dirty_budgets_.erase(key);
  settle();
}

void Desk::refresh_budgets() {
  for (const std::string& key : std::exchange(dirty_budgets_, {})) {
    BudgetRecord& record = budgets_.at(key);
    std::set<std::string> units = guarded_by(record.budget);
    for (const std::string& id : units)
      if (!record.units.contains(id)) change_guard(id, +1);
    for (const std::string& id : record.units)
      if (!units.contains(id)) change_guard(id, -1);
    record.units = std::move(units);
  }
}

// Numbers of a budget whose controller has not looked yet are no numbers: it allows nothing.
std::set<std::string> Desk::guarded_by(const PodDisruptionBudget& budget) const {
  std::vector<const PodRecord*> pods;
  for (const auto& [uid, record] : pods_)
    if (!record.unit.empty() && record.place && record.pod.meta.ns == budget.meta.ns &&
        matches(budget.selector, record.pod.meta.labels))
      pods.push_back(&record);
  std::sort(pods.begin(), pods.end(), [](const PodRecord* a, const PodRecord* b) {
    return std::tuple(a->pod.priority, -a->pod.meta.created.ms, std::cref(a->pod.meta.uid).get()) <
           std::tuple(b->pod.priority, -b->pod.meta.created.ms, std::cref(b->pod.meta.uid).get());
  });
  const std::size_t may_go =
      budget.current ? static_cast<std::size_t>(std::max(0, budget.disruptions_allowed)) : 0;
  std::set<std::string> units;
  for (std::size_t i = may_go; i < pods.size(); ++i)
    if (!looks_for_a_place(units_.at(pods[i]->unit))) units.insert(pods[i]->unit);
  return units;
}

bool Desk::looks_for_a_place(const Unit& unit) {
  return std::any_of(unit.slots.begin(), unit.slots.end(),
                     [](const Slot& slot) { return !slot.place && slot.stage != Stage::Done; });
}

void Desk::touch_guards(const Unit& unit) {
  if (!guards_.contains(unit.id)) return;
  for (const auto& [key, known] : budgets_)
    if (known.units.contains(unit.id)) dirty_budgets_.insert(key);
}

void Desk::change_guard(const std::string& id, int by) {
  int& guards = guards_[id];
  const bool was = guards > 0;
  guards += by;
  const bool is = guards > 0;
  if (!is) guards_.erase(id);
  const auto it = units_.find(id);
  if (was == is || it == units_.end()) return;
  int priority = kHighestPriority;
  if (!is)
    for (const Slot& slot : it->second.slots)
      if (!slot.pod.empty()) {
        priority = pods_.at(slot.pod).ask.priority;
        break;
      }
  (void)tell(SetPriority{id, priority});
}

// A pod has just been bound: its budgets have to be looked at with it.
void Desk::touch_budgets(const PodRecord& record) {
  for (const auto& [key, known] : budgets_)
    if (known.budget.meta.ns == record.pod.meta.ns &&
        matches(known.budget.selector, record.pod.meta.labels))
      dirty_budgets_.insert(key);
}

}  // namespace gs::kube
