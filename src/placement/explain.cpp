// Why can't it be placed now? One question to the books each: which filters took nodes away, which
// node or domain comes closest, and what it lacks.
#include <algorithm>

#include "placement/explain_words.hpp"
#include "placement/filters.hpp"
#include "placement/fit.hpp"
#include "placement/placer.hpp"
#include "placement/would_move.hpp"

namespace gs {
namespace {

double closeness(const Candidate& c) {
  return c.needs == 0 ? 1.0 : static_cast<double>(c.has) / static_cast<double>(c.needs);
}

std::int64_t refused_total(const std::vector<FilterCount>& filters) {
  std::int64_t total = 0;
  for (const FilterCount& count : filters) total += count.nodes;
  return total;
}

// The filter that took most nodes away, where no node is left.
Constraint main_filter(const std::vector<FilterCount>& filters) {
  const auto most = std::max_element(
      filters.begin(), filters.end(),
      [](const FilterCount& a, const FilterCount& b) { return a.nodes < b.nodes; });
  return most == filters.end() ? Constraint::Capacity : most->filter;
}

// Of nodes that are as close the first by name: what is told must not hang on internal numbers.
bool is_closer(const Candidate& a, const Candidate& b) {
  const auto x = closeness(a), y = closeness(b);
  return x != y ? x > y : a.node < b.node;
}

// "2 free GPUs", "1 free GPU".
std::string amount_words(const Candidate& candidate) {
  std::string of = candidate.of;
  if (candidate.has == 1 && of.starts_with("free "))
    for (const std::string_view many : {"GPUs", "cores", "instances"})
      if (const std::size_t at = of.find(many); at != std::string::npos)
        of.erase(at + many.size() - 1, 1);
  return std::to_string(candidate.has) + " " + of;
}

// What the node lacks that comes nearest to holding one task.
void explain_best(const Lack& lack, Why& why) {
  why.best = lack.candidate;
  why.constraint = lack.constraint;
  why.sentence += "; best node " + lack.candidate.node + " has " + amount_words(lack.candidate);
  if (lack.candidate.has >= lack.candidate.needs) why.sentence += ", but not where they are needed";
}

}  // namespace

// Where the tasks of a group have to lie together, in words; empty: nowhere in particular.
std::string Placer::Impl::together_words(JobId job, const ShapedGroup& group) const {
  if (!group.topology.required_level.empty()) return "in one " + group.topology.required_level;
  const JobShape& shape = cluster.shape_of(job);
  for (int set = group.set; set >= 0; set = shape.sets[static_cast<std::size_t>(set)].parent) {
    const std::string& level = shape.sets[static_cast<std::size_t>(set)].topology.required_level;
    if (!level.empty()) return "in one " + level;
  }
  if (!group.slices.empty())
    return "in packs of " + std::to_string(group.slices.front().size) + " in one " +
           group.slices.front().level;
  const TopologyWish wish = wish_of(job, group);
  return wish.required_level.empty() ? "" : "in one " + wish.required_level;
}

// How many tasks there is room for: now, or if nothing else ran.
std::int64_t Placer::Impl::room_for(ShapeId shape, NodeId node, int at_most, bool empty) {
  return empty ? std::min<std::int64_t>(empty_slots(node, shape), at_most)
               : slots(cluster, cluster.node(node), cluster.shapes().at(shape), View::Now, at_most);
}

void Placer::Impl::explain_group(const PlaceAsk& ask, const GroupTasks& tasks, Why& why) {
  const ShapedGroup& group = group_of(ask.job, tasks.group);
  const Shape& shape = cluster.shapes().at(group.shape);
  const NodeIndex& nodes = index(group.shape, View::Now);
  const auto count = static_cast<std::int64_t>(tasks.ranks.size());
  const bool never = why.verdict == Verdict::Never;
  why.filters = nodes.refusals();
  std::int64_t left = 0;
  std::int64_t room = 0;
  std::optional<Lack> lack;
  for (std::size_t i = 0; i < cluster.node_count(); ++i) {
    const NodeState& node = cluster.node(NodeId{i});
    if (node.gone || nodes.refused(NodeId{i})) continue;
    ++left;
    room += room_for(group.shape, NodeId{i}, static_cast<int>(count), never);
    Lack other = lack_of(cluster, never ? emptied(node) : node, shape);
    if (!lack || is_closer(other.candidate, lack->candidate)) lack = std::move(other);
  }
  const std::string need =
      "needs " + (count == 1 ? "" : std::to_string(count) + " x ") + need_words(shape);
  if (left == 0) {
    why.constraint = why.filters.empty() ? Constraint::Capacity : main_filter(why.filters);
    why.sentence = need + "; " +
                   (why.filters.empty() ? "there are no nodes"
                                        : "no node qualifies: " + filter_words(why.filters, shape));
    return;
  }
  const std::string where = together_words(ask.job, group);
  if (count > 1)
    explain_gang(need, where, {count, room}, why);
  else
    why.sentence = need + lack->need;
  if (count == 1 || room == 0) explain_best(*lack, why);
  if (!never && where.empty()) explain_moves(group, count, why);
  if (!why.filters.empty())
    why.sentence += "; of " + count_of(left + refused_total(why.filters), "node") + " " +
                    filter_words(why.filters, shape);
}

// Nothing moves unless consolidation is on, and then only what is movable.
void Placer::Impl::explain_moves(const ShapedGroup& group, std::int64_t count, Why& why) {
  const NodeIndex& nodes = index(group.shape, View::Now);
  const MoveAsk ask{&cluster.shapes().at(group.shape), count,
                    [&](NodeId node) { return !nodes.refused(node); },
                    [&](NodeId node) { return empty_slots(node, group.shape); }};
  why.moves = would_move(cluster, ask);
  if (!why.moves) return;
  why.sentence += "; " + move_words(*why.moves);
  if (!config.consolidation) why.sentence += " (consolidation is off)";
}

void Placer::Impl::explain_gang(const std::string& need, const std::string& where, GangRoom gang,
                                Why& why) {
  const bool apart = gang.room >= gang.count;  // enough room, but not where it has to be together
  const bool limited = config.max_nodes_per_leaf > 0 || config.max_gpus_per_leaf > 0;
  if (apart)
    why.constraint = limited && where.empty() ? Constraint::LeafLimit : Constraint::Topology;
  why.sentence = need + (where.empty() ? "" : " " + where);
  if (why.constraint == Constraint::LeafLimit)
    why.sentence += " within the limits of one job per leaf";
  why.sentence += "; the cluster has room for " + std::to_string(gang.room) +
                  (why.verdict == Verdict::Never ? " at most" : " now");
  const TreeShortage& shortage = tree.shortage();
  if (!apart || shortage.needs == 0 || (!shortage.where.valid() && !shortage.node.valid())) return;
  const std::string name = shortage.node.valid() ? cluster.node(shortage.node).spec.name
                                                 : cluster.domains().path(shortage.where);
  why.best = Candidate{name, shortage.holds, shortage.needs, "tasks"};
  why.sentence += "; best is " + name + " with room for " + std::to_string(shortage.holds);
}

Why Placer::explain(const PlaceAsk& ask) {
  Why why;
  why.constraint = Constraint::Capacity;
  if (!fits_empty_cluster(ask)) why.verdict = Verdict::Never;
  Trial scratch(impl_->cluster);
  for (const GroupTasks& tasks : ask.tasks) {
    const PlaceAsk one{ask.job, {tasks}, ask.firmness, ask.among, ask.now};
    if (place(scratch, one)) continue;  // this group is not the one that fails
    impl_->explain_group(ask, tasks, why);
    return why;
  }
  why.sentence = "each group fits alone, but not all of them together";
  why.constraint = Constraint::Topology;
  return why;
}

ScoreCard Placer::score_card(ShapeId shape, NodeId node) {
  const Shape& request = impl_->cluster.shapes().at(shape);
  ScoreCard card = impl_->scorer.parts(impl_->cluster.node(node), request, View::Now);
  const DomainId domain = impl_->cluster.node(node).domain;
  if (domain != DomainTree::root()) {
    std::int64_t gpus = 0;
    std::int64_t free = 0;
    for (const NodeId other : impl_->cluster.domains().at(domain).nodes) {
      gpus += impl_->cluster.node(other).layout->count;
      free += gpu_count(impl_->cluster.node(other).free_gpus(View::Future));
    }
    if (gpus > 0)
      card.domain_utilization = impl_->scorer.domain_part(
          request, 1.0 - static_cast<double>(free) / static_cast<double>(gpus));
    card.total += card.domain_utilization;
  }
  return card;
}

}  // namespace gs
