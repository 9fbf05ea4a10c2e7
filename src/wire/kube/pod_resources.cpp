#include "wire/kube/pod_resources.hpp"

#include <algorithm>
#include <utility>

#include "base/gpu_mask.hpp"
#include "model/mig.hpp"
#include "wire/kube/host_ports.hpp"

namespace gs::kube {
namespace {

Quantity& slot(ResourceList& list, std::string_view name) {
  const auto it =
      std::lower_bound(list.begin(), list.end(), name,
                       [](const NamedQuantity& item, std::string_view n) { return item.name < n; });
  if (it != list.end() && it->name == name) return it->amount;
  return list.insert(it, {std::string(name), Quantity{}})->amount;
}

void add(ResourceList& sum, const ResourceList& more) {
  for (const NamedQuantity& item : more) slot(sum, item.name) += item.amount;
}

void raise(ResourceList& most, const ResourceList& other) {
  for (const NamedQuantity& item : other) {
    Quantity& amount = slot(most, item.name);
    amount = std::max(amount, item.amount);
  }
}

// A limit without a request is the request too.
ResourceList requests_of(const ResourceList& requests, const ResourceList& limits) {
  ResourceList all;
  add(all, requests);
  for (const NamedQuantity& limit : limits)
    if (find(all, limit.name) == nullptr) slot(all, limit.name) = limit.amount;
  return all;
}

// Only these may be asked for by the pod as a whole.
bool is_of_the_pod(std::string_view name) {
  return name == "cpu" || name == "memory" || name.starts_with("hugepages-");
}

Error too_much(const NamedQuantity& item, const std::string& rule) {
  return invalid("the pod's " + item.name + ", all containers together, " + rule);
}

Result<std::int64_t> whole_devices(const NamedQuantity& item) {
  if (item.amount.milli() % 1000 != 0) return too_much(item, "must be a whole number");
  if (item.amount.value() > kMaxGpusPerNode)
    return too_much(item, "must be at most " + std::to_string(kMaxGpusPerNode) + ", got " +
                              std::to_string(item.amount.value()));
  return item.amount.value();
}

Status put(const NamedQuantity& item, PodResources& out) {
  const std::string_view name = item.name;
  const bool mig = name.starts_with(kMigResourcePrefix);
  if (mig || name == kGpuResource) {
    const Result<std::int64_t> count = whole_devices(item);
    if (!count) return count.error();
    if (!mig)
      out.gpus = static_cast<int>(*count);
    else
      out.mig.push_back({canonical_mig_profile(item.name), static_cast<int>(*count)});
    return ok_status();
  }
  const std::int64_t amount = name == "cpu" ? item.amount.milli() : item.amount.value();
  if (!is_amount(amount))
    return too_much(item, "is more than any node has: at most " + std::to_string(kMaxAmount) +
                              (name == "cpu" ? " thousandths" : ""));
  if (name == "cpu")
    out.resources.cpu_milli = amount;
  else if (name == "memory")
    out.resources.memory_bytes = amount;
  else
    out.resources.named.push_back({item.name, amount});
  return ok_status();
}

}  // namespace

ResourceList effective_requests(const Pod& pod) {
  ResourceList running, sidecars, starting;
  for (const Container& container : pod.containers)
    add(running, requests_of(container.requests, container.limits));
  for (const Container& container : pod.init_containers) {
    ResourceList need = requests_of(container.requests, container.limits);
    if (container.sidecar) add(running, need);
    if (container.sidecar) add(sidecars, need);
    if (!container.sidecar) add(need, sidecars);
    raise(starting, container.sidecar ? sidecars : need);
  }
  raise(running, starting);
  for (const NamedQuantity& item : requests_of(pod.pod_requests, pod.pod_limits))
    if (is_of_the_pod(item.name)) slot(running, item.name) = item.amount;
  add(running, pod.overhead);
  return running;
}

Result<PodResources> pod_resources(const Pod& pod) {
  PodResources out;
  for (const NamedQuantity& item : effective_requests(pod)) {
    if (item.amount.is_zero()) continue;
    if (const Status status = put(item, out); !status) return status.error();
  }
  out.resources.named.push_back({"pods", 1});
  for (NamedAmount& port : host_port_amounts(pod.host_ports))
    out.resources.named.push_back(std::move(port));
  return out;
}

}  // namespace gs::kube
