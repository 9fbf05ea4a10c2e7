#include "placement/place.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "placement/filters.hpp"
#include "placement/fit.hpp"
#include "placement/placer.hpp"

namespace gs {

Placer::Placer(Cluster& cluster, const Config& config)
    : impl_(std::make_unique<Impl>(cluster, config)) {}
Placer::~Placer() = default;

void Placer::Impl::take_policy() {
  const PolicyRow* row = find_node_policy(config.node_policy);
  CHECK_MSG(row != nullptr, "node_policy is not one of the table");
  policy = row->make({cluster, config, demand});
  scorer.use(policy.get());
}

void Placer::observe(JobId job) {
  for (const ShapedGroup& group : impl_->cluster.shape_of(job).groups)
    impl_->demand.observe(impl_->cluster.shapes().at(group.shape), group.shape, group.count);
}

void Placer::refresh() { impl_->policy->refresh(); }

const Demand& Placer::demand() const { return impl_->demand; }

void Placer::set_demand(DemandState state) {
  impl_->demand.set_state(std::move(state));
  reconfigured();
}

void Placer::reconfigured() {
  impl_->take_policy();
  impl_->indexes.clear();
  impl_->verdicts = {};
}

NodeIndex& Placer::Impl::index(ShapeId shape, View view) {
  if (order.version != cluster.structure_version()) order.build(cluster);
  // A cluster has hundreds of live shapes; past that, start over rather than keep dead ones.
  constexpr std::size_t kMaxIndexes = 1024;
  if (indexes.size() >= kMaxIndexes) indexes.clear();
  auto& slot = indexes[std::uint64_t{shape.v} << 1 | static_cast<std::uint64_t>(view)];
  if (!slot) slot = std::make_unique<NodeIndex>(cluster, scorer, order, shape, view);
  slot->sync();
  return *slot;
}

bool Placer::lies_freely(JobId job) {
  const JobShape& shape = impl_->cluster.shape_of(job);
  if (impl_->config.gang_layout != GangLayout::LeastHarm || shape.groups.size() != 1) return false;
  const ShapedGroup& group = shape.groups[0];
  return impl_->chooses_freely(job, group) &&
         (group.count > 1 || impl_->takes_whole_node(group.shape));
}

std::optional<double> Placer::cost() const { return impl_->cost; }

double Placer::cost_of(JobId job, const std::vector<NodeId>& nodes) {
  TreeAsk ask;
  ask.shape = impl_->group_of(job, 0).shape;
  ask.count = static_cast<int>(nodes.size());
  std::vector<Portion> portions;
  for (const NodeId node : nodes) portions.push_back({node, 1, false});
  return impl_->tree.cost_of(ask, portions);
}

bool Placer::place(Trial& trial, const PlaceAsk& ask) {
  impl_->cost.reset();
  const std::size_t mark = trial.mark();
  // The most common ask by far: one task of one group, without any wish about its neighbours.
  std::vector<int> entries(ask.tasks.size());
  for (std::size_t i = 0; i < entries.size(); ++i) entries[i] = static_cast<int>(i);
  if (impl_->place_set(trial, ask, 0, entries, Scope{})) return true;
  trial.rollback(mark);
  return false;
}

Status Placer::can_hold(JobId job, int group, const Allocation& place) const {
  const Shape& shape = impl_->cluster.shapes().at(impl_->group_of(job, group).shape);
  const NodeState& node = impl_->cluster.node(place.node);
  const GpuRequest& gpu = shape.request.gpu;
  const std::string of = "job " + impl_->cluster.job(job).id + " on node " + node.spec.name + ": ";
  if (gpu_count(place.gpus) != (gpu.sharing == Sharing::Mig ? 0 : gpu.count))
    return invalid(of + "the number of devices is not what the job asks for");
  if (node.cpu_milli.free(View::Now) < shape.request.resources.cpu_milli ||
      node.memory_bytes.free(View::Now) < shape.request.resources.memory_bytes)
    return Error{ErrorCode::Conflict, of + "CPU or memory is taken by another job"};
  bool free = true;
  for_each_gpu(place.gpus, [&](int i) {
    const GpuState& books = node.gpus[static_cast<std::size_t>(i)];
    if (!gpu.pinned_ids.empty() && books.pin_owner == PinOwner(shape, job)) return;
    const GpuPart part = shape.exclusive() ? GpuPart{kWholeGpu, books.memory_mib.capacity}
                                           : gpu_part(gpu, books.memory_mib.capacity);
    free &= books.pin_tasks == 0 && books.milli.free(View::Now) >= part.milli &&
            books.memory_mib.free(View::Now) >= part.memory_mib;
  });
  if (!free) return Error{ErrorCode::Conflict, of + "a device is taken by another job"};
  return ok_status();
}

// ---------------------------------------------------------------- sets

bool Placer::Impl::place_set(Trial& trial, const PlaceAsk& ask, int set,
                             const std::vector<int>& entries, Scope scope) {
  const JobShape& shape = cluster.shape_of(ask.job);
  const bool wish = !is_empty(shape.sets[static_cast<std::size_t>(set)].topology);
  // A set says that its groups belong together, even where it does not say how near.
  if (wish || (set > 0 && config.implicit_topology)) {
    bool applies = false;
    const bool placed = place_with_leader(trial, ask, set, entries, scope, applies);
    if (applies) return placed;
  }
  return wish ? place_together(trial, ask, set, entries, scope)
              : place_members(trial, ask, set, entries, scope);
}

namespace {

// The set below `set` that a group hangs in (directly or further down); -1 if it is in `set`
// itself.
int child_set(const JobShape& shape, int group, int set) {
  int below = shape.groups[static_cast<std::size_t>(group)].set;
  if (below == set) return -1;
  while (shape.sets[static_cast<std::size_t>(below)].parent != set)
    below = shape.sets[static_cast<std::size_t>(below)].parent;
  return below;
}

// What is placed as one: a group that hangs in the set itself, or everything of a set below it.
struct Child {
  int set = -1;  // -1: a group
  std::vector<int> entries;
};

std::vector<Child> children_of(const JobShape& shape, const PlaceAsk& ask, int set,
                               const std::vector<int>& entries) {
  std::vector<Child> children;
  for (const int entry : entries) {
    const int below = child_set(shape, ask.tasks[static_cast<std::size_t>(entry)].group, set);
    const auto known = std::find_if(children.begin(), children.end(), [&](const Child& child) {
      return below >= 0 && child.set == below;
    });
    if (known != children.end())
      known->entries.push_back(entry);
    else
      children.push_back({below, {entry}});
  }
  return children;
}

}  // namespace

// One child of a set after the other. Whoever finds no room goes first in the next attempt, so that
// those who can lie anywhere don't take the only place of those who can't.
bool Placer::Impl::place_members(Trial& trial, const PlaceAsk& ask, int set,
                                 const std::vector<int>& entries, Scope scope) {
  std::vector<Child> children = children_of(cluster.shape_of(ask.job), ask, set, entries);
  const auto place_child = [&](const Child& child) {
    return child.set < 0
               ? place_group(trial, ask, ask.tasks[static_cast<std::size_t>(child.entries.front())],
                             scope)
               : place_set(trial, ask, child.set, child.entries, scope);
  };
  const std::size_t mark = trial.mark();
  for (std::size_t tries = 0; tries < children.size(); ++tries) {
    const auto failed = std::find_if_not(children.begin(), children.end(), place_child);
    if (failed == children.end()) return true;
    trial.rollback(mark);
    if (failed == children.begin()) return false;  // not even alone
    std::rotate(children.begin(), failed, failed + 1);
  }
  return children.empty();
}

// Everything below the set inside one domain: each candidate is tried whole, the tightest first,
// from the level preferred outwards to the level required.
bool Placer::Impl::place_together(Trial& trial, const PlaceAsk& ask, int set,
                                  const std::vector<int>& entries, Scope scope) {
  const TopologyWish& wish = cluster.shape_of(ask.job).sets[static_cast<std::size_t>(set)].topology;
  const DomainTree& domains = cluster.domains();
  const auto required = wish.required_level.empty() ? std::optional<int>{-1}
                                                    : domains.level_index(wish.required_level);
  const auto preferred =
      wish.preferred_level.empty() ? required : domains.level_index(wish.preferred_level);
  if (!required || !preferred) return false;  // a level that this cluster does not have
  if (*required >= 0 && !survivors_home(ask.job, set, true, *required, scope)) return false;
  std::vector<TreeAsk> groups;
  for (const int entry : entries) {
    const GroupTasks& tasks = ask.tasks[static_cast<std::size_t>(entry)];
    TreeAsk group;
    group.shape = group_of(ask.job, tasks.group).shape;
    group.count = static_cast<int>(tasks.ranks.size());
    group.view = ask.firmness == Firmness::StartNow ? View::Now : View::Future;
    group.among = ask.among;
    groups.push_back(group);
  }
  const std::size_t mark = trial.mark();
  const auto attempt = [&](Scope inside) {
    if (place_members(trial, ask, set, entries, inside)) return true;
    trial.rollback(mark);
    return false;
  };
  for (int level = std::max(*preferred, *required); level >= std::max(*required, 0); --level) {
    if (scope.node.valid() ||
        (level < domains.depth() && level <= domains.at(scope.domain).level)) {
      if (attempt(scope)) return true;  // survivors have fixed the place already
      break;
    }
    for (const Tree::Candidate& candidate : tree.candidates(groups, level, scope.domain))
      if (attempt(candidate.node.valid() ? Scope{scope.domain, candidate.node}
                                         : Scope{candidate.domain, {}}))
        return true;
  }
  return *required < 0 && attempt(scope);
}

// A leader and its workers are counted as one unit, so that the domain chosen holds both.
bool Placer::Impl::place_with_leader(Trial& trial, const PlaceAsk& ask, int set,
                                     const std::vector<int>& entries, Scope scope, bool& applies) {
  const JobShape& shape = cluster.shape_of(ask.job);
  if (entries.size() != 2) return false;
  const GroupTasks* workers = &ask.tasks[static_cast<std::size_t>(entries[0])];
  const GroupTasks* leader = &ask.tasks[static_cast<std::size_t>(entries[1])];
  if (leader->ranks.size() > workers->ranks.size()) std::swap(leader, workers);
  const ShapedGroup& leader_group = group_of(ask.job, leader->group);
  const ShapedGroup& worker_group = group_of(ask.job, workers->group);
  const bool direct = leader_group.set == set && worker_group.set == set;
  const bool fresh = cluster.job(ask.job).active_tasks == 0;
  const bool whole = static_cast<int>(workers->ranks.size()) == worker_group.count;
  if (!direct || !fresh || !whole || leader->ranks.size() != 1 ||
      !is_empty(leader_group.topology) || !is_empty(worker_group.topology))
    return false;
  applies = true;
  TopologyWish wish = shape.sets[static_cast<std::size_t>(set)].topology;
  if (is_empty(wish) && worker_group.slices.empty()) wish.preferred_level = "node";
  auto tree_ask = gs::tree_ask(cluster.domains(), wish, worker_group.slices);
  if (!tree_ask) return false;
  tree_ask->shape = worker_group.shape;
  tree_ask->count = static_cast<int>(workers->ranks.size());
  tree_ask->leader = leader_group.shape;
  const std::size_t mark = trial.mark();
  for (const View view : {View::Now, View::Future}) {
    if (!may_use(ask.firmness, view)) continue;
    tree_ask->view = view;
    if (!find(*tree_ask, ask, scope)) continue;
    const std::vector<Portion> portions = tree.portions();
    const auto seat =
        std::find_if(portions.begin(), portions.end(), [](const Portion& p) { return p.leader; });
    CHECK(seat != portions.end());
    if (settle_soonest(trial, ask, leader->group, leader->ranks[0], seat->node) &&
        assign(trial, ask, workers->group, workers->ranks, portions))
      return true;
    trial.rollback(mark);
  }
  return false;
}

// ---------------------------------------------------------------- single tasks

// What is free already comes first, also for somebody who will only be nominated: nobody has to be
// waited for there.
bool Placer::Impl::place_task(Trial& trial, const PlaceAsk& ask, int group, int rank, Scope scope) {
  if (ask.firmness == Firmness::StartOrNominate && waits_for_others(ask, group, scope) &&
      place_in_view(trial, ask, group, rank, scope, View::Future))
    return true;
  for (const View view : {View::Now, View::Future}) {
    if (view == View::Future && !may_use(ask.firmness, view)) continue;
    if (place_in_view(trial, ask, group, rank, scope, view)) return true;
  }
  return false;
}

// Consolidated, for a task that shares: a part of a GPU that others share is worth waiting for,
// rather than to break a whole one.
bool Placer::Impl::waits_for_others(const PlaceAsk& ask, int group, Scope scope) {
  const ShapeId id = group_of(ask.job, group).shape;
  const Shape& shape = cluster.shapes().at(id);
  if (shape.request.gpu.sharing != Sharing::Shared || scope.node.valid() ||
      scorer.strategy_of(shape) != Strategy::Consolidated)
    return false;
  const auto joins = [&](View view) {
    const NodeIndex& nodes = index(id, view);
    const NodeId best = ask.among != nullptr ? nodes.best_among(scope.domain, *ask.among)
                                             : nodes.best(scope.domain);
    return best.valid() && Scorer::joins_others(cluster.node(best), shape, view);
  };
  return !joins(View::Now) && joins(View::Future);
}

bool Placer::Impl::place_in_view(Trial& trial, const PlaceAsk& ask, int group, int rank,
                                 Scope scope, View view) {
  const NodeIndex& nodes = index(group_of(ask.job, group).shape, view);
  if (scope.node.valid()) {
    const bool allowed = ask.among == nullptr || (*ask.among)[scope.node.index()];
    return allowed && nodes.has_room(scope.node) &&
           settle(trial, ask, group, rank, scope.node, view);
  }
  const NodeId best =
      ask.among != nullptr ? nodes.best_among(scope.domain, *ask.among) : nodes.best(scope.domain);
  if (!best.valid()) return false;
  if (settle(trial, ask, group, rank, best, view)) return true;
  // The counts promised room that the devices don't give (pins of another job, parts of several
  // GPUs).
  for (const NodeId node : nodes.ranked(scope.domain, ask.among))
    if (settle(trial, ask, group, rank, node, view)) return true;
  return false;
}

}  // namespace gs
