#include "cycle/attempt.hpp"

#include <algorithm>
#include <map>

#include "queue/quota.hpp"

namespace gs {
namespace {

std::vector<GroupTasks> by_group(const std::vector<Member>& members) {
  std::vector<GroupTasks> groups;
  for (const Member& member : members) {
    auto it = std::find_if(groups.begin(), groups.end(),
                           [&](const GroupTasks& g) { return g.group == member.group; });
    if (it == groups.end()) it = groups.insert(groups.end(), {member.group, {}});
    it->ranks.push_back(member.rank);
  }
  for (GroupTasks& group : groups) std::sort(group.ranks.begin(), group.ranks.end());
  return groups;
}

struct Added {
  Usage usage;
  std::vector<std::uint32_t> models;
};

// What the trial has put into the books for this job since `mark`.
Added added_since(Trial& trial, JobId job, std::size_t mark) {
  const Cluster& cluster = trial.cluster();
  Added added;
  for (std::size_t i = mark; i < trial.changes().size(); ++i) {
    const Trial::Change& change = trial.changes()[i];
    if (change.kind != Trial::Kind::Placed && change.kind != Trial::Kind::Spared) continue;
    const Task& task = cluster.task(change.task);
    if (task.job != job) continue;
    added.usage += cluster.usage(task);
    if (const auto model = model_of(cluster, task)) added.models.push_back(*model);
  }
  return added;
}

// A gang of two models is looked for so often at most.
constexpr int kMixedTries = 16;

bool has_limited_model(const Cluster& cluster, NodeId node, const QuotaState& broken) {
  const Layout& layout = *cluster.node(node).layout;
  return layout.count > 0 &&
         broken.resource == gpus_of(cluster.shapes().models().name(layout.model[0]));
}

// The GPUs (in milli) that were placed on each node since `mark`.
std::map<NodeId, std::int64_t> placed_since(const Trial& trial, std::size_t mark) {
  std::map<NodeId, std::int64_t> milli;
  for (std::size_t i = mark; i < trial.changes().size(); ++i) {
    if (trial.changes()[i].kind != Trial::Kind::Placed) continue;
    const Task& task = trial.cluster().task(trial.changes()[i].task);
    milli[task.place.node] += trial.cluster().usage(task).gpu_milli;
  }
  return milli;
}

// Takes out the nodes that cost most of what was exceeded: those with GPUs of the model that is
// limited, or with the largest GPUs that were used. False if there is nothing left to try.
bool exclude_costly_nodes(const Trial& trial, std::size_t mark, const QuotaState& broken,
                          NodeSet& among) {
  const Cluster& cluster = trial.cluster();
  std::int64_t largest_mib = 0;
  bool limited = false;
  for (const auto& [node, milli] : placed_since(trial, mark)) {
    const Layout& layout = *cluster.node(node).layout;
    if (layout.count == 0) continue;
    limited |= has_limited_model(cluster, node, broken);
    largest_mib = std::max(largest_mib, layout.memory_mib[0]);
  }
  bool excluded = false;
  for (std::size_t n = 0; n < among.size(); ++n) {
    const Layout& layout = *cluster.node(NodeId{n}).layout;
    if (!among[n] || layout.count == 0) continue;
    if (limited ? !has_limited_model(cluster, NodeId{n}, broken)
                : layout.memory_mib[0] < largest_mib)
      continue;
    among[n] = false;
    excluded = true;
  }
  return excluded;
}

// Of the nodes of the model that is limited, only those stay that were used, less one: that with
// least on it which is enough, else that with most. False if none was used.
bool exclude_one_node(const Trial& trial, std::size_t mark, const QuotaState& broken,
                      NodeSet& among) {
  const Cluster& cluster = trial.cluster();
  const std::int64_t too_much = broken.requested - broken.limit;
  std::map<NodeId, std::int64_t> used = placed_since(trial, mark);
  std::erase_if(used, [&](const auto& u) { return !has_limited_model(cluster, u.first, broken); });
  if (used.empty()) return false;
  const auto least = std::min_element(used.begin(), used.end(), [&](const auto& a, const auto& b) {
    const bool a_does = a.second >= too_much, b_does = b.second >= too_much;
    if (a_does != b_does) return a_does;
    return a_does ? a.second < b.second : a.second > b.second;
  });
  used.erase(least);
  for (std::size_t n = 0; n < among.size(); ++n)
    if (has_limited_model(cluster, NodeId{n}, broken) && !used.contains(NodeId{n}))
      among[n] = false;
  return true;
}

// Keeps as much of what was placed since `mark` as the quota allows, and looks for nodes that cost
// less of it for the rest. False if there are none; the trial is then to be rolled back.
bool place_rest_elsewhere(CycleContext& context, Trial& trial, PlaceAsk ask, std::size_t mark,
                          const QuotaState& broken) {
  std::vector<Task> placed;
  for (std::size_t i = mark; i < trial.changes().size(); ++i) {
    if (trial.changes()[i].kind != Trial::Kind::Placed) return false;  // others are part of it
    placed.push_back(trial.cluster().task(trial.changes()[i].task));
  }
  NodeSet elsewhere =
      ask.among != nullptr ? *ask.among : NodeSet(context.cluster.node_count(), true);
  exclude_costly_nodes(trial, mark, broken, elsewhere);
  trial.rollback(mark);
  std::vector<Member> rest;
  for (const Task& task : placed) {
    const std::size_t before = trial.mark();
    trial.place(ask.job, task.group, task.rank, task.place, task.state, context.now);
    if (!over_quota_since(trial, ask.job, mark)) continue;
    trial.rollback(before);
    rest.push_back({task.group, task.rank});
  }
  ask.tasks = by_group(rest);
  ask.among = &elsewhere;
  return context.placer.place(trial, ask) && !over_quota_since(trial, ask.job, mark);
}

enum class LeaveOut : std::uint8_t { AllCostly, OneByOne };

// Places where the quota allows it, leaving out nodes that cost too much of it. `broken`: the quota
// that kept it from its last place.
bool place_within_quota(CycleContext& context, Trial& trial, PlaceAsk ask, LeaveOut how,
                        std::optional<QuotaState>& broken) {
  const std::size_t mark = trial.mark();
  NodeSet cheaper;
  for (int tries = 0; context.placer.place(trial, ask); ++tries) {
    const auto exceeded = over_quota_since(trial, ask.job, mark);
    if (!exceeded) return true;
    broken = exceeded;
    if (cheaper.empty())
      cheaper = ask.among != nullptr ? *ask.among : NodeSet(context.cluster.node_count(), true);
    const bool one = how == LeaveOut::OneByOne;
    const bool more = one ? tries < kMixedTries && exclude_one_node(trial, mark, *broken, cheaper)
                          : exclude_costly_nodes(trial, mark, *broken, cheaper);
    if (one && place_rest_elsewhere(context, trial, ask, mark, *broken)) return true;
    trial.rollback(mark);
    if (!more) return false;
    ask.among = &cheaper;
  }
  return false;
}

}  // namespace

std::optional<QuotaState> over_quota(const Cluster& cluster, JobId job,
                                     const std::vector<Member>& members) {
  const JobRecord& record = cluster.job(job);
  Usage sum;
  for (const Member& member : members)
    sum += least_usage(cluster, cluster.shapes().at(shape_of(cluster, job, member.group)));
  auto broken = over_limit(cluster, record.tenant, sum, record.active_tasks == 0 ? 1 : 0);
  if (!broken && !record.preemptible) broken = over_guaranteed(cluster, record.tenant, sum);
  return broken;
}

std::optional<QuotaState> over_quota_since(Trial& trial, JobId job, std::size_t mark) {
  const Added added = added_since(trial, job, mark);
  const JobRecord& record = trial.cluster().job(job);
  return exceeded(trial.cluster(), record.tenant, record.preemptible, added.usage, added.models);
}

Attempt attempt(CycleContext& context, Trial& trial, JobId job, const std::vector<Member>& members,
                Firmness firmness, const NodeSet* among) {
  if (members.empty()) return {false, {Constraint::GangIncomplete, {}}};
  if (auto broken = over_quota(context.cluster, job, members))
    return {false, {Constraint::Quota, std::move(broken)}};
  const PlaceAsk ask{job, by_group(members), firmness, among, context.now};
  std::optional<QuotaState> broken;
  if (place_within_quota(context, trial, ask, LeaveOut::AllCostly, broken)) return {true, {}};
  if (!broken) return {false, {Constraint::Capacity, {}}};
  // No one model does for all of them: perhaps some of each.
  if (members.size() > 1 && place_within_quota(context, trial, ask, LeaveOut::OneByOne, broken))
    return {true, {}};
  return {false, {Constraint::Quota, std::move(broken)}};
}

bool place_as_planned(CycleContext& context, Trial& trial, JobId job,
                      const std::vector<Member>& members, View view) {
  const auto plan = context.plans.find(context.cluster.job(job).seq);
  if (plan == context.plans.end() || plan->second.places.size() != members.size() ||
      over_quota(context.cluster, job, members))
    return false;
  const std::size_t mark = trial.mark();
  const auto state = view == View::Now ? TaskState::Running : TaskState::Nominated;
  const auto place_one = [&](const Plan::Place& place) {
    const Member member{place.group, place.rank};
    if (std::find(members.begin(), members.end(), member) == members.end()) return false;
    if (!context.placer.will_fit(job, place.group, place.place, view)) return false;
    trial.place(job, place.group, place.rank, place.place, state, context.now);
    return true;
  };
  const auto& places = plan->second.places;
  if (std::all_of(places.begin(), places.end(), place_one) && !over_quota_since(trial, job, mark))
    return true;
  trial.rollback(mark);
  return false;
}

void wait_as_one(Trial& trial, JobId job, std::size_t mark) {
  const Cluster& cluster = trial.cluster();
  const JobRecord& record = cluster.job(job);
  if (record.nominated_tasks == 0) return;
  const JobShape& shape = cluster.shape_of(job);
  std::vector<int> running(shape.groups.size(), 0), nominated(shape.groups.size(), 0);
  for (const TaskId id : record.tasks) {
    const Task& task = cluster.task(id);
    if (task.state == TaskState::Running) ++running[task.group];
    if (task.state == TaskState::Nominated) ++nominated[task.group];
  }
  for (const auto& [group, rank] : record.ended) ++running[group];
  bool waits = false;
  for (std::size_t g = 0; g < shape.groups.size(); ++g)
    waits |= nominated[g] > 0 && running[g] < shape.groups[g].min;
  if (!waits) return;
  std::vector<TaskId> started;
  for (std::size_t i = mark; i < trial.changes().size(); ++i) {
    const Trial::Change& change = trial.changes()[i];
    if (change.kind != Trial::Kind::Placed) continue;
    const Task& task = cluster.task(change.task);
    if (task.job == job && task.state == TaskState::Running) started.push_back(change.task);
  }
  for (const TaskId id : started) trial.hold(id);
}

}  // namespace gs
