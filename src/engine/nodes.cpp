// Nodes and devices: appear, change, break, disappear.
#include <algorithm>

#include "engine/state.hpp"
#include "placement/policies/policy.hpp"

namespace gs {
namespace {

// Near the threshold cooler GPUs are preferred.
constexpr int kWarmBelowThresholdC = 10;

std::vector<TaskId> sorted_tasks(const Cluster& cluster, NodeId node) {
  std::vector<TaskId> tasks = cluster.node(node).tasks;
  std::sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) {
    const Task& x = cluster.task(a);
    const Task& y = cluster.task(b);
    return std::tuple(cluster.job(x.job).seq, x.group, x.rank, x.state) <
           std::tuple(cluster.job(y.job).seq, y.group, y.rank, y.state);
  });
  return tasks;
}

bool uses_gpu(const Task& task, int gpu) {
  return (task.place.gpus & gpu_bit(gpu)) != 0 ||
         std::any_of(task.place.mig.begin(), task.place.mig.end(),
                     [&](const MigPick& p) { return p.gpu == gpu; });
}

}  // namespace

Status Engine::Impl::apply(const SetConfig& command) {
  if (Status s = validate(command.config); !s) return s;
  for (const std::string& name : command.config.phases) {
    const auto& known = phases();
    if (std::none_of(known.begin(), known.end(),
                     [&](const Phase& phase) { return name == phase.name; }))
      return invalid("config: phases: there is no phase '" + name + "'");
  }
  if (find_node_policy(command.config.node_policy) == nullptr)
    return invalid("config: node_policy: there is no policy '" + command.config.node_policy + "'");
  config = command.config;
  placer.reconfigured();
  // What counts as hot may be another thing now.
  for (std::size_t n = 0; n < cluster.node_count(); ++n) {
    const NodeState& node = cluster.node(NodeId{n});
    for (int gpu = 0; !node.gone && gpu < static_cast<int>(node.spec.gpus.size()); ++gpu) {
      const Gpu& spec = node.spec.gpus[static_cast<std::size_t>(gpu)];
      report(NodeId{n}, gpu, spec.health, spec.temperature_c);
    }
  }
  return ok_status();
}

Status Engine::Impl::apply(const SetTopology& command) {
  for (std::size_t i = 0; i < command.levels.size(); ++i) {
    if (command.levels[i].empty()) return invalid("topology: level names must not be empty");
    if (std::count(command.levels.begin(), command.levels.end(), command.levels[i]) > 1)
      return invalid("topology: level '" + command.levels[i] + "' is named twice");
  }
  cluster.set_topology(command.levels);
  return ok_status();
}

bool Engine::Impl::too_hot(const NodeState& node, int gpu, int temperature_c) const {
  if (!config.thermal_aware) return false;
  if (temperature_c >= config.thermal_threshold_c) return true;
  const bool was_hot = (node.hot & gpu_bit(gpu)) != 0;
  return was_hot && temperature_c > config.thermal_threshold_c - config.thermal_hysteresis_c;
}

Status Engine::Impl::apply(const PutNode& command) {
  const Node& node = command.node;
  if (Status s = validate(node); !s) return s;
  if (!node.domain.empty() && node.domain.size() != cluster.domains().levels().size())
    return invalid("node " + node.name + ": domain has " + std::to_string(node.domain.size()) +
                   " names, the topology has " + std::to_string(cluster.domains().levels().size()) +
                   " levels");
  // Devices that are gone or exchanged take what ran on them along.
  for (const TaskId task : cluster.displaced_by(node)) lose_task(task, std::nullopt);
  const NodeId id = cluster.put_node(node);
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    report(id, static_cast<int>(i), node.gpus[i].health, node.gpus[i].temperature_c);
    if (node.gpus[i].health == Health::Unhealthy) lose_users(id, static_cast<int>(i));
  }
  return ok_status();
}

void Engine::Impl::report(NodeId id, int gpu, Health health, int temperature_c) {
  const bool hot = too_hot(cluster.node(id), gpu, temperature_c);
  const bool warm = config.thermal_aware && !hot && temperature_c > 0 &&
                    temperature_c >= config.thermal_threshold_c - kWarmBelowThresholdC;
  cluster.set_gpu(id, gpu, health, {temperature_c, hot, warm});
}

void Engine::Impl::lose_users(NodeId id, int gpu) {
  for (const TaskId task : sorted_tasks(cluster, id))
    if (uses_gpu(cluster.task(task), gpu)) lose_task(task, StopReason::Unhealthy);
}

Status Engine::Impl::apply(const RemoveNode& command) {
  const NodeId id = cluster.find_node(command.name);
  if (!id.valid() || cluster.node(id).gone)
    return not_found("node " + command.name + " does not exist");
  for (const TaskId task : sorted_tasks(cluster, id)) lose_task(task, std::nullopt);
  cluster.set_performance(id, cluster.node(id).performance * 0.8);
  cluster.remove_node(id);
  return ok_status();
}

Status Engine::Impl::apply(const CordonNode& command) {
  const NodeId id = cluster.find_node(command.name);
  if (!id.valid() || cluster.node(id).gone)
    return not_found("node " + command.name + " does not exist");
  cluster.set_cordoned(id, command.cordoned);
  if (command.cordoned && command.drain)
    for (const TaskId task : sorted_tasks(cluster, id)) lose_task(task, StopReason::Drained);
  return ok_status();
}

Status Engine::Impl::apply(const ReportGpu& command) {
  const NodeId id = cluster.find_node(command.node);
  if (!id.valid() || cluster.node(id).gone)
    return not_found("node " + command.node + " does not exist");
  const NodeState& node = cluster.node(id);
  if (command.gpu < 0 || command.gpu >= static_cast<int>(node.spec.gpus.size()))
    return not_found("node " + command.node + " has no GPU " + std::to_string(command.gpu));
  report(id, command.gpu, command.health, command.temperature_c);
  // Unknown keeps what runs and takes nothing new; Unhealthy ends it.
  if (command.health == Health::Unhealthy) lose_users(id, command.gpu);
  return ok_status();
}

}  // namespace gs
