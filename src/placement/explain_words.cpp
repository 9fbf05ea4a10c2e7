#include "placement/explain_words.hpp"

#include <algorithm>

#include "placement/devices.hpp"
#include "placement/filters.hpp"
#include "placement/mig.hpp"

namespace gs {
namespace {

std::string join(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::string cores(std::int64_t milli) {
  return milli % 1000 == 0 ? count_of(milli / 1000, "core")
                           : std::to_string(milli) + " milli-cores";
}

std::string gib(std::int64_t mib) {
  return mib % 1024 == 0 ? std::to_string(mib / 1024) + " GiB" : std::to_string(mib) + " MiB";
}

// GPUs on which a task of this shape could have its part now.
GpuMask free_for(const NodeState& node, const Shape& shape) {
  const GpuRequest& gpu = shape.request.gpu;
  const GpuMask eligible = eligible_gpus(*node.layout, shape) & node.usable();
  if (gpu.sharing != Sharing::Shared) return eligible & node.free_gpus(View::Now);
  GpuMask free = 0;
  for_each_gpu(eligible, [&](int i) {
    const GpuPart part = gpu_part(gpu, node.layout->memory_mib[static_cast<std::size_t>(i)]);
    if (node.free_milli(i, View::Now) >= part.milli &&
        node.free_memory_mib(i, View::Now) >= part.memory_mib)
      free |= gpu_bit(i);
  });
  return free;
}

int longest_run(GpuMask mask) {
  int run = 0;
  for (; mask != 0; mask &= mask << 1) ++run;
  return run;
}

int largest_island(const Layout& layout, GpuMask free) {
  int most = 0;
  for (int island = 0; island < layout.islands; ++island)
    most = std::max(most, gpu_count(free & layout.of_island(island)));
  return most;
}

Lack mig_lack(const NodeState& node, const Shape& shape) {
  const GpuRequest& gpu = shape.request.gpu;
  int free = 0;
  for (const auto& state : node.mig)
    for (const auto& instance : state.instances)
      free += instance.profile == shape.mig_profiles.front() && instance.free(View::Now);
  return {{node.spec.name, free, gpu.mig.front().count,
           "free " + gpu.mig.front().profile + " instances"},
          Constraint::Mig,
          ""};
}

Lack pinned_lack(const NodeState& node, const GpuRequest& gpu, GpuMask free) {
  int have = 0;
  std::vector<std::string> taken;
  for (const int id : gpu.pinned_ids) {
    const bool is_free = (free & gpu_bit(id)) != 0;
    have += is_free ? 1 : 0;
    if (!is_free) taken.push_back(std::to_string(id));
  }
  return {{node.spec.name, have, gpu.count, "of the pinned GPUs free"},
          Constraint::Devices,
          " (pinned; taken or not usable: " + join(taken, ", ") + ")"};
}

// The GPUs are there, but no set of them is connected or numbered as it has to be.
std::optional<Lack> set_lack(const NodeState& node, const GpuRequest& gpu, GpuMask free) {
  const bool adjacent = gpu.policy == DevicePolicy::Contiguous;
  if (!adjacent && gpu.topology != TopologyMode::Required) return std::nullopt;
  if (choose_whole(*node.layout, free, gpu) != 0) return std::nullopt;
  if (adjacent && longest_run(free) < gpu.count)
    return Lack{{node.spec.name, longest_run(free), gpu.count, "free GPUs with adjacent ids"},
                Constraint::Devices,
                " with adjacent ids"};
  const std::string linked = gpu.min_bandwidth_gbps > 0
                                 ? " linked by " + std::to_string(gpu.min_bandwidth_gbps) + " GB/s"
                                 : " in one island";
  return Lack{{node.spec.name, largest_island(*node.layout, free), gpu.count, "free GPUs" + linked},
              Constraint::Bandwidth,
              linked};
}

std::optional<Lack> resource_lack(const Cluster& cluster, const NodeState& node,
                                  const Shape& shape) {
  const Resources& need = shape.request.resources;
  const std::int64_t cpu = node.cpu_milli.free(View::Now);
  const std::int64_t memory = node.memory_bytes.free(View::Now);
  if (cpu < need.cpu_milli)
    return Lack{{node.spec.name, cpu / 1000, (need.cpu_milli + 999) / 1000, "free cores"},
                Constraint::Capacity,
                shape.gpus() == 0 ? "" : " and " + cores(need.cpu_milli)};
  if (memory < need.memory_bytes)
    return Lack{{node.spec.name, memory / kMiB, need.memory_bytes / kMiB, "MiB of free memory"},
                Constraint::Capacity,
                " and " + gib(need.memory_bytes / kMiB) + " of memory"};
  for (const auto& [id, amount] : shape.named) {
    const std::int64_t has = id < node.named.size() ? node.named[id].free(View::Now) : 0;
    const std::string& name = cluster.shapes().resources().name(id);
    if (has < amount)
      return Lack{{node.spec.name, has, amount, name + " free"},
                  Constraint::Capacity,
                  " and " + std::to_string(amount) + " " + name};
  }
  return std::nullopt;
}

std::string labels_text(const Labels& labels) {
  std::string text;
  for (const auto& [key, value] : labels) text += (text.empty() ? "" : ",") + key + "=" + value;
  return text;
}

std::string term_text(const LabelTerm& term) {
  const auto values = [&] { return "(" + join(term.values, ",") + ")"; };
  switch (term.op) {
    case LabelOp::In:
      return term.values.size() == 1 ? term.key + "=" + term.values[0]
                                     : term.key + " in " + values();
    case LabelOp::NotIn:
      return term.key + " not in " + values();
    case LabelOp::Exists:
      return term.key;
    case LabelOp::NotExists:
      return "no " + term.key;
    case LabelOp::Gt:
      return term.key + ">" + join(term.values, "");
    case LabelOp::Lt:
      return term.key + "<" + join(term.values, "");
  }
  return term.key;
}

std::string affinity_text(const std::vector<LabelTerms>& any_of) {
  std::vector<std::string> ways;
  for (const LabelTerms& all_of : any_of) {
    std::vector<std::string> terms;
    for (const LabelTerm& term : all_of) terms.push_back(term_text(term));
    ways.push_back(join(terms, ", "));
  }
  constexpr std::size_t kLongest = 200;  // lists of hundreds of nodes help nobody
  const std::string text = join(ways, " or ");
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

std::string filter_word(Constraint filter, bool one, const TaskRequest& r) {
  const std::string have = one ? "has " : "have ";
  const std::string are = one ? "is " : "are ";
  const std::string do_not = one ? "doesn't " : "don't ";
  switch (filter) {
    case Constraint::GpuModel:
      return have + "no " + join(r.gpu.models, " or ") + " GPU";
    case Constraint::GpuMemory:
      return have + "no GPU with " + gib(std::max(r.gpu.min_memory_mib, r.gpu.memory_mib));
    case Constraint::Devices:
      return r.gpu.pinned_ids.empty() ? have + "fewer than " + count_of(r.gpu.count, "such GPU")
                                      : have + "no such GPU";
    case Constraint::Mig:
      return "can't have such a MIG instance";
    case Constraint::Taint:
      return have + "a taint that is not tolerated";
    case Constraint::Selector:
      return do_not + "match the selector " + labels_text(r.selector);
    case Constraint::Affinity:
      return do_not + "match the node affinity " + affinity_text(r.affinity);
    case Constraint::Fabric:
      return (one ? "lacks " : "lack ") + std::string("RDMA or GPUDirect Storage");
    case Constraint::Network:
      return have + "less than " + std::to_string(r.min_network_gbps) + " Gbit/s";
    case Constraint::NodeName:
      return are + "not " + join(r.only_nodes, " or ");
    case Constraint::NodeNotReady:
      return are + "not ready or cordoned";
    default:
      return are + "ruled out";
  }
}

}  // namespace

std::string count_of(std::int64_t n, const std::string& one) {
  return std::to_string(n) + " " + one + (n == 1 ? "" : "s");
}

std::string need_words(const Shape& shape) {
  const GpuRequest& gpu = shape.request.gpu;
  if (gpu.sharing == Sharing::Mig) {
    std::vector<std::string> parts;
    for (const auto& ask : gpu.mig)
      parts.push_back(std::to_string(ask.count) + " x MIG " + ask.profile);
    return join(parts, " + ");
  }
  if (gpu.count == 0) return cores(shape.request.resources.cpu_milli);
  const std::string model = gpu.models.empty() ? "" : join(gpu.models, "/") + " ";
  if (gpu.sharing == Sharing::Shared)
    return (gpu.milli > 0 ? std::to_string(gpu.milli) + " milli" : gib(gpu.memory_mib)) + " of " +
           count_of(gpu.count, model + "GPU");
  return count_of(gpu.count, model + "GPU");
}

Lack lack_of(const Cluster& cluster, const NodeState& node, const Shape& shape) {
  const GpuRequest& gpu = shape.request.gpu;
  Lack gpus{{node.spec.name, 0, 0, ""}, Constraint::Capacity, ""};
  if (gpu.sharing == Sharing::Mig) {
    if (!choose_mig(node, shape, View::Now)) return mig_lack(node, shape);
  } else if (gpu.count > 0) {
    const GpuMask free = free_for(node, shape);
    if (!gpu.pinned_ids.empty()) return pinned_lack(node, gpu, free);
    gpus.candidate = {node.spec.name, gpu_count(free), gpu.count, "free GPUs"};
    if (gpus.candidate.has < gpus.candidate.needs) return gpus;
    if (auto set = set_lack(node, gpu, free)) return *set;
  }
  if (auto resource = resource_lack(cluster, node, shape)) return *resource;
  return gpus;
}

std::string filter_words(const std::vector<FilterCount>& filters, const Shape& shape) {
  std::vector<std::string> parts;
  for (const FilterCount& count : filters)
    parts.push_back(std::to_string(count.nodes) + " " +
                    filter_word(count.filter, count.nodes == 1, shape.request));
  return join(parts, ", ");
}

}  // namespace gs
