// Why can't it be placed now? One question to the books each: which filters took nodes away, which
// node or domain comes closest, and what it lacks.
#include <algorithm>

#include "placement/filters.hpp"
#include "placement/fit.hpp"
#include "placement/placer.hpp"

namespace gs {
namespace {

std::string plural(std::int64_t n, const std::string& one) {
  return std::to_string(n) + " " + one + (n == 1 ? "" : "s");
}

std::string name_of(const Shape& shape) {
  const GpuRequest& gpu = shape.request.gpu;
  if (gpu.sharing == Sharing::Mig) {
    std::string text;
    for (const auto& ask : gpu.mig)
      text += (text.empty() ? "" : " + ") + std::to_string(ask.count) + " x MIG " + ask.profile;
    return text;
  }
  if (gpu.count == 0) return std::to_string(shape.request.resources.cpu_milli / 1000) + " cores";
  const std::string model = gpu.models.empty() ? "" : gpu.models.front() + " ";
  if (gpu.sharing == Sharing::Shared)
    return (gpu.milli > 0 ? std::to_string(gpu.milli) + " milli"
                          : std::to_string(gpu.memory_mib) + " MiB") +
           " of " + plural(gpu.count, model + "GPU");
  return plural(gpu.count, model + "GPU");
}

// What the node has of that which the shape needs most: GPUs, else CPU.
Candidate candidate_of(const NodeState& node, const Shape& shape) {
  const GpuRequest& gpu = shape.request.gpu;
  Candidate candidate{node.spec.name, 0, 0, ""};
  if (gpu.sharing == Sharing::Mig) {
    int free = 0;
    for (const auto& state : node.mig)
      for (const auto& instance : state.instances)
        free += instance.profile == shape.mig_profiles.front() && instance.free(View::Now);
    return {node.spec.name, free, gpu.mig.front().count,
            "free " + gpu.mig.front().profile + " instances"};
  }
  const std::int64_t cpu = node.cpu_milli.free(View::Now);
  const std::int64_t memory = node.memory_bytes.free(View::Now);
  const Resources& need = shape.request.resources;
  if (gpu.count > 0) {
    const GpuMask eligible = eligible_gpus(*node.layout, shape) & node.usable();
    GpuMask free = eligible & node.free_gpus(View::Now);
    if (gpu.sharing == Sharing::Shared)
      for_each_gpu(eligible, [&](int i) {
        const GpuPart part = gpu_part(gpu, node.layout->memory_mib[static_cast<std::size_t>(i)]);
        if (node.free_milli(i, View::Now) >= part.milli &&
            node.free_memory_mib(i, View::Now) >= part.memory_mib)
          free |= gpu_bit(i);
      });
    candidate = {node.spec.name, gpu_count(free), gpu.count, "free GPUs"};
    if (candidate.has < candidate.needs) return candidate;
    if (gpu.topology == TopologyMode::Required || gpu.policy == DevicePolicy::Contiguous) {
      int best = 0;
      for (int island = 0; island < node.layout->islands; ++island)
        best = std::max(best, gpu_count(free & node.layout->of_island(island)));
      const bool adjacent = gpu.policy == DevicePolicy::Contiguous;
      if (choose_whole(*node.layout, free, gpu) == 0)
        return {node.spec.name, best, gpu.count,
                adjacent ? "free GPUs with adjacent ids"
                : gpu.min_bandwidth_gbps > 0
                    ? "free GPUs linked by " + std::to_string(gpu.min_bandwidth_gbps) + " GB/s"
                    : "free GPUs in one island"};
    }
  }
  if (cpu < need.cpu_milli)
    return {node.spec.name, cpu / 1000, (need.cpu_milli + 999) / 1000, "free cores"};
  if (memory < need.memory_bytes)
    return {node.spec.name, memory / kMiB, need.memory_bytes / kMiB, "MiB of free memory"};
  for (const auto& [id, amount] : shape.named) {
    const std::int64_t has = id < node.named.size() ? node.named[id].free(View::Now) : 0;
    if (has < amount) return {node.spec.name, has, amount, "free of a further resource"};
  }
  return candidate;
}

double closeness(const Candidate& c) {
  return c.needs == 0 ? 1.0 : static_cast<double>(c.has) / static_cast<double>(c.needs);
}

const char* filter_words(Constraint filter) {
  switch (filter) {
    case Constraint::GpuModel:
      return "have another GPU model";
    case Constraint::GpuMemory:
      return "have GPUs with too little memory";
    case Constraint::Devices:
      return "have too few GPUs";
    case Constraint::Mig:
      return "have no MIG GPUs";
    case Constraint::Taint:
      return "have a taint that is not tolerated";
    case Constraint::Selector:
      return "don't match the selector";
    case Constraint::Affinity:
      return "don't match the node affinity";
    case Constraint::Fabric:
      return "lack RDMA or GPUDirect Storage";
    case Constraint::Network:
      return "have too little network bandwidth";
    case Constraint::NodeName:
      return "are not among the nodes named";
    case Constraint::NodeNotReady:
      return "are not ready or cordoned";
    default:
      return "are ruled out";
  }
}

std::string filter_text(const std::vector<FilterCount>& filters) {
  std::string text;
  for (const FilterCount& count : filters)
    text +=
        (text.empty() ? "" : ", ") + std::to_string(count.nodes) + " " + filter_words(count.filter);
  return text;
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

}  // namespace

Why Placer::explain(const PlaceAsk& ask) {
  Why why;
  why.constraint = Constraint::Capacity;
  if (!fits_empty_cluster(ask)) why.verdict = Verdict::Never;
  const std::size_t nodes = impl_->cluster.node_count();
  Trial scratch(impl_->cluster);
  for (const GroupTasks& tasks : ask.tasks) {
    const PlaceAsk one{ask.job, {tasks}, ask.firmness, ask.among, ask.now};
    if (place(scratch, one)) continue;  // this group is not the one that fails
    const ShapedGroup& group = impl_->group_of(ask.job, tasks.group);
    const Shape& shape = impl_->cluster.shapes().at(group.shape);
    const NodeIndex& index = impl_->index(group.shape, View::Now);
    why.filters = index.refusals();
    std::int64_t left = 0;
    std::int64_t room = 0;
    for (std::size_t i = 0; i < nodes; ++i) {
      const NodeState& node = impl_->cluster.node(NodeId{i});
      if (node.gone || index.refused(NodeId{i})) continue;
      ++left;
      room += slots(impl_->cluster, node, shape, View::Now, static_cast<int>(tasks.ranks.size()));
      const Candidate candidate = candidate_of(node, shape);
      if (!why.best || closeness(candidate) > closeness(*why.best)) why.best = candidate;
    }
    const auto count = static_cast<std::int64_t>(tasks.ranks.size());
    std::string need = count == 1 ? "needs " + name_of(shape)
                                  : "needs " + std::to_string(count) + " x " + name_of(shape);
    if (left == 0) {
      why.constraint = why.filters.empty() ? Constraint::Capacity : main_filter(why.filters);
      why.sentence = need + "; " +
                     (why.filters.empty() ? "there are no nodes"
                                          : "no node qualifies: " + filter_text(why.filters));
      return why;
    }
    if (count > 1 || !is_empty(group.topology)) {
      const bool apart = room >= count;  // enough room, but not where it has to be together
      if (apart) why.constraint = Constraint::Topology;
      const std::string level =
          !group.topology.required_level.empty() ? group.topology.required_level : std::string{};
      std::string where = apart && !level.empty() ? " in one " + level : "";
      if (apart && level.empty()) where = " together";
      why.sentence = need + where + "; the cluster has room for " + std::to_string(room) + " now";
      const TreeShortage& shortage = impl_->tree.shortage();
      if (apart && shortage.needs > 0 && (shortage.where.valid() || shortage.node.valid())) {
        const std::string name = shortage.node.valid()
                                     ? impl_->cluster.node(shortage.node).spec.name
                                     : impl_->cluster.domains().path(shortage.where);
        why.best = Candidate{name, shortage.holds, shortage.needs, "tasks"};
        why.sentence += "; best is " + name + " with room for " + std::to_string(shortage.holds);
      }
    } else {
      why.sentence = need;
      if (why.best) {
        const bool bandwidth = why.best->of.find("linked") != std::string::npos ||
                               why.best->of.find("island") != std::string::npos;
        if (bandwidth)
          why.constraint = Constraint::Bandwidth, why.sentence += why.best->of.substr(9);
        why.sentence += "; best node " + why.best->node + " has " + std::to_string(why.best->has) +
                        " " + why.best->of;
        if (why.best->has >= why.best->needs) why.sentence += " but not together with the rest";
      }
    }
    if (!why.filters.empty())
      why.sentence += "; of " + plural(left + refused_total(why.filters), "node") + " " +
                      filter_text(why.filters);
    return why;
  }
  // Each group fits alone; together they don't.
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
