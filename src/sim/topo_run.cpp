#include "sim/topo_run.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "sim/world.hpp"

namespace gs::topo {
namespace {

constexpr int kGpusPerHost = 8;
constexpr const char* kTenant = "all";

struct Place {
  int pod = 0, leaf = 0;
};

// What is counted, one gang after the other.
class Tally {
 public:
  explicit Tally(const Trace& trace) {
    std::map<int, int> leaves, pods;
    for (const Host& host : trace.hosts) ++leaves[host.leaf], ++pods[host.pod];
    for (const auto& [leaf, size] : leaves) leaf_sizes_.push_back(size);
    for (const auto& [pod, size] : pods) pod_sizes_.push_back(size);
    std::sort(leaf_sizes_.rbegin(), leaf_sizes_.rend());
    std::sort(pod_sizes_.rbegin(), pod_sizes_.rend());
  }

  void add(const std::vector<Place>& places) {
    const auto hosts = static_cast<int>(places.size());
    if (hosts < 2) return;
    std::map<int, double> leaves, pods;
    for (const Place& place : places) ++leaves[place.leaf], ++pods[place.pod];
    ++gangs_;
    leaf_ratio_ += static_cast<double>(leaves.size()) / fewest(leaf_sizes_, hosts);
    pod_ratio_ += static_cast<double>(pods.size()) / fewest(pod_sizes_, hosts);
    if (hosts <= leaf_sizes_.front()) ++fit_one_, one_ += leaves.size() == 1 ? 1 : 0;
    hops_ += 6 - 2 * (pairs_in(leaves) + pairs_in(pods)) / pairs(hosts);
  }

  Row row(const std::string& policy, double mean_wait_s) const {
    const double n = std::max(1, gangs_);
    return {policy,    leaf_ratio_ / n, pod_ratio_ / n, 100.0 * one_ / std::max(1, fit_one_),
            hops_ / n, mean_wait_s};
  }

 private:
  static double pairs(double n) { return n * (n - 1) / 2; }
  static double pairs_in(const std::map<int, double>& counts) {
    double sum = 0;
    for (const auto& [domain, n] : counts) sum += pairs(n);
    return sum;
  }
  static int fewest(const std::vector<int>& sizes, int hosts) {
    int used = 0;
    for (const int size : sizes) {
      if (hosts <= 0) break;
      hosts -= size;
      ++used;
    }
    return used;
  }

  std::vector<int> leaf_sizes_, pod_sizes_;  // descending
  int gangs_ = 0, fit_one_ = 0, one_ = 0;
  double leaf_ratio_ = 0, pod_ratio_ = 0, hops_ = 0;
};

Node node_of(const Host& host) {
  Node node;
  node.name = host.name;
  node.domain = {fmt::format("pod-{}", host.pod), fmt::format("leaf-{}", host.leaf)};
  for (int i = 0; i < kGpusPerHost; ++i) {
    Gpu gpu;
    gpu.index = i;
    gpu.uuid = fmt::format("{}-{}", host.name, i);
    gpu.model = "any";
    gpu.memory_mib = 81920;
    node.gpus.push_back(gpu);
  }
  return node;
}

// Strict order: allocate stops at the first job that has to wait, and no phase goes on behind it.
Config config_of(const std::string& policy) {
  Config config;
  config.phases = {"nominated", "allocate", "refine"};
  config.reservations = 1;
  config.aging_per_hour = 0;
  config.gang_layout = policy == "tree-best-fit" ? GangLayout::BestFit : GangLayout::LeastHarm;
  return config;
}

Job job_of(const Gang& gang) {
  Job job;
  job.id = gang.id;
  job.tenant = kTenant;
  job.submitted = gang.arrival;
  Group group;
  group.count = gang.hosts;
  group.request.gpu.count = kGpusPerHost;
  job.groups.push_back(group);
  return job;
}

Status set_up(World& world, const Trace& trace, const std::string& policy) {
  std::vector<Command> commands = {SetConfig{config_of(policy)}, SetTopology{{"pod", "leaf"}}};
  for (const Host& host : trace.hosts) commands.emplace_back(PutNode{node_of(host)});
  Tenant tenant;
  tenant.id = kTenant;
  commands.emplace_back(PutTenant{tenant});
  for (const Command& command : commands)
    if (const auto answer = world.send(command); !answer) return answer.error();
  return ok_status();
}

}  // namespace

const std::vector<std::string>& policies() {
  static const std::vector<std::string> all = {"tree-best-fit", "default"};
  return all;
}

Result<Row> run(const Trace& trace, const std::string& policy,
                const std::function<void(double)>& progress) {
  WorldOptions options;
  options.keep_log = false;
  World world(options);
  if (const Status status = set_up(world, trace, policy); !status) return status.error();
  std::unordered_map<std::string, Place> place_of;
  for (const Host& host : trace.hosts) place_of[host.name] = {host.pod, host.leaf};
  std::unordered_map<std::string, Instant> arrival;
  for (const Gang& gang : trace.gangs) arrival[gang.id] = gang.arrival;
  Tally tally(trace);
  double waited_s = 0;
  std::size_t started = 0;
  world.watch([&](World& w, const LogEntry& entry) {
    for (const Effect& effect : entry.effects) {
      const auto* starts = std::get_if<StartTasks>(&effect);
      if (starts == nullptr) continue;
      std::vector<Place> places;
      for (const TaskPlace& task : starts->tasks) places.push_back(place_of[task.node]);
      tally.add(places);
      waited_s += (w.now() - arrival[starts->job]).seconds();
      ++started;
    }
  });
  for (std::size_t i = 0; i < trace.gangs.size(); ++i) {
    const Gang& gang = trace.gangs[i];
    world.advance_to(gang.arrival);
    world.set_duration(gang.id, gang.duration);
    if (const auto answer = world.send(SubmitJob{job_of(gang)}); !answer) return answer.error();
    if (i % 64 == 0) progress(static_cast<double>(i) / static_cast<double>(trace.gangs.size()));
  }
  while (started < trace.gangs.size()) {
    const auto next = world.next_event();
    if (!next) return Error{ErrorCode::Internal, "gangs wait for ever"};
    world.advance_to(*next);
  }
  return tally.row(policy, waited_s / static_cast<double>(trace.gangs.size()));
}

}  // namespace gs::topo
