#include "placement/place.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/check.hpp"
#include "placement/devices.hpp"
#include "placement/filters.hpp"
#include "placement/fit.hpp"
#include "placement/node_index.hpp"
#include "placement/scorers.hpp"

namespace gs {

struct Placer::Impl {
  Impl(Cluster& c, const Config& cfg) : cluster(c), config(cfg), scorer(c, cfg) {}

  NodeIndex& index(ShapeId shape, View view);
  bool place_set(Trial& trial, const PlaceAsk& ask, int set, const std::vector<int>& entries,
                 DomainId within);
  bool place_members(Trial& trial, const PlaceAsk& ask, int set, const std::vector<int>& entries,
                     DomainId within);
  bool place_group(Trial& trial, const PlaceAsk& ask, const GroupTasks& tasks, DomainId within);
  bool place_task(Trial& trial, const PlaceAsk& ask, int group, int rank, DomainId within);
  bool place_in_view(Trial& trial, const PlaceAsk& ask, int group, int rank, DomainId within,
                     View view);
  bool settle(Trial& trial, const PlaceAsk& ask, int group, int rank, NodeId node, View view);
  bool spare(Trial& trial, const PlaceAsk& ask, int group, int rank, NodeId node);

  Cluster& cluster;
  const Config& config;
  Scorer scorer;
  DeviceChooser devices;
  NodeOrder order;
  std::unordered_map<std::uint64_t, std::unique_ptr<NodeIndex>> indexes;
};

Placer::Placer(Cluster& cluster, const Config& config)
    : impl_(std::make_unique<Impl>(cluster, config)) {}
Placer::~Placer() = default;

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

bool Placer::place(Trial& trial, const PlaceAsk& ask) {
  const std::size_t mark = trial.mark();
  std::vector<int> entries(ask.tasks.size());
  for (std::size_t i = 0; i < entries.size(); ++i) entries[i] = static_cast<int>(i);
  if (impl_->place_set(trial, ask, 0, entries, DomainTree::root())) return true;
  trial.rollback(mark);
  return false;
}

bool Placer::Impl::place_set(Trial& trial, const PlaceAsk& ask, int set,
                             const std::vector<int>& entries, DomainId within) {
  return place_members(trial, ask, set, entries, within);
}

// The set below `set` that a group hangs in (directly or further down); -1 if it is in `set`
// itself.
static int child_set(const JobShape& shape, int group, int set) {
  int below = shape.groups[static_cast<std::size_t>(group)].set;
  if (below == set) return -1;
  while (shape.sets[static_cast<std::size_t>(below)].parent != set)
    below = shape.sets[static_cast<std::size_t>(below)].parent;
  return below;
}

bool Placer::Impl::place_members(Trial& trial, const PlaceAsk& ask, int set,
                                 const std::vector<int>& entries, DomainId within) {
  const JobShape& shape = cluster.shape_of(ask.job);
  std::vector<bool> done(entries.size(), false);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (done[i]) continue;
    const GroupTasks& tasks = ask.tasks[static_cast<std::size_t>(entries[i])];
    const int below = child_set(shape, tasks.group, set);
    if (below < 0) {
      if (!place_group(trial, ask, tasks, within)) return false;
      continue;
    }
    std::vector<int> together;
    for (std::size_t j = i; j < entries.size(); ++j) {
      if (child_set(shape, ask.tasks[static_cast<std::size_t>(entries[j])].group, set) != below)
        continue;
      together.push_back(entries[j]);
      done[j] = true;
    }
    if (!place_set(trial, ask, below, together, within)) return false;
  }
  return true;
}

bool Placer::Impl::place_group(Trial& trial, const PlaceAsk& ask, const GroupTasks& tasks,
                               DomainId within) {
  return std::all_of(tasks.ranks.begin(), tasks.ranks.end(),
                     [&](int rank) { return place_task(trial, ask, tasks.group, rank, within); });
}

bool Placer::Impl::place_task(Trial& trial, const PlaceAsk& ask, int group, int rank,
                              DomainId within) {
  if (ask.firmness != Firmness::Nominate &&
      place_in_view(trial, ask, group, rank, within, View::Now))
    return true;
  return ask.firmness != Firmness::StartNow &&
         place_in_view(trial, ask, group, rank, within, View::Future);
}

bool Placer::Impl::place_in_view(Trial& trial, const PlaceAsk& ask, int group, int rank,
                                 DomainId within, View view) {
  const ShapeId shape = cluster.shape_of(ask.job).groups[static_cast<std::size_t>(group)].shape;
  const NodeIndex& nodes = index(shape, view);
  const NodeId best =
      ask.among != nullptr ? nodes.best_among(within, *ask.among) : nodes.best(within);
  if (!best.valid()) return false;
  if (settle(trial, ask, group, rank, best, view)) return true;
  // The counts promised room that the devices don't give (pins of another job, parts of several
  // GPUs).
  for (const NodeId node : nodes.ranked(within, ask.among))
    if (settle(trial, ask, group, rank, node, view)) return true;
  return false;
}

bool Placer::Impl::settle(Trial& trial, const PlaceAsk& ask, int group, int rank, NodeId node,
                          View view) {
  if (cluster.job(ask.job).releasing_tasks > 0 && spare(trial, ask, group, rank, node)) return true;
  const Shape& shape =
      cluster.shapes().at(cluster.shape_of(ask.job).groups[static_cast<std::size_t>(group)].shape);
  const auto place = devices.choose(cluster, node, shape, view, ask.job);
  if (!place) return false;
  trial.place(ask.job, group, rank, *place,
              view == View::Now ? TaskState::Running : TaskState::Nominated, ask.now);
  return true;
}

// A task that was evicted in this trial and comes back to its own node runs on. If somebody has
// been nominated for its whole GPUs meanwhile, that one takes others of the same node.
bool Placer::Impl::spare(Trial& trial, const PlaceAsk& ask, int group, int rank, NodeId node) {
  TaskId evicted;
  for (const TaskId id : cluster.job(ask.job).tasks) {
    const Task& t = cluster.task(id);
    if (t.group == group && t.rank == rank && t.state == TaskState::Releasing &&
        t.place.node == node)
      evicted = id;
  }
  if (!evicted.valid()) return false;
  const auto& changes = trial.changes();
  const bool in_this_trial =
      std::any_of(changes.rbegin(), changes.rend(), [&](const Trial::Change& change) {
        return change.kind == Trial::Kind::Released && change.task == evicted;
      });
  if (!in_this_trial) return false;
  const Shape& shape = cluster.shape_of(cluster.task(evicted));
  const GpuMask own = cluster.task(evicted).place.gpus;
  if (!shape.exclusive() || (own & ~cluster.node(node).free_gpus(View::Future)) == 0) {
    const NodeState& books = cluster.node(node);
    bool free = true;
    if (!shape.exclusive())
      for_each_gpu(own, [&](int gpu) {
        const GpuPart part =
            gpu_part(shape.request.gpu, books.layout->memory_mib[static_cast<std::size_t>(gpu)]);
        free &= books.free_milli(gpu, View::Future) >= part.milli &&
                books.free_memory_mib(gpu, View::Future) >= part.memory_mib;
      });
    if (!free) return false;
    trial.spare(evicted);
    return true;
  }
  const std::size_t mark = trial.mark();
  std::vector<Task> moved;
  for (const TaskId id : std::vector<TaskId>(cluster.node(node).tasks)) {
    const Task t = cluster.task(id);
    if (t.state != TaskState::Nominated || (t.place.gpus & own) == 0 ||
        !cluster.shape_of(t).exclusive())
      continue;
    trial.drop(id);
    moved.push_back(t);
  }
  if ((own & ~cluster.node(node).free_gpus(View::Future)) == 0) {
    trial.spare(evicted);
    const bool all = std::all_of(moved.begin(), moved.end(), [&](const Task& t) {
      const auto place = devices.choose(cluster, node, cluster.shape_of(t), View::Future, t.job);
      if (place) trial.place(t.job, t.group, t.rank, *place, TaskState::Nominated, ask.now);
      return place.has_value();
    });
    if (all) return true;
  }
  trial.rollback(mark);
  return false;
}

}  // namespace gs
