// Groups over the network tree: fresh gangs, packs (slices), and members that join others.
#include <algorithm>

#include "placement/fit.hpp"
#include "placement/placer.hpp"

namespace gs {

// The wish of the group, or of the innermost set around it that has one.
TopologyWish Placer::Impl::said_wish(JobId job, const ShapedGroup& group) const {
  if (!is_empty(group.topology)) return group.topology;
  const auto& sets = cluster.shape_of(job).sets;
  for (int set = group.set; set >= 0; set = sets[static_cast<std::size_t>(set)].parent)
    if (!is_empty(sets[static_cast<std::size_t>(set)].topology))
      return sets[static_cast<std::size_t>(set)].topology;
  return {};
}

// What the group says, or what goes without saying: a latency-sensitive gang stays inside one leaf;
// any gang, and any group of a set that says how near, lies as near together as can be. Members
// that come later follow what was said for all.
TopologyWish Placer::Impl::wish_of(JobId job, const ShapedGroup& group) const {
  if (!is_empty(group.topology) || !group.slices.empty()) return group.topology;
  const auto& levels = cluster.domains().levels();
  const bool gang = group.count > 1;  // a single task is kept away from others by its score
  if (gang && cluster.shapes().at(group.shape).request.latency_sensitive && !levels.empty())
    return {levels.back(), "node"};
  if (!config.implicit_topology) return {};
  TopologyWish said = said_wish(job, group);
  if (!is_empty(said) && cluster.job(job).active_tasks > 0) return said;
  return group.count > 1 || !is_empty(said) ? TopologyWish{"", "node"} : TopologyWish{};
}

// Whether nothing is said about where the group lies, and nothing binds it: then the layout of the
// configuration has a free choice.
bool Placer::Impl::chooses_freely(JobId job, const ShapedGroup& group) const {
  const TaskRequest& request = cluster.shapes().at(group.shape).request;
  return config.implicit_topology && group.slices.empty() && is_empty(said_wish(job, group)) &&
         !request.latency_sensitive && request.preferred_affinity.empty() &&
         request.preferred_domain.empty();
}

// A lone task that leaves nothing of the largest nodes: all that matters is what lies around them.
// Without a network nothing does; then the node policy judges it as any other.
bool Placer::Impl::takes_whole_node(ShapeId id) {
  const Shape& shape = cluster.shapes().at(id);
  if (cluster.domains().depth() == 0 || !shape.exclusive() || shape.gpus() < 2) return false;
  if (most_gpus_version != cluster.spec_version()) {
    most_gpus_version = cluster.spec_version();
    most_gpus = 0;
    for (std::size_t i = 0; i < cluster.node_count(); ++i)
      if (!cluster.node(NodeId{i}).gone)
        most_gpus = std::max(most_gpus, cluster.node(NodeId{i}).layout->count);
  }
  return shape.gpus() == most_gpus;
}

bool Placer::Impl::survivors_home(JobId job, int set_or_group, bool is_set, int level,
                                  Scope& home) const {
  const JobShape& shape = cluster.shape_of(job);
  const auto belongs = [&](int group) {
    if (!is_set) return group == set_or_group;
    for (int set = shape.groups[static_cast<std::size_t>(group)].set; set >= 0;
         set = shape.sets[static_cast<std::size_t>(set)].parent)
      if (set == set_or_group) return true;
    return false;
  };
  const DomainTree& domains = cluster.domains();
  for (const TaskId id : cluster.job(job).tasks) {
    const Task& task = cluster.task(id);
    if (task.state == TaskState::Releasing || !belongs(task.group)) continue;
    if (level >= domains.depth()) {
      if (home.node.valid() && home.node != task.place.node) return false;
      home.node = task.place.node;
      continue;
    }
    const DomainId domain = domains.ancestor(cluster.node(task.place.node).domain, level);
    if (!domain.valid()) return false;
    // Further in than what binds already: it narrows; elsewhere: they lie apart.
    if (domains.contains(home.domain, domain))
      home.domain = domain;
    else if (!domains.contains(domain, home.domain))
      return false;
  }
  return true;
}

bool Placer::Impl::place_group(Trial& trial, const PlaceAsk& ask, const GroupTasks& tasks,
                               Scope scope) {
  const ShapedGroup& group = group_of(ask.job, tasks.group);
  const TopologyWish wish = wish_of(ask.job, group);
  const bool limits = config.max_nodes_per_leaf > 0 || config.max_gpus_per_leaf > 0;
  const bool fresh = cluster.job(ask.job).active[static_cast<std::size_t>(tasks.group)] == 0;
  const bool free_choice = fresh && chooses_freely(ask.job, group);
  const bool whole_node = free_choice && group.count == 1 && takes_whole_node(group.shape);
  if (is_empty(wish) && group.slices.empty() && !limits && !whole_node)
    return std::all_of(tasks.ranks.begin(), tasks.ranks.end(),
                       [&](int rank) { return place_task(trial, ask, tasks.group, rank, scope); });
  if (!wish.required_level.empty()) {
    const auto level = cluster.domains().level_index(wish.required_level);
    if (!level || !survivors_home(ask.job, tasks.group, false, *level, scope)) return false;
  }
  if (!group.slices.empty()) {
    const std::size_t mark = trial.mark();
    if (place_layer(trial, ask, tasks, 0, scope)) return true;
    trial.rollback(mark);
    return place_rests(trial, ask, tasks, scope);
  }
  // Where a level is named, every place inside its domain is as good: then the tightest. Where
  // nothing is said, newcomers go next to the others.
  if (!fresh && is_empty(said_wish(ask.job, group)) && place_near(trial, ask, tasks, scope))
    return true;
  auto tree_ask = gs::tree_ask(cluster.domains(), wish, {});
  if (tree_ask) tree_ask->free_choice = free_choice;
  return tree_ask && place_fresh(trial, ask, *tree_ask, tasks, scope);
}

// Rests of packs choose after whole packs and may find their domain full: then every domain of the
// required level is tried for all of them together.
bool Placer::Impl::place_rests(Trial& trial, const PlaceAsk& ask, const GroupTasks& tasks,
                               Scope scope) {
  const ShapedGroup& group = group_of(ask.job, tasks.group);
  const DomainTree& domains = cluster.domains();
  const bool has_rests = static_cast<int>(tasks.ranks.size()) % group.slices[0].size != 0;
  if (group.topology.required_level.empty() || !has_rests) return false;
  if (scope.node.valid()) return false;  // that was tried
  const int level = *domains.level_index(group.topology.required_level);
  const std::size_t mark = trial.mark();
  const auto fits_in = [&](Scope home) {
    trial.rollback(mark);
    return place_layer(trial, ask, tasks, 0, home);
  };
  std::vector<std::pair<std::string, Scope>> homes;  // in order of their names
  if (level >= domains.depth()) {
    for (std::size_t i = 0; i < cluster.node_count(); ++i)
      if (const NodeState& node = cluster.node(NodeId{i}); !node.gone)
        homes.emplace_back(node.spec.name, Scope{scope.domain, NodeId{i}});
  } else {
    for (std::size_t i = 0; i < domains.size(); ++i)
      if (const DomainId id{i}; domains.at(id).level == level && domains.contains(scope.domain, id))
        homes.emplace_back(domains.path(id), Scope{id, scope.node});
  }
  std::sort(homes.begin(), homes.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return std::any_of(homes.begin(), homes.end(),
                     [&](const auto& home) { return fits_in(home.second); });
}

// Members that join others: the innermost domain around one of those that holds all newcomers.
bool Placer::Impl::place_near(Trial& trial, const PlaceAsk& ask, const GroupTasks& tasks,
                              Scope scope) {
  const DomainTree& domains = cluster.domains();
  std::vector<DomainId> around;
  for (const TaskId id : cluster.job(ask.job).tasks) {
    const Task& task = cluster.task(id);
    if (task.group == tasks.group && task.state != TaskState::Releasing)
      around.push_back(cluster.node(task.place.node).domain);
  }
  const std::size_t mark = trial.mark();
  for (int level = domains.depth() - 1; level >= 0; --level) {
    std::vector<DomainId> tried;
    for (const DomainId domain : around) {
      const DomainId outer = domains.ancestor(domain, level);
      if (!outer.valid() || std::find(tried.begin(), tried.end(), outer) != tried.end()) continue;
      tried.push_back(outer);
      if (!domains.contains(scope.domain, outer)) continue;
      TreeAsk near;
      near.reach = Reach::Anywhere;
      near.level = domains.depth();
      if (place_fresh(trial, ask, near, tasks, {outer, scope.node})) return true;
      trial.rollback(mark);
    }
  }
  return false;
}

// Pack by pack: pack i of a layer holds the ranks from i * size on. Packs that are wholly missing
// are placed afresh together; a pack with survivors is completed where those lie.
bool Placer::Impl::place_layer(Trial& trial, const PlaceAsk& ask, const GroupTasks& tasks,
                               std::size_t layer, Scope scope) {
  const ShapedGroup& group = group_of(ask.job, tasks.group);
  const bool inner = layer > 0;
  auto tree_ask =
      gs::tree_ask(cluster.domains(), inner ? TopologyWish{} : group.topology,
                   {group.slices.begin() + static_cast<std::ptrdiff_t>(layer), group.slices.end()});
  if (!tree_ask) return false;
  if (layer == group.slices.size()) return place_fresh(trial, ask, *tree_ask, tasks, scope);
  const int size = group.slices[layer].size;
  GroupTasks fresh{tasks.group, {}};
  std::vector<GroupTasks> broken;
  for (std::size_t i = 0; i < tasks.ranks.size();) {
    const int pack = tasks.ranks[i] / size;
    GroupTasks of_pack{tasks.group, {}};
    for (; i < tasks.ranks.size() && tasks.ranks[i] / size == pack; ++i)
      of_pack.ranks.push_back(tasks.ranks[i]);
    if (static_cast<int>(of_pack.ranks.size()) == size)
      fresh.ranks.insert(fresh.ranks.end(), of_pack.ranks.begin(), of_pack.ranks.end());
    else
      broken.push_back(std::move(of_pack));
  }
  // Where a level is required for the whole group, whoever is placed binds those after it: whole
  // packs choose before the rests of packs.
  const auto bind = [&] {
    if (inner || group.topology.required_level.empty()) return true;
    const auto required = cluster.domains().level_index(group.topology.required_level);
    return required && survivors_home(ask.job, tasks.group, false, *required, scope);
  };
  if (!fresh.ranks.empty() && !place_fresh(trial, ask, *tree_ask, fresh, scope)) return false;
  for (const GroupTasks& pack : broken) {
    if (!bind()) return false;
    Scope home = scope;
    if (!pack_home(ask.job, pack, size, *cluster.domains().level_index(group.slices[layer].level),
                   home) ||
        !place_layer(trial, ask, pack, layer + 1, home))
      return false;
  }
  return true;
}

// Where the members of a pack that have a place bind the others to.
bool Placer::Impl::pack_home(JobId job, const GroupTasks& pack, int size, int level,
                             Scope& home) const {
  for (const TaskId id : cluster.job(job).tasks) {
    const Task& task = cluster.task(id);
    if (task.group != pack.group || task.rank / size != pack.ranks[0] / size ||
        task.state == TaskState::Releasing)
      continue;
    if (level >= cluster.domains().depth())
      home.node = task.place.node;
    else
      home.domain = cluster.domains().ancestor(cluster.node(task.place.node).domain, level);
  }
  return home.domain.valid();
}

bool Placer::Impl::find(TreeAsk& tree_ask, const PlaceAsk& ask, Scope scope) {
  tree_ask.within = scope.domain;
  tree_ask.within_node = scope.node;
  tree_ask.among = ask.among;
  tree_ask.job = ask.job;
  return tree.find(tree_ask);
}

bool Placer::Impl::place_fresh(Trial& trial, const PlaceAsk& ask, TreeAsk tree_ask,
                               const GroupTasks& tasks, Scope scope) {
  tree_ask.shape = group_of(ask.job, tasks.group).shape;
  tree_ask.count = static_cast<int>(tasks.ranks.size());
  const std::size_t mark = trial.mark();
  for (const View view : {View::Now, View::Future}) {
    if (!may_use(ask.firmness, view)) continue;
    tree_ask.view = view;
    if (!find(tree_ask, ask, scope)) continue;
    const std::vector<Portion> portions = tree.portions();
    cost = tree.cost();
    if (assign(trial, ask, tasks.group, tasks.ranks, portions)) return true;
    trial.rollback(mark);
  }
  return false;
}

// Ranks go to the portions in order, so that packs of consecutive ranks stay together; a rank that
// runs on one of the nodes already keeps it.
bool Placer::Impl::assign(Trial& trial, const PlaceAsk& ask, int group, std::vector<int> ranks,
                          const std::vector<Portion>& portions) {
  std::vector<int> left(portions.size());
  for (std::size_t i = 0; i < portions.size(); ++i) left[i] = portions[i].tasks;
  const bool packs = !group_of(ask.job, group).slices.empty();
  if (cluster.job(ask.job).releasing_tasks > 0 && !packs)
    for (std::size_t i = 0; i < portions.size(); ++i)
      for (auto rank = ranks.begin(); rank != ranks.end() && left[i] > 0;) {
        const bool stays = spare(trial, ask, group, *rank, portions[i].node);
        left[i] -= stays;
        rank = stays ? ranks.erase(rank) : rank + 1;
      }
  std::size_t next = 0;
  for (std::size_t i = 0; i < portions.size(); ++i)
    for (; left[i] > 0; --left[i]) {
      const int rank = ranks[next++];
      if (!settle_soonest(trial, ask, group, rank, portions[i].node)) return false;
    }
  return true;
}

}  // namespace gs
