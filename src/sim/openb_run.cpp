#include "sim/openb_run.hpp"

#include <cmath>

#include <fmt/format.h>

#include "base/check.hpp"
#include "engine/engine.hpp"
#include "placement/policies/fragmentation.hpp"

namespace gs::openb {
namespace {

constexpr const char* kTenant = "openb";

double round2(double value) { return std::strtod(fmt::format("{:.2f}", value).c_str(), nullptr); }

// Names sort as the nodes are preferred: that is how the engine breaks ties.
Node node_value(const TraceNode& from, std::size_t rank) {
  Node node;
  node.name = fmt::format("{:05}-{}", rank, from.name);
  node.capacity = {from.cpu_milli, from.memory_mib * kMiB, {}};
  for (int i = 0; i < from.gpus; ++i) {
    Gpu gpu;
    gpu.index = i;
    gpu.uuid = fmt::format("{}-{}", from.name, i);
    gpu.model = from.model;
    node.gpus.push_back(gpu);
  }
  return node;
}

Job job_value(const Pod& pod, std::string id) {
  Job job;
  job.id = std::move(id);
  job.tenant = kTenant;
  Group group;
  TaskRequest& request = group.request;
  request.resources = {pod.cpu_milli, pod.memory_mib * kMiB, {}};
  request.gpu.count = pod.gpus;
  request.gpu.models = pod.models;
  if (pod.gpus > 0 && pod.milli < kWholeGpu) {
    request.gpu.sharing = Sharing::Shared;
    request.gpu.milli = pod.milli;
  }
  job.groups.push_back(std::move(group));
  return job;
}

Config config_for(const Workload& workload, const std::string& policy) {
  Config config;
  config.node_policy = policy;
  if (policy == "fgd") config.typical_tasks = workload.typical;
  config.reservations = 0;
  config.preemption = config.reclaim = config.consolidation = false;
  config.refuse_never = false;
  return config;
}

// Means per percent of demand arrived, as the authors take them.
class Bins {
 public:
  explicit Bins(std::int64_t capacity_milli)
      : gpus_(static_cast<double>(capacity_milli) / kWholeGpu) {}

  void add(std::int64_t arrived_milli, std::int64_t used_milli, double fragmented_milli) {
    const auto bin =
        static_cast<int>(std::nearbyint(static_cast<double>(arrived_milli) / gpus_ / 10));
    if (bin >= kBins) return;
    Bin& to = bins_[static_cast<std::size_t>(bin)];
    to.allocation += round2(static_cast<double>(used_milli) / gpus_ / 10);
    to.fragmented += round2(fragmented_milli);
    ++to.count;
  }
  void close(Run& run) const {
    for (int bin = 0; bin < kBins; ++bin) {
      Bin sum = bins_[static_cast<std::size_t>(bin)];
      // One task may leap over a whole bin: its neighbours speak for it.
      if (sum.count == 0)
        for (int other = std::max(bin - 1, 0); other <= std::min(bin + 1, kBins - 1); ++other)
          sum += bins_[static_cast<std::size_t>(other)];
      const bool none = sum.count == 0;
      run.allocation[static_cast<std::size_t>(bin)] =
          none ? std::nan("") : round2(sum.allocation / sum.count);
      run.fragmentation[static_cast<std::size_t>(bin)] =
          none ? std::nan("") : round2(100 * (sum.fragmented / sum.count) / kWholeGpu / gpus_);
    }
  }

 private:
  struct Bin {
    double allocation = 0, fragmented = 0;
    int count = 0;
    Bin& operator+=(const Bin& o) {
      allocation += o.allocation, fragmented += o.fragmented, count += o.count;
      return *this;
    }
  };
  double gpus_;
  std::array<Bin, kBins> bins_{};
};

// The engine with the cluster in it, and what is fragmented there.
class Lab {
 public:
  Lab(const Workload& workload, const std::string& policy)
      : fragmentation_(engine_.cluster().shapes().models()) {
    fragmentation_.set_typical(workload.typical);
    config_ = config_for(workload, policy);
  }

  Status build(const std::vector<TraceNode>& nodes, const std::vector<std::uint32_t>& order) {
    if (Status s = tell(SetConfig{config_}); !s) return s;
    Tenant tenant;
    tenant.id = kTenant;
    if (Status s = tell(PutTenant{tenant}); !s) return s;
    for (std::size_t rank = 0; rank < order.size(); ++rank)
      if (Status s = tell(PutNode{node_value(nodes[order[rank]], rank)}); !s) return s;
    const Cluster& cluster = engine_.cluster();
    for (std::size_t i = 0; i < cluster.node_count(); ++i) {
      of_node_.push_back(fragmentation_.of(cluster.node(NodeId{i}), View::Now));
      fragmented_ += of_node_.back();
    }
    return ok_status();
  }

  // True: placed. False: dropped.
  Result<bool> arrive(const Pod& pod, int number) {
    const std::string id = fmt::format("p{}", number);
    if (Status s = tell(SubmitJob{job_value(pod, id)}); !s) return s.error();
    for (const Effect& effect : engine_.tick(Instant{number}))
      if (const auto* start = std::get_if<StartTasks>(&effect)) {
        CHECK(start->job == id && start->tasks.size() == 1);
        measure(engine_.cluster().find_node(start->tasks[0].node));
        return true;
      }
    if (Status s = tell(CancelJob{id}); !s) return s.error();
    return false;
  }
  double fragmented() const { return fragmented_; }

 private:
  Status tell(const Command& command) {
    const Result<Effects> effects = engine_.handle(command, Instant{0});
    return effects ? ok_status() : Status(effects.error());
  }
  void measure(NodeId node) {
    double& now = of_node_[node.index()];
    fragmented_ -= now;
    now = fragmentation_.of(engine_.cluster().node(node), View::Now);
    fragmented_ += now;
  }

  Engine engine_;
  Config config_;
  Fragmentation fragmentation_;
  std::vector<double> of_node_;
  double fragmented_ = 0;
};

}  // namespace

Result<Run> run(const std::vector<TraceNode>& nodes, const Workload& workload,
                const std::string& policy, int seed, const std::function<void(double)>& progress) {
  Run out;
  out.workload = workload.name;
  out.policy = policy;
  out.seed = seed;
  Lab lab(workload, policy);
  if (Status s = lab.build(nodes, workload.node_order.at(seed)); !s) return s.error();
  std::int64_t capacity = 0;
  for (const TraceNode& node : nodes) capacity += std::int64_t{node.gpus} * kWholeGpu;
  Bins bins(capacity);
  std::int64_t arrived = 0;
  std::int64_t used = 0;
  const auto& order = workload.arrivals.at(seed);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Pod& pod = workload.pods[order[i]];
    const Result<bool> placed = lab.arrive(pod, static_cast<int>(i));
    if (!placed) return placed.error();
    arrived += pod.gpu_milli();
    used += *placed ? pod.gpu_milli() : 0;
    out.failed += *placed ? 0 : 1;
    out.failed_8gpu += !*placed && pod.gpus == 8 ? 1 : 0;
    bins.add(arrived, used, lab.fragmented());
    if (i % 512 == 0) progress(static_cast<double>(i) / static_cast<double>(order.size()));
  }
  bins.close(out);
  return out;
}

}  // namespace gs::openb
