#include "model/node.hpp"

#include <algorithm>

#include "base/gpu_mask.hpp"

namespace gs {

const std::string* find_label(const Labels& labels, const std::string& key) {
  const auto it =
      std::lower_bound(labels.begin(), labels.end(), key,
                       [](const auto& label, const std::string& k) { return label.first < k; });
  return it != labels.end() && it->first == key ? &it->second : nullptr;
}

void set_label(Labels& labels, std::string key, std::string value) {
  const auto it =
      std::lower_bound(labels.begin(), labels.end(), key,
                       [](const auto& label, const std::string& k) { return label.first < k; });
  if (it != labels.end() && it->first == key)
    it->second = std::move(value);
  else
    labels.emplace(it, std::move(key), std::move(value));
}

namespace {

Status validate_gpus(const Node& node) {
  const auto of = [&](std::size_t i) {
    return "node " + node.name + ": gpus[" + std::to_string(i) + "]";
  };
  if (node.gpus.size() > kMaxGpusPerNode)
    return invalid("node " + node.name + ": at most " + std::to_string(kMaxGpusPerNode) +
                   " GPUs, got " + std::to_string(node.gpus.size()));
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    const Gpu& gpu = node.gpus[i];
    if (gpu.index != static_cast<int>(i))
      return invalid(of(i) + ".index must be " + std::to_string(i) + ", got " +
                     std::to_string(gpu.index));
    if (!is_amount(gpu.memory_mib)) return invalid(of(i) + ".memory_mib" + kMustBeAmount);
    if (gpu.bandwidth_gbps < 0) return invalid(of(i) + ".bandwidth_gbps must not be negative");
    for (const auto& instance : gpu.mig)
      if (instance.start < -1 || instance.start > 7)
        return invalid(of(i) + ".mig start must be -1..7");
  }
  const std::size_t pairs = node.gpus.size() * node.gpus.size();
  if (!node.peer_bandwidth_gbps.empty() && node.peer_bandwidth_gbps.size() != pairs)
    return invalid("node " + node.name + ": peer_bandwidth_gbps must have " +
                   std::to_string(pairs) + " entries");
  return ok_status();
}

}  // namespace

Status validate(const Node& node) {
  if (node.name.empty()) return invalid("node: name must not be empty");
  if (node.name.size() > 253) return invalid("node: name must have at most 253 characters");
  if (!is_amount(node.capacity.cpu_milli))
    return invalid("node " + node.name + ": cpu_milli" + kMustBeAmount);
  if (!is_amount(node.capacity.memory_bytes))
    return invalid("node " + node.name + ": memory_bytes" + kMustBeAmount);
  for (const auto& [name, amount] : node.capacity.named)
    if (name.empty() || !is_amount(amount))
      return invalid("node " + node.name + ": resource '" + name + "' needs a name and" +
                     kMustBeAmount);
  if (!std::is_sorted(node.labels.begin(), node.labels.end()))
    return invalid("node " + node.name + ": labels must be sorted by key");
  return validate_gpus(node);
}

}  // namespace gs
