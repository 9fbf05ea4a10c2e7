#include "sim/rules.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "model/mig.hpp"

namespace gs {

Use use_of(const MirrorTask& task) {
  const auto group = static_cast<std::size_t>(task.rank.first);
  return {&task.job->spec.id, &task.job->spec.groups[group].request, &task.place};
}

std::vector<Use> uses_on(const MirrorNode& node) {
  std::vector<Use> uses;
  for (const MirrorTask* task : node.tasks) uses.push_back(use_of(*task));
  return uses;
}

namespace {

// Only of what somebody asks for: a report may leave a node with less than what runs on it.
std::optional<std::string> overused_amounts(const Node& node, const std::vector<Use>& uses,
                                            const Resources& asked) {
  Resources sum;
  std::map<std::string, std::int64_t> named;
  for (const Use& use : uses) {
    sum.cpu_milli += use.request->resources.cpu_milli;
    sum.memory_bytes += use.request->resources.memory_bytes;
    for (const auto& [name, amount] : use.request->resources.named) named[name] += amount;
  }
  if (asked.cpu_milli > 0 && sum.cpu_milli > node.capacity.cpu_milli)
    return fmt::format("{} of {} cpu_milli", sum.cpu_milli, node.capacity.cpu_milli);
  if (asked.memory_bytes > 0 && sum.memory_bytes > node.capacity.memory_bytes)
    return fmt::format("{} of {} memory_bytes", sum.memory_bytes, node.capacity.memory_bytes);
  for (const auto& [name, amount] : node.capacity.named) named[name] -= amount;
  for (const auto& [name, amount] : asked.named)
    if (amount > 0 && named[name] > 0) return fmt::format("{} {} too many", named[name], name);
  return std::nullopt;
}

std::optional<std::string> overused_gpu(const Gpu& gpu, const std::vector<Use>& uses) {
  std::int64_t milli = 0;
  std::int64_t memory = 0;
  int whole = 0;
  std::set<std::string> pinned_by;
  int users = 0;
  for (const Use& use : uses) {
    const auto& gpus = use.place->gpus;
    if (std::find(gpus.begin(), gpus.end(), gpu.index) == gpus.end()) continue;
    const GpuRequest& ask = use.request->gpu;
    if (!ask.pinned_ids.empty()) {
      pinned_by.insert(ask.pin_group.empty() ? "job " + *use.job : "group " + ask.pin_group);
      continue;
    }
    ++users;
    whole += ask.sharing == Sharing::Exclusive ? 1 : 0;
    const auto [part_milli, part_memory] = part_of(ask, gpu.memory_mib);
    milli += part_milli;
    memory += part_memory;
  }
  const std::string of = fmt::format("gpu {}: ", gpu.index);
  if (pinned_by.size() + static_cast<std::size_t>(users > 0) > 1)
    return of + "pinned by " + *pinned_by.begin() + " and used by others";
  if (whole > 1 || (whole == 1 && users > 1))
    return of + fmt::format("{} tasks, one has it whole", users);
  if (milli > kWholeGpu) return of + fmt::format("{} of 1000 milli", milli);
  if (memory > gpu.memory_mib) return of + fmt::format("{} of {} MiB", memory, gpu.memory_mib);
  return std::nullopt;
}

std::optional<std::string> overused_mig(const Gpu& gpu, const std::vector<Use>& uses) {
  std::uint8_t taken = 0;
  std::map<std::string, int> anywhere;  // instances at an unknown slot, by profile
  for (const Use& use : uses)
    for (const MigPlace& place : use.place->mig) {
      if (place.gpu != gpu.index) continue;
      if (place.start < 0) {
        ++anywhere[place.profile];
        continue;
      }
      const MigProfile* profile = find_mig_profile(gpu.model, gpu.memory_mib, place.profile);
      const std::uint8_t slots = mig_slots(place.start, profile == nullptr ? 1 : profile->size);
      if ((taken & slots) != 0)
        return fmt::format("gpu {}: {}@{} overlaps another instance", gpu.index, place.profile,
                           place.start);
      taken |= slots;
    }
  for (const auto& [name, count] : anywhere) {
    const auto there = std::count_if(gpu.mig.begin(), gpu.mig.end(), [&](const MigInstance& i) {
      return canonical_mig_profile(i.profile) == name;
    });
    if (count > there) return fmt::format("gpu {}: {} of {} {}", gpu.index, count, there, name);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> overuse(const Node& node, const std::vector<Use>& uses,
                                   const Resources& asked) {
  if (auto too_much = overused_amounts(node, uses, asked)) return too_much;
  for (const Gpu& gpu : node.gpus) {
    if (auto too_much = overused_gpu(gpu, uses)) return too_much;
    if (gpu.mig_enabled)
      if (auto too_much = overused_mig(gpu, uses)) return too_much;
  }
  return std::nullopt;
}

// ---------------------------------------------------------------- what a request rules out

std::optional<std::string> closed(const Node& node, const TaskRequest& request) {
  if (!node.ready) return "the node is not ready";
  if (node.cordoned) return "the node is cordoned";
  const auto& only = request.only_nodes;
  if (!only.empty() && std::find(only.begin(), only.end(), node.name) == only.end())
    return "it asks for another node";
  for (const auto& [key, value] : request.selector) {
    const std::string* label = find_label(node.labels, key);
    if (label == nullptr || *label != value) return "the node lacks the label " + key;
  }
  for (const Taint& taint : node.taints)
    if (taint.effect != TaintEffect::PreferNoSchedule && !tolerates(request.tolerations, taint))
      return "it does not tolerate the taint " + taint.key;
  if (!request.affinity.empty() &&
      std::none_of(request.affinity.begin(), request.affinity.end(),
                   [&](const LabelTerms& terms) { return matches(terms, node.labels); }))
    return "the node is outside its affinity";
  if (request.rdma == Wish::Required && node.fabric.rdma_ports == 0) return "no RDMA";
  if (request.cufile == Wish::Required && !node.fabric.cufile) return "no cuFile";
  if (node.fabric.rdma_ports * node.fabric.rdma_gbps < request.min_network_gbps)
    return "too little network bandwidth";
  return std::nullopt;
}

namespace {

bool is_right_device(const Gpu& gpu, const GpuRequest& ask) {
  if (!ask.models.empty() &&
      std::find(ask.models.begin(), ask.models.end(), gpu.model) == ask.models.end())
    return false;
  return gpu.memory_mib >= ask.min_memory_mib && gpu.memory_mib >= ask.memory_mib;
}

std::optional<std::string> bad_device(const MirrorNode& node, const GpuRequest& ask, int index) {
  if (index < 0 || index >= static_cast<int>(node.spec.gpus.size())) return "no such GPU";
  const Gpu& gpu = node.spec.gpus[static_cast<std::size_t>(index)];
  if (gpu.health != Health::Healthy) return "it is not healthy";
  if (node.hot[static_cast<std::size_t>(index)]) return "it is too hot";
  if (!is_right_device(gpu, ask)) return "it is of another model or too small";
  if (gpu.mig_enabled != (ask.sharing == Sharing::Mig)) return "MIG is the other way";
  return std::nullopt;
}

int link(const Node& node, int a, int b) {
  const auto i = static_cast<std::size_t>(a);
  const auto j = static_cast<std::size_t>(b);
  if (!node.peer_bandwidth_gbps.empty())
    return std::min(node.peer_bandwidth_gbps[i * node.gpus.size() + j],
                    node.peer_bandwidth_gbps[j * node.gpus.size() + i]);
  return node.gpus[i].island == node.gpus[j].island
             ? std::min(node.gpus[i].bandwidth_gbps, node.gpus[j].bandwidth_gbps)
             : 0;  // at most PCIe; generated demands are above it
}

std::optional<std::string> badly_connected(const Node& node, const GpuRequest& ask,
                                           const std::vector<int>& gpus) {
  if (ask.topology != TopologyMode::Required) return std::nullopt;
  for (const int a : gpus)
    for (const int b : gpus) {
      if (a >= b) continue;
      const std::string& island = node.gpus[static_cast<std::size_t>(a)].island;
      const bool one_island =
          !island.empty() && island == node.gpus[static_cast<std::size_t>(b)].island;
      if (ask.min_bandwidth_gbps > 0 ? link(node, a, b) < ask.min_bandwidth_gbps : !one_island)
        return fmt::format("GPUs {} and {} are not connected as required", a, b);
    }
  return std::nullopt;
}

std::optional<std::string> bad_instances(const Node& node, const GpuRequest& ask,
                                         const std::vector<MigPlace>& places) {
  std::map<std::string, int> wanted;
  for (const MigAsk& a : ask.mig) wanted[a.profile] += a.count;
  for (const MigPlace& place : places) {
    --wanted[place.profile];
    const Gpu& gpu = node.gpus[static_cast<std::size_t>(place.gpu)];
    const MigProfile* profile = find_mig_profile(gpu.model, gpu.memory_mib, place.profile);
    if (place.create && !gpu.mig_dynamic) return "an instance is cut where nothing may be cut";
    if (place.start < 0) continue;
    if (profile == nullptr || (profile->starts >> place.start & 1) == 0)
      return fmt::format("{} may not start at slot {}", place.profile, place.start);
  }
  for (const auto& [profile, missing] : wanted)
    if (missing != 0) return fmt::format("{} {} missing", missing, profile);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> forbidden(const MirrorNode& node, const TaskRequest& request,
                                     const TaskPlace& place) {
  if (auto why = closed(node.spec, request)) return why;
  const GpuRequest& ask = request.gpu;
  for (const int gpu : place.gpus)
    if (auto why = bad_device(node, ask, gpu)) return fmt::format("gpu {}: {}", gpu, *why);
  for (const MigPlace& m : place.mig)
    if (auto why = bad_device(node, ask, m.gpu)) return fmt::format("gpu {}: {}", m.gpu, *why);
  const std::set<int> distinct(place.gpus.begin(), place.gpus.end());
  if (distinct.size() != place.gpus.size()) return "it has a GPU twice";
  if (ask.sharing == Sharing::Mig) return bad_instances(node.spec, ask, place.mig);
  if (static_cast<int>(distinct.size()) != ask.count)
    return fmt::format("it has {} GPUs, and asks for {}", distinct.size(), ask.count);
  if (!ask.pinned_ids.empty() &&
      distinct != std::set<int>(ask.pinned_ids.begin(), ask.pinned_ids.end()))
    return "it is pinned to other GPUs";
  if (ask.policy == DevicePolicy::Contiguous && !distinct.empty() &&
      *distinct.rbegin() - *distinct.begin() + 1 != static_cast<int>(distinct.size()))
    return "its GPUs are not contiguous";
  return badly_connected(node.spec, ask, place.gpus);
}

// ---------------------------------------------------------------- counting

bool is_countable(const TaskRequest& request) {
  const GpuRequest& gpu = request.gpu;
  if (!gpu.pinned_ids.empty() || gpu.sharing == Sharing::Mig) return false;
  if (gpu.sharing == Sharing::Shared) return gpu.count == 1;
  return gpu.policy != DevicePolicy::Contiguous && gpu.topology != TopologyMode::Required;
}

namespace {

int gpu_slots(const MirrorNode& node, const GpuRequest& ask, const std::vector<Use>& uses) {
  int free = 0;
  int parts = 0;
  for (const Gpu& gpu : node.spec.gpus) {
    if (bad_device(node, ask, gpu.index)) continue;
    std::int64_t milli = kWholeGpu;
    std::int64_t memory = gpu.memory_mib;
    bool taken = false;
    for (const Use& use : uses) {
      const auto& gpus = use.place->gpus;
      if (std::find(gpus.begin(), gpus.end(), gpu.index) == gpus.end()) continue;
      const auto part = part_of(use.request->gpu, gpu.memory_mib);
      taken = true;
      milli -= use.request->gpu.pinned_ids.empty() ? part.first : kWholeGpu;
      memory -= part.second;
    }
    free += taken ? 0 : 1;
    const auto part = part_of(ask, gpu.memory_mib);
    if (part.first > 0 && milli > 0)
      parts += static_cast<int>(
          std::min(milli / part.first, part.second > 0 ? memory / part.second : milli));
  }
  return ask.sharing == Sharing::Shared ? parts : free / std::max(1, ask.count);
}

std::int64_t bounded(std::int64_t room, std::int64_t capacity, std::int64_t used,
                     std::int64_t need) {
  return need <= 0 ? room : std::min(room, std::max<std::int64_t>(0, capacity - used) / need);
}

}  // namespace

int slots(const MirrorNode& node, const TaskRequest& request, const std::vector<Use>& uses) {
  if (closed(node.spec, request)) return 0;
  std::int64_t room = request.gpu.count > 0 ? gpu_slots(node, request.gpu, uses) : 1000;
  std::int64_t cpu = 0;
  std::int64_t memory = 0;
  std::map<std::string, std::int64_t> used;
  for (const Use& use : uses) {
    cpu += use.request->resources.cpu_milli;
    memory += use.request->resources.memory_bytes;
    for (const auto& [name, amount] : use.request->resources.named) used[name] += amount;
  }
  room = bounded(room, node.spec.capacity.cpu_milli, cpu, request.resources.cpu_milli);
  room = bounded(room, node.spec.capacity.memory_bytes, memory, request.resources.memory_bytes);
  for (const auto& [name, need] : request.resources.named) {
    std::int64_t capacity = 0;
    for (const auto& there : node.spec.capacity.named)
      if (there.name == name) capacity = there.amount;
    room = bounded(room, capacity, used[name], need);
  }
  return static_cast<int>(room);
}

bool is_countable(const Mirror& mirror, const Job& job) {
  if (job.groups.size() != 1 || job.sets.size() != 1) return false;
  const Group& group = job.groups[0];
  const Config& config = mirror.config();
  if (config.max_nodes_per_leaf > 0 || config.max_gpus_per_leaf > 0) return false;
  if (!job.sets[0].topology.required_level.empty() || group.slices.size() > 1) return false;
  if (!group.slices.empty() && group.min_count() != group.count) return false;
  return !group.request.latency_sensitive && is_countable(group.request);
}

bool fits(const Mirror& mirror, const Job& job, bool empty_cluster) {
  const Group& group = job.groups[0];
  const int required = group.topology.required_level.empty()
                           ? -1
                           : mirror.level_index(group.topology.required_level);
  if (!group.topology.required_level.empty() && required < 0) return false;
  const bool sliced = !group.slices.empty();
  const int slice_level = sliced ? mirror.level_index(group.slices[0].level) : -1;
  if (sliced && slice_level < 0) return false;
  // Tasks by domain of the slices, under the domain that must hold them all.
  std::map<std::string, std::map<std::string, int>> room;
  for (const auto& [name, node] : mirror.nodes()) {
    const int here = slots(node, group.request, empty_cluster ? std::vector<Use>{} : uses_on(node));
    const std::string all = required < 0 ? "all" : mirror.domain_of(node, required);
    const std::string part = sliced ? mirror.domain_of(node, slice_level) : "one";
    if (!all.empty() && !part.empty()) room[all][part] += here;
  }
  const int size = sliced ? group.slices[0].size : 1;
  return std::any_of(room.begin(), room.end(), [&](const auto& domain) {
    int tasks = 0;
    for (const auto& [name, count] : domain.second) tasks += count / size * size;
    return tasks >= std::max(1, group.min_count());
  });
}

}  // namespace gs
