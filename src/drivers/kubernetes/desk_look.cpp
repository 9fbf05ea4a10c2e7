// Looking: what somebody who asks the scheduler itself is told.
#include <algorithm>

#include "drivers/kubernetes/desk.hpp"

namespace gs::kube {

bool Desk::is_ours(const Pod& pod) const {
  const auto& names = options_.scheduler_names;
  return std::find(names.begin(), names.end(), pod.scheduler_name) != names.end();
}

Result<Explanation> Desk::explain(const std::string& uid) {
  const auto it = pods_.find(uid);
  if (it == pods_.end()) return not_found("there is no such pod");
  const PodRecord& record = it->second;
  if (!record.unit.empty()) {
    Result<Explanation> known = engine_->explain(record.unit, now_);
    if (known && known->why)
      if (const std::string rules = rule_words(record); !rules.empty())
        known->why->sentence += "; " + rules;
    return known;
  }
  Explanation known;
  if (record.pod.ended()) {
    known.state = "ended";
  } else if (!record.pod.node_name.empty()) {
    known.state = "running";
    if (record.place) known.places.push_back(*record.place);
  } else if (!record.ours) {
    return not_found("pod " + record.pod.meta.key() + " is for another scheduler (" +
                     record.pod.scheduler_name + ")");
  } else {
    known.state = "waiting";
    known.why = Why{};
    known.why->constraint = Constraint::Held;  // what it waits for is not in the engine's hands
    known.why->sentence = record.ask.waits_for;
  }
  return known;
}

Result<Explanation> Desk::explain_name(const std::string& name) {
  for (const auto& [uid, record] : pods_)
    if (record.pod.meta.key() == name) return explain(uid);
  return not_found("there is no pod " + name);
}

Overview Desk::overview(std::size_t most_waiting) const {
  Overview seen;
  const Cluster& cluster = engine_->cluster();
  for (std::size_t i = 0; i < cluster.node_count(); ++i) {
    const NodeState& node = cluster.node(NodeId{i});
    if (node.gone) continue;
    ++seen.nodes;
    if (!node.schedulable()) continue;
    ++seen.ready_nodes;
    seen.gpus += gpu_count(node.usable());
    seen.free_gpus += gpu_count(node.free_gpus(View::Now));
  }
  for (const auto& [uid, record] : pods_) {
    if (!record.ours || record.gone || record.pod.ended()) continue;
    const bool binds =
        !record.unit.empty() && units_.at(record.unit).slots[record.slot].stage == Stage::Binding;
    if (!record.pod.node_name.empty()) {
      ++seen.bound;
    } else if (binds) {
      ++seen.binding;
    } else {
      ++seen.waiting;
      seen.longest.push_back(
          {name_of(record.pod), record.pod.meta.created, record.told ? record.told->message : ""});
    }
  }
  const auto older = [](const Overview::Waiting& a, const Overview::Waiting& b) {
    return a.since != b.since ? a.since < b.since : a.pod.uid < b.pod.uid;
  };
  const auto end = seen.longest.begin() +
                   static_cast<std::ptrdiff_t>(std::min(most_waiting, seen.longest.size()));
  std::partial_sort(seen.longest.begin(), end, seen.longest.end(), older);
  seen.longest.erase(end, seen.longest.end());
  return seen;
}

}  // namespace gs::kube
