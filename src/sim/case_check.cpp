#include "sim/case_check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "cycle/cycle.hpp"

namespace gs {
namespace {

constexpr int kMaxRounds = 1000;

void refuse(const std::string& why) { throw std::runtime_error(why); }

template <typename Value>
void check_value(const Value& value) {
  if (const Status status = validate(value); !status) refuse(status.error().message);
}

class KnownNames {
 public:
  explicit KnownNames(const char* what) : what_(what) {}
  void add(const std::string& name) {
    if (!names_.insert(name).second) refuse(std::string(what_) + " " + name + " is there twice");
  }
  void check(const std::string& name) const {
    if (names_.count(name) == 0) refuse("there is no " + std::string(what_) + " " + name);
  }

 private:
  const char* what_;
  std::set<std::string> names_;
};

void check_task(const KaiTask& task, const KnownNames& nodes) {
  constexpr std::array kStates = {"pending", "running", "releasing", "pipelined"};
  if (std::find(kStates.begin(), kStates.end(), task.state) == kStates.end())
    refuse("task " + task.name + ": unknown state " + task.state);
  if (task.state != "pending" || !task.node.empty()) nodes.check(task.node);
}

void check_actions(const std::vector<std::string>& actions) {
  for (const std::string& action : actions)
    if (std::none_of(phases().begin(), phases().end(),
                     [&](const Phase& phase) { return phase.name == action; }))
      refuse("there is no action " + action);
}

}  // namespace

void check_numbers(const nlohmann::json& json) {
  constexpr double kLargest = 1e15;
  if (json.is_number() && std::abs(json.get<double>()) > kLargest) refuse("a number is too large");
  if (json.is_structured())
    for (const auto& part : json) check_numbers(part);
}

void check_case(const KaiCase& c) {
  KnownNames nodes("node"), tenants("queue"), jobs("job"), tasks("task");
  for (const Node& node : c.nodes) {
    check_value(node);
    nodes.add(node.name);
  }
  for (const Tenant& tenant : c.tenants) {
    check_value(tenant);
    tenants.add(tenant.id);
  }
  for (const KaiJob& job : c.jobs) {
    check_value(job.job);
    tenants.check(job.job.tenant);
    jobs.add(job.job.id);
    for (const KaiTask& task : job.tasks) {
      check_task(task, nodes);
      tasks.add(task.name);
    }
  }
  check_actions(c.actions);
  if (std::min(c.rounds, c.stable_rounds) < 0 || std::max(c.rounds, c.stable_rounds) > kMaxRounds)
    refuse("rounds must be 0.." + std::to_string(kMaxRounds));
  for (const auto& [name, expected] : c.tasks)
    if (!expected.node.empty()) nodes.check(expected.node);
  for (const auto& [name, gpus] : c.node_gpus) nodes.check(name);
}

void check_case(const KueueCase& c) {
  KnownNames nodes("node");
  for (const KueueLeaf& leaf : c.leaves) {
    check_value(leaf.node);
    nodes.add(leaf.node.name);
  }
  const auto check_place = [&](const DomainPath& path) {
    if (c.find(path) == nullptr) refuse("a place that is not there");
  };
  for (const KueueCase::Use& use : c.used) {
    check_value(use.request);
    check_place(use.path);
  }
  for (const auto& [group, places] : c.previous)
    for (const KueueCase::Kept& kept : places)
      if (!kept.lost) check_place(kept.path);
}

}  // namespace gs
