#include "placement/would_move.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "placement/devices.hpp"
#include "placement/explain_words.hpp"
#include "placement/filters.hpp"

namespace gs {
namespace {

constexpr std::size_t kNamesTold = 3;

// Devices that would do, whoever has them.
GpuMask suitable(const NodeState& node, const Shape& shape) {
  return node.usable() & eligible_gpus(*node.layout, shape);
}

std::int64_t free_count(const NodeState& node, const Shape& shape) {
  return gpu_count(node.free_gpus(View::Now) & suitable(node, shape));
}

// A busy device, who has it, and whether all of them may be asked to leave.
struct BusyGpu {
  int gpu = 0;
  std::vector<TaskId> holders;
  std::tuple<std::string, int, int> first;  // holder, by its name: numbers change with a restart
  bool movable = true;
};

// Those that one task has follow each other, so that as few tasks as possible are counted.
std::vector<BusyGpu> busy_gpus(const Cluster& cluster, const NodeState& node, const Shape& shape) {
  std::vector<BusyGpu> busy;
  for_each_gpu(suitable(node, shape) & ~node.free_gpus(View::Now), [&](int gpu) {
    BusyGpu one{gpu, {}, {}, true};
    for (const TaskId id : node.tasks) {
      const Task& task = cluster.task(id);
      if ((task.place.gpus & gpu_bit(gpu)) == 0) continue;
      const std::tuple name(cluster.job(task.job).id, int{task.group}, task.rank);
      one.first = one.holders.empty() ? name : std::min(one.first, name);
      one.holders.push_back(id);
      one.movable &= cluster.job(task.job).preemptible &&
                     cluster.shape_of(task).request.gpu.pinned_ids.empty();
    }
    if (one.movable && !one.holders.empty()) busy.push_back(std::move(one));
  });
  std::sort(busy.begin(), busy.end(), [](const BusyGpu& a, const BusyGpu& b) {
    return std::tuple(a.holders.size(), a.first, a.gpu) <
           std::tuple(b.holders.size(), b.first, b.gpu);
  });
  return busy;
}

// So many devices of a node have to come free for one more task.
struct Step {
  std::int64_t gpus = 0;
  NodeId node;
};

std::vector<Step> steps_of(const Cluster& cluster, const MoveAsk& ask) {
  std::vector<Step> steps;
  const std::int64_t each = ask.shape->gpus();
  for (std::size_t i = 0; i < cluster.node_count(); ++i) {
    const NodeId id{i};
    const NodeState& node = cluster.node(id);
    if (node.gone || !node.schedulable() || !ask.allowed(id)) continue;
    // Where only some sets will do, only whole nodes are sure to have one.
    if (!any_set_will_do(ask.shape->request.gpu) && gpu_count(suitable(node, *ask.shape)) != each)
      continue;
    const std::int64_t free = free_count(node, *ask.shape);
    const std::int64_t most = std::min<std::int64_t>(
        {ask.at_most(id), gpu_count(suitable(node, *ask.shape)) / each, free / each + ask.tasks});
    for (std::int64_t n = free / each + 1; n <= most; ++n)
      steps.push_back({std::min(each, n * each - free), id});
  }
  std::sort(steps.begin(), steps.end(), [&](const Step& a, const Step& b) {
    if (a.gpus != b.gpus) return a.gpus < b.gpus;
    return cluster.node(a.node).spec.name < cluster.node(b.node).spec.name;
  });
  return steps;
}

// How many other nodes have so many free GPUs.
using FreeNodes = std::array<int, kMaxGpusPerNode + 1>;

FreeNodes free_elsewhere(const Cluster& cluster, const std::set<NodeId>& chosen) {
  FreeNodes nodes{};
  for (std::size_t i = 0; i < cluster.node_count(); ++i) {
    const NodeState& node = cluster.node(NodeId{i});
    if (!node.gone && node.schedulable() && !chosen.contains(NodeId{i}))
      ++nodes[static_cast<std::size_t>(gpu_count(node.free_gpus(View::Now)))];
  }
  return nodes;
}

// Tasks of these sizes, the largest first, each on the node that it fills best.
bool fit_into(FreeNodes nodes, std::vector<std::size_t> sizes) {
  std::sort(sizes.rbegin(), sizes.rend());
  return std::all_of(sizes.begin(), sizes.end(), [&](std::size_t size) {
    std::size_t free = size;
    while (free < nodes.size() && nodes[free] == 0) ++free;
    if (free == nodes.size()) return false;
    --nodes[free];
    ++nodes[free - size];
    return true;
  });
}

}  // namespace

std::optional<WouldMove> would_move(const Cluster& cluster, const MoveAsk& ask) {
  const GpuRequest& gpu = ask.shape->request.gpu;
  if (!ask.shape->exclusive() || gpu.count == 0 || !gpu.pinned_ids.empty()) return std::nullopt;
  std::int64_t missing = ask.tasks;
  for (std::size_t i = 0; i < cluster.node_count() && missing > 0; ++i)
    if (!cluster.node(NodeId{i}).gone && ask.allowed(NodeId{i}))
      missing -= std::min<std::int64_t>(free_count(cluster.node(NodeId{i}), *ask.shape) / gpu.count,
                                        ask.at_most(NodeId{i}));
  if (missing <= 0) return std::nullopt;  // it is not for want of GPUs

  std::map<NodeId, std::int64_t> wanted;  // devices to be freed
  std::map<NodeId, std::vector<BusyGpu>> busy;
  for (const Step& step : steps_of(cluster, ask)) {
    if (missing == 0) break;
    const auto [it, first] = busy.try_emplace(step.node);
    if (first) it->second = busy_gpus(cluster, cluster.node(step.node), *ask.shape);
    std::int64_t& devices = wanted[step.node];
    if (devices + step.gpus > static_cast<std::int64_t>(it->second.size())) continue;
    devices += step.gpus;
    --missing;
  }
  if (missing > 0) return std::nullopt;

  WouldMove moves;
  std::set<TaskId> tasks;
  std::set<NodeId> chosen;
  for (const auto& [node, devices] : wanted) {
    if (devices == 0) continue;
    chosen.insert(node);
    moves.nodes.push_back(cluster.node(node).spec.name);
    for (std::int64_t i = 0; i < devices; ++i)
      for (const TaskId holder : busy[node][static_cast<std::size_t>(i)].holders)
        tasks.insert(holder);
  }
  moves.tasks = static_cast<std::int64_t>(tasks.size());
  std::vector<std::size_t> sizes;
  for (const TaskId id : tasks) {
    const int gpus = gpu_count(cluster.task(id).place.gpus);
    sizes.push_back(static_cast<std::size_t>(gpus));
    moves.gpus += gpus;
  }
  const FreeNodes elsewhere = free_elsewhere(cluster, chosen);
  for (std::size_t free = 0; free < elsewhere.size(); ++free)
    moves.free_elsewhere += static_cast<std::int64_t>(free) * elsewhere[free];
  std::sort(moves.nodes.begin(), moves.nodes.end());
  if (!fit_into(elsewhere, std::move(sizes))) return std::nullopt;
  return moves;
}

std::string move_words(const WouldMove& moves) {
  std::string names;
  for (std::size_t i = 0; i < std::min(moves.nodes.size(), kNamesTold); ++i)
    names.append(names.empty() ? "" : ", ").append(moves.nodes[i]);
  if (moves.nodes.size() > kNamesTold)
    names += " and " + std::to_string(moves.nodes.size() - kNamesTold) + " more";
  return "it would fit if " + count_of(moves.tasks, "running task") + " (" +
         count_of(moves.gpus, "GPU") + ") moved off " +
         count_of(static_cast<std::int64_t>(moves.nodes.size()), "node") + " (" + names +
         "), with " + count_of(moves.free_elsewhere, "GPU") + " free elsewhere";
}

}  // namespace gs
