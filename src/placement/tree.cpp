#include "placement/tree.hpp"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "base/check.hpp"
#include "placement/filters.hpp"
#include "placement/fit.hpp"
#include "placement/never.hpp"
#include "placement/plain_fit.hpp"

namespace gs {
namespace {

// Bounds the sums over all nodes; no node runs more tasks than this.
constexpr int kMostPerNode = 8192;
// Live kinds of tasks are hundreds; past this, start over rather than keep dead ones.
constexpr std::size_t kMaxIndexes = 512;

Result<std::vector<SliceLayer>> slice_layers(const DomainTree& domains,
                                             const std::vector<Slice>& slices) {
  std::vector<SliceLayer> layers;
  for (const Slice& slice : slices) {
    const auto level = domains.level_index(slice.level);
    if (!level) return invalid(fmt::format("slices: no level \"{}\" here", slice.level));
    if (slice.size < 1) return invalid("slices: size must be at least 1");
    if (!layers.empty() && *level <= layers.back().row)
      return invalid(
          fmt::format("slices: \"{}\" does not lie inside the level before it", slice.level));
    if (!layers.empty() && layers.back().size % slice.size != 0)
      return invalid(fmt::format("slices: {} does not divide {}", slice.size, layers.back().size));
    layers.push_back({*level, slice.size});
  }
  return layers;
}

Result<int> level_of(const DomainTree& domains, const std::string& name) {
  if (name.empty()) return -1;
  if (const auto level = domains.level_index(name)) return *level;
  return invalid(fmt::format("topology: no level \"{}\" here", name));
}

}  // namespace

Result<TreeAsk> tree_ask(const DomainTree& domains, const TopologyWish& wish,
                         const std::vector<Slice>& slices) {
  const Result<int> required = level_of(domains, wish.required_level);
  const Result<int> preferred = level_of(domains, wish.preferred_level);
  Result<std::vector<SliceLayer>> layers = slice_layers(domains, slices);
  if (!required) return required.error();
  if (!preferred) return preferred.error();
  if (!layers) return layers.error();
  TreeAsk ask;
  ask.slices = std::move(*layers);
  ask.level = std::max(*required, *preferred);
  if (*preferred > *required) {
    ask.reach = Reach::Preferred;
    ask.limit = *required;
  } else if (*required >= 0) {
    ask.reach = Reach::Required;
  } else {
    ask.level = ask.slices.empty() ? domains.depth() : 0;
  }
  // What lies together further in than packs have to, keeps the packs together by itself.
  std::erase_if(ask.slices, [&](const SliceLayer& layer) { return layer.row < *required; });
  // A search goes outwards from the row of the packs: a wish for less is only a wish.
  if (!ask.slices.empty()) ask.level = std::min(ask.level, ask.slices.front().row);
  return ask;
}

// The counts for one kind of task, and how far it has read the change log.
struct Tree::Index {
  ShapeId shape, leader;
  View view;
  TreeCounts counts;
  std::uint64_t cursor = 0;
  bool built = false;
  // What about each node does not change with what runs there, and for which spec it was found.
  struct Fixed {
    std::uint32_t stamp = 0;
    bool known = false, refused = false, leader_refused = false;
    int score = 0;
  };
  std::vector<Fixed> fixed;
  HarmScale scale;
  std::uint64_t scale_version = 0;  // Cluster::spec_version() that it holds for
};

Tree::Tree(const Cluster& cluster, const Config& config) : cluster_(cluster), config_(config) {}
Tree::~Tree() = default;

void Tree::refresh_layout() {
  if (layout_version_ == cluster_.structure_version()) return;
  indexes_.clear();
  narrowed_.reset();
  layout_ = TreeLayout(cluster_);
  layout_version_ = cluster_.structure_version();
}

std::optional<Spot> Tree::spot_of(const TreeAsk& ask) const {
  if (ask.within_node.valid()) return Spot{layout_.leaf_row(), layout_.leaf(ask.within_node)};
  if (!ask.within.valid() || ask.within == DomainTree::root()) return std::nullopt;
  return layout_.spot(ask.within);
}

// Slices of a level further out than the domain asked for hold there by themselves.
std::vector<SliceLayer> Tree::layers(const TreeAsk& ask) const {
  std::vector<SliceLayer> layers = ask.slices;
  if (const auto spot = spot_of(ask))
    std::erase_if(layers, [&](const SliceLayer& layer) { return layer.row < spot->row; });
  if (layers.empty()) layers.push_back({layout_.leaf_row(), 1});
  return layers;
}

Tree::Index& Tree::index(const TreeAsk& ask) {
  const std::vector<SliceLayer> slices = layers(ask);
  Key key{ask.shape.v, ask.view, ask.leader.v, {}};
  for (const SliceLayer& layer : slices) std::get<3>(key).emplace_back(layer.row, layer.size);
  auto it = indexes_.find(key);
  if (it == indexes_.end()) {
    if (indexes_.size() >= kMaxIndexes) indexes_.clear();
    auto made = std::make_unique<Index>(Index{ask.shape,
                                              ask.leader,
                                              ask.view,
                                              TreeCounts(layout_, slices, ask.leader.valid()),
                                              0,
                                              false,
                                              {},
                                              {},
                                              0});
    made->fixed.resize(layout_.width(layout_.leaf_row()));
    it = indexes_.emplace(std::move(key), std::move(made)).first;
  }
  sync(*it->second);
  return *it->second;
}

void Tree::sync(Index& index) {
  const std::uint64_t end = cluster_.log_end();
  const std::uint32_t leaves = layout_.width(layout_.leaf_row());
  if (!index.built || index.cursor < cluster_.log_begin() || end - index.cursor > leaves) {
    for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) recount(index, leaf);
    index.built = true;
    index.cursor = end;
  }
  for (; index.cursor < end; ++index.cursor) {
    const std::uint32_t leaf = layout_.leaf(cluster_.logged(index.cursor));
    if (leaf != TreeLayout::kNone) recount(index, leaf);
  }
  index.counts.settle();
}

void Tree::recount(Index& index, std::uint32_t leaf) {
  const NodeId id = layout_.node(leaf);
  const NodeState& node = cluster_.node(id);
  const Shape& shape = cluster_.shapes().at(index.shape);
  Index::Fixed& fixed = index.fixed[leaf];
  if (!fixed.known || fixed.stamp != node.spec_stamp) {
    fixed.known = true;
    fixed.stamp = node.spec_stamp;
    fixed.refused = refusal(node, shape) != Constraint::None;
    fixed.score = fixed.refused ? 0 : affinity_score(node, shape);
    fixed.leader_refused = !index.leader.valid() ||
                           refusal(node, cluster_.shapes().at(index.leader)) != Constraint::None;
  }
  LeafCount count;
  if (!fixed.refused) count.tasks = slots(cluster_, node, shape, index.view, kMostPerNode);
  count.beside = count.tasks;
  count.score = fixed.score;
  if (!fixed.leader_refused) seat_leader(count, node, id, index);
  index.counts.set(leaf, count);
}

namespace {

// All that slots() reads and charge() writes; the spec, which is long, only for MIG geometries.
void copy_books(NodeState& to, const NodeState& from) {
  to.layout = from.layout;
  to.cpu_milli = from.cpu_milli;
  to.memory_bytes = from.memory_bytes;
  to.named = from.named;
  to.gpus = from.gpus;
  to.mig = from.mig;
  to.healthy = from.healthy, to.hot = from.hot, to.warm = from.warm, to.whole = from.whole;
  to.busy_now = from.busy_now, to.busy_future = from.busy_future, to.partly = from.partly;
  if (!from.mig.empty()) to.spec.gpus = from.spec.gpus;
}

}  // namespace

// What is left for the workers once the leader has its devices.
void Tree::seat_leader(LeafCount& count, const NodeState& node, NodeId id, const Index& index) {
  const Shape& leader = cluster_.shapes().at(index.leader);
  if (slots(cluster_, node, leader, index.view, 1) == 0) return;
  const auto place = devices_.choose(node, id, leader, index.view, {});
  if (!place) return;
  count.leader = true;
  if (count.tasks == 0) return;
  copy_books(scratch_, node);
  // An instance that would have to be cut first: count none beside it rather than too many.
  const bool cuts = std::any_of(place->mig.begin(), place->mig.end(),
                                [](const MigPick& pick) { return pick.create; });
  if (cuts) {
    count.beside = 0;
    return;
  }
  scratch_.charge(leader, *place, {}, TaskState::Running, +1);
  count.beside =
      slots(cluster_, scratch_, cluster_.shapes().at(index.shape), index.view, count.tasks);
}

const TreeCounts& Tree::counts(const TreeAsk& ask) {
  const Index& all = index(ask);
  const bool capped = config_.max_nodes_per_leaf > 0 || config_.max_gpus_per_leaf > 0;
  if (ask.among == nullptr && !(capped && layout_.leaf_row() > 0)) return all.counts;
  const int row = layout_.leaf_row();
  std::vector<LeafCount> leaves(layout_.width(row));
  for (std::uint32_t i = 0; i < leaves.size(); ++i) {
    if (ask.among != nullptr && !(*ask.among)[layout_.node(i).index()]) continue;
    leaves[i] = {all.counts.tasks(row, i), all.counts.tasks_beside(row, i),
                 all.counts.leader(row, i), all.counts.score(row, i)};
  }
  if (capped && row > 0) cap_domains(ask, leaves);
  narrowed_.emplace(layout_, layers(ask), ask.leader.valid());
  for (std::uint32_t i = 0; i < leaves.size(); ++i) narrowed_->set(i, leaves[i]);
  narrowed_->settle();
  return *narrowed_;
}

// At most so many nodes, and GPUs, of one innermost domain for one job: the roomiest nodes stay in,
// the rest counts as full. What the job holds there already counts.
void Tree::cap_domains(const TreeAsk& ask, std::vector<LeafCount>& leaves) const {
  std::unordered_map<std::uint32_t, int> held;  // GPUs by leaf
  if (ask.job.valid())
    for (const TaskId id : cluster_.job(ask.job).tasks) {
      const Task& task = cluster_.task(id);
      if (task.state == TaskState::Releasing) continue;
      held[layout_.leaf(task.place.node)] += cluster_.shape_of(task).gpus();
    }
  const int gpus = cluster_.shapes().at(ask.shape).gpus();
  const int row = layout_.leaf_row() - 1;
  for (std::uint32_t d = 0; d < layout_.places(row).end; ++d) {
    const SpotRange range = layout_.children(row, d);
    std::vector<std::uint32_t> order;
    std::int64_t free_nodes =
        config_.max_nodes_per_leaf > 0 ? config_.max_nodes_per_leaf : range.size();
    std::int64_t free_gpus = config_.max_gpus_per_leaf;
    if (ask.leader.valid()) free_gpus -= cluster_.shapes().at(ask.leader).gpus();
    for (std::uint32_t i = range.begin; i < range.end; ++i) {
      order.push_back(i);
      if (const auto it = held.find(i); it != held.end()) --free_nodes, free_gpus -= it->second;
    }
    std::int64_t tasks = config_.max_gpus_per_leaf > 0 && gpus > 0
                             ? std::max<std::int64_t>(0, free_gpus) / gpus
                             : std::int64_t{kMostPerNode} * range.size();
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const auto key = [&](std::uint32_t i) {
        return std::tuple(held.count(i) == 0, -leaves[i].tasks, i);
      };
      return key(a) < key(b);
    });
    for (const std::uint32_t i : order) {
      const bool usable = held.count(i) > 0 || free_nodes-- > 0;
      if (!usable) {
        leaves[i] = {};
        continue;
      }
      leaves[i].tasks = static_cast<std::int32_t>(std::min<std::int64_t>(leaves[i].tasks, tasks));
      leaves[i].beside = std::min(leaves[i].beside, leaves[i].tasks);
      tasks -= leaves[i].tasks;
    }
  }
}

// A domain whose nodes have all gone keeps its number, but has no spot.
bool Tree::has_nodes(DomainId domain) const {
  return !domain.valid() || domain == DomainTree::root() || cluster_.domains().at(domain).listed;
}

bool Tree::find(const TreeAsk& ask) {
  refresh_layout();
  if (!has_nodes(ask.within)) {
    portions_.clear();
    shortage_ = {};
    return false;
  }
  const std::string& preferred = cluster_.shapes().at(ask.shape).request.preferred_domain;
  if (!preferred.empty() && !ask.within_node.valid()) {
    const DomainTree& domains = cluster_.domains();
    for (const DomainId domain : domains.named(preferred)) {
      if (ask.within.valid() && !domains.contains(ask.within, domain)) continue;
      TreeAsk there = ask;
      there.within = domain;
      if (search(there)) return true;
    }
  }
  return search(ask);
}

namespace {

// Whether the empty nodes hold as much of anything.
bool alike(const NodeState& a, const NodeState& b) {
  const auto same = [](const Ledger& x, const Ledger& y) { return x.capacity == y.capacity; };
  return a.layout == b.layout && a.mig.empty() && b.mig.empty() && same(a.cpu_milli, b.cpu_milli) &&
         same(a.memory_bytes, b.memory_bytes) &&
         std::equal(a.named.begin(), a.named.end(), b.named.begin(), b.named.end(), same);
}

}  // namespace

const HarmScale& Tree::scale(Index& index) {
  const Shape& shape = cluster_.shapes().at(index.shape);
  const std::int64_t gpus = std::max(1, shape.gpus());
  index.scale.largest_gang = (cluster_.largest_gang() + gpus - 1) / gpus;
  if (index.scale_version == cluster_.spec_version()) return index.scale;
  index.scale_version = cluster_.spec_version();
  std::vector<std::int32_t> sums(layout_.width(layout_.leaf_row()), 0);
  const NodeState* last = nullptr;
  std::int32_t room = 0;
  for (std::uint32_t leaf = 0; leaf < sums.size(); ++leaf) {
    if (index.fixed[leaf].refused) continue;
    const NodeState& node = cluster_.node(layout_.node(leaf));
    if (last == nullptr || !alike(*last, node))
      room = slots(cluster_, emptied(node), shape, View::Now, kMostPerNode);
    last = &node;
    sums[leaf] = room;
  }
  index.scale.capacity.assign(static_cast<std::size_t>(layout_.rows()), 0);
  for (int row = layout_.leaf_row();; --row) {
    const SpotRange places = layout_.places(row);
    for (std::uint32_t i = places.begin; i < places.end; ++i) {
      auto& most = index.scale.capacity[static_cast<std::size_t>(row)];
      most = std::max(most, sums[i]);
    }
    if (row == 0) return index.scale;
    std::vector<std::int32_t> outer(layout_.width(row - 1), 0);
    for (std::uint32_t i = 0; i < sums.size(); ++i) outer[layout_.parent(row, i)] += sums[i];
    sums = std::move(outer);
  }
}

double Tree::cost_of(const TreeAsk& ask, const std::vector<Portion>& portions) {
  refresh_layout();
  Index& all = index(ask);
  std::vector<SearchPart> parts;
  for (const Portion& portion : portions)
    parts.push_back({layout_.leaf(portion.node), portion.tasks, false});
  return least_harm_.cost_of(all.counts, scale(all), parts);
}

// A gang that wishes nothing. False: it does not fit, or the rule does not apply.
bool Tree::search_freely(const TreeAsk& ask) {
  const TreeCounts& room = counts(ask);
  if (room.with_leader() || room.scored() || !ask.slices.empty()) return false;
  if (config_.gang_layout == GangLayout::BestFit) {
    std::vector<SearchPart> parts;
    if (!plain_best_fit(room, ask.count, spot_of(ask), parts)) return false;
    for (const SearchPart& part : parts)
      portions_.push_back({layout_.node(part.leaf), part.tasks, false});
    return true;
  }
  if (!least_harm_.find(room, scale(index(ask)), ask.count, spot_of(ask))) return false;
  cost_ = least_harm_.cost();
  for (const SearchPart& part : least_harm_.parts())
    portions_.push_back({layout_.node(part.leaf), part.tasks, false});
  return true;
}

bool Tree::search(const TreeAsk& ask) {
  portions_.clear();
  cost_.reset();
  if (ask.free_choice && search_freely(ask)) return true;
  const TreeCounts& room = counts(ask);
  SearchAsk what{ask.count, ask.reach, ask.level, spot_of(ask), ask.limit};
  if (search_.find(room, what)) {
    for (const SearchPart& part : search_.parts())
      portions_.push_back({layout_.node(part.leaf), part.tasks, part.leader});
    return true;
  }
  const SearchShortage& shortage = search_.shortage();
  shortage_ = {{}, {}, shortage.tasks, ask.count, shortage.leader_fits};
  if (shortage.where && shortage.where->row < layout_.leaf_row())
    shortage_.where = layout_.domain(*shortage.where);
  else if (shortage.where)
    shortage_.node = layout_.node(shortage.where->index);
  return false;
}

std::vector<Tree::Candidate> Tree::candidates(const std::vector<TreeAsk>& groups, int level,
                                              DomainId within) {
  refresh_layout();
  if (!has_nodes(within)) return {};
  const bool bounded = within.valid() && within != DomainTree::root();
  const SpotRange range =
      bounded ? layout_.below(layout_.spot(within), level) : layout_.places(level);
  std::vector<std::pair<std::int64_t, std::uint32_t>> found;  // room, index
  for (std::uint32_t i = range.begin; i < range.end; ++i) found.emplace_back(0, i);
  for (TreeAsk ask : groups) {
    ask.within = {};
    std::erase_if(ask.slices, [&](const SliceLayer& layer) { return layer.row < level; });
    const TreeCounts& room = counts(ask);
    const std::int64_t size = room.slice_layers().front().size;
    std::erase_if(found, [&](auto& candidate) {
      const std::int64_t holds = room.slices_beside(level, candidate.second) * size;
      candidate.first += holds;
      return holds < ask.count || (ask.leader.valid() && !room.leader(level, candidate.second));
    });
  }
  std::sort(found.begin(), found.end());
  std::vector<Candidate> places;
  for (const auto& [room, index] : found) {
    if (level == layout_.leaf_row())
      places.push_back({{}, layout_.node(index)});
    else
      places.push_back({layout_.domain({level, index}), {}});
  }
  return places;
}

}  // namespace gs
