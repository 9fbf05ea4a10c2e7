#include "wire/kube/task_request.hpp"

#include <algorithm>

#include "base/gpu_mask.hpp"
#include "wire/kube/names.hpp"
#include "wire/kube/pod_resources.hpp"
#include "wire/kube/runtime.hpp"

namespace gs::kube {
namespace {

std::string gpus_text(int count) { return std::to_string(count) + (count == 1 ? " GPU" : " GPUs"); }

std::string claim_name(const GpuClaim& claim) { return "GpuClaim '" + claim.meta.name + "'"; }

std::vector<MigAsk> by_profile(std::vector<MigAsk> asks) {
  std::sort(asks.begin(), asks.end(),
            [](const MigAsk& a, const MigAsk& b) { return a.profile < b.profile; });
  return asks;
}

// A claim and limits of the containers must say the same.
Status check_agreement(const GpuClaim& claim, const PodResources& limits) {
  const bool mig = claim.gpu.sharing == Sharing::Mig;
  if (!mig && !limits.mig.empty())
    return invalid("the containers' limits ask for nvidia.com/mig-" + limits.mig[0].profile +
                   " but " + claim_name(claim) +
                   " does not: set its exclusivity to MIG or remove the limit");
  if (mig && limits.gpus > 0)
    return invalid(claim_name(claim) + " asks for MIG instances but the containers' limits for " +
                   gpus_text(limits.gpus) + " (nvidia.com/gpu): remove the limit");
  if (mig && !limits.mig.empty() && limits.mig != by_profile(claim.gpu.mig))
    return invalid(claim_name(claim) +
                   " and the containers' nvidia.com/mig-* limits ask for different instances: make "
                   "them equal or remove the limits");
  if (!mig && limits.gpus > 0 && limits.gpus != claim.count)
    return invalid(claim_name(claim) + " asks for " + gpus_text(claim.count) +
                   " but the containers' nvidia.com/gpu limits for " + std::to_string(limits.gpus) +
                   ": make them equal or remove the limits");
  return ok_status();
}

void add_claim(const GpuClaim& claim, TaskRequest& request) {
  request.gpu = claim.gpu;
  require(claim.nodes, request);
  request.rdma = claim.rdma;
  request.cufile = claim.cufile;
  request.min_network_gbps = claim.min_network_gbps;
}

Status add_pin(const MapEntry& pin, const PodResources& limits, const GpuClaim* claim,
               TaskRequest& request) {
  const int count = static_cast<int>(pin.gpus.size());
  const std::string line = std::string(kMapAnnotation) + " line " + std::to_string(pin.line);
  const auto differ = [&](const std::string& who, int other) {
    return invalid(line + " gives the pod " + gpus_text(count) + " but " + who + " for " +
                   std::to_string(other) + ": make them equal");
  };
  if (claim != nullptr && claim->gpu.sharing != Sharing::Exclusive)
    return invalid(line + " names whole GPUs but " + claim_name(*claim) +
                   " asks for parts of them: use one or the other");
  if (claim != nullptr && claim->count != count)
    return differ(claim_name(*claim) + " asks", claim->count);
  if (!limits.mig.empty())
    return invalid(line + " names whole GPUs but the containers' limits ask for nvidia.com/mig-" +
                   limits.mig[0].profile + ": use one or the other");
  if (limits.gpus > 0 && limits.gpus != count)
    return differ("the containers' nvidia.com/gpu limits ask", limits.gpus);
  if (!request.only_nodes.empty() && std::find(request.only_nodes.begin(), request.only_nodes.end(),
                                               pin.node) == request.only_nodes.end())
    return invalid(line + " names node '" + pin.node + "' but the pod's node affinity excludes it");
  request.only_nodes = {pin.node};
  request.gpu.count = count;
  request.gpu.pinned_ids = pin.gpus;
  return ok_status();
}

// topology.scheduler/gpu-count is the total of all pods; a limit of the containers counts more.
// This pod is there, even if its owner has been told to have none.
Status add_total(const TopologyAsk& ask, const RequestContext& context, TaskReading& reading) {
  if (!ask.gpu_count) return ok_status();
  const Workload* whole = ask.counted_on != nullptr ? ask.counted_on : whole_of(context.owners);
  const int pods = whole != nullptr ? std::max(1, whole->pods.value_or(1)) : 1;
  const int total = *ask.gpu_count;
  GpuRequest& gpu = reading.request.gpu;
  const std::string name = "annotation topology.scheduler/gpu-count";
  if (gpu.sharing == Sharing::Mig) return ok_status();
  if (gpu.count > 0) {
    if (static_cast<std::int64_t>(gpu.count) * pods != total)
      reading.warnings.push_back(name + " says " + std::to_string(total) + " but " +
                                 std::to_string(pods) + " pods with " + gpus_text(gpu.count) +
                                 " each are asked for; the latter counts");
    return ok_status();
  }
  if (total % pods != 0)
    return invalid(name + " is the total of all pods and must divide by their number: " +
                   std::to_string(total) + " GPUs, " + std::to_string(pods) + " pods");
  if (total / pods > kMaxGpusPerNode)
    return invalid(name + ": " + std::to_string(total) + " GPUs for " + std::to_string(pods) +
                   (pods == 1 ? " pod" : " pods") + " is more than a node has (64); raise " +
                   "parallelism, or set limits nvidia.com/gpu for each pod");
  gpu.count = total / pods;
  return ok_status();
}

Status add_topology(const TopologyAsk& ask, const RequestContext& context, TaskReading& reading) {
  TaskRequest& request = reading.request;
  const auto& known = context.known_domains;
  if (!ask.preferred_domain.empty() && !known.empty() &&
      std::find(known.begin(), known.end(), ask.preferred_domain) == known.end()) {
    std::string list;
    for (std::size_t i = 0; i < known.size() && i < 20; ++i)
      list += (i == 0 ? "" : ", ") + known[i];
    if (known.size() > 20) list += ", and " + std::to_string(known.size() - 20) + " more";
    return invalid("annotation topology.scheduler/preferred-domain must be one of " + list +
                   "; got '" + ask.preferred_domain + "'");
  }
  request.preferred_domain = ask.preferred_domain;
  request.min_network_gbps = std::max(request.min_network_gbps, ask.network_gbps);
  request.latency_sensitive = ask.latency_sensitive.value_or(false);
  request.strategy = ask.strategy;
  reading.warnings.insert(reading.warnings.end(), ask.unknown.begin(), ask.unknown.end());
  return add_total(ask, context, reading);
}

Status add_limits(const PodResources& limits, GpuRequest& gpu) {
  if (limits.gpus > 0 && !limits.mig.empty())
    return invalid("the containers' limits ask for nvidia.com/gpu and nvidia.com/mig-" +
                   limits.mig[0].profile + ": a pod gets either whole GPUs or instances");
  gpu.count = limits.gpus;
  gpu.mig = limits.mig;
  if (!limits.mig.empty()) gpu.sharing = Sharing::Mig;
  return ok_status();
}

Status add_devices(const PodResources& limits, const RequestContext& context,
                   TaskRequest& request) {
  if (context.claim != nullptr) {
    if (Status status = check_agreement(*context.claim, limits); !status) return status;
    add_claim(*context.claim, request);
  } else if (Status status = add_limits(limits, request.gpu); !status) {
    return status;
  }
  if (context.pin == nullptr) return ok_status();
  return add_pin(*context.pin, limits, context.claim, request);
}

}  // namespace

Result<TaskReading> task_request(const Pod& pod, const RequestContext& context) {
  TaskReading reading;
  const Result<PodResources> limits = pod_resources(pod);
  if (!limits) return limits.error();
  const Result<TopologyAsk> ask = read_topology_ask(pod.meta, context.owners);
  if (!ask) return ask.error();
  // Of one that runs already it is too late to refuse it.
  if (const auto runtime = expected_runtime(pod, context.owners); !runtime && pod.node_name.empty())
    return runtime.error();
  reading.request.resources = limits->resources;
  add_node_rules(pod, reading.request);
  if (const Status status = add_devices(*limits, context, reading.request); !status)
    return status.error();
  if (const Status status = add_topology(*ask, context, reading); !status) return status.error();
  if (const Status status = validate(reading.request); !status) return status.error();
  return reading;
}

}  // namespace gs::kube
