// What a decision costs, and how the cost grows with the cluster. One thread.
#include "engine/engine.hpp"

#include <fstream>
#include <memory>

#include "base/rng.hpp"
#include "cluster/trial.hpp"
#include "placement/place.hpp"
#include "queue/job_order.hpp"
#include "queue/queue.hpp"
#include "report.hpp"

namespace {

using namespace gs;
using bench::Report;
using bench::Samples;
using bench::Stopwatch;

constexpr int kGpus = 8;
constexpr int kNodesPerLeaf = 16;
constexpr int kLeavesPerSpine = 32;

Node make_node(int i) {
  Node node;
  node.name = fmt::format("node-{}", i);
  node.capacity = {128'000, 2048LL * 1024 * kMiB, {}};
  const int leaf = i / kNodesPerLeaf;
  node.domain = {fmt::format("spine-{}", leaf / kLeavesPerSpine), fmt::format("leaf-{}", leaf)};
  for (int g = 0; g < kGpus; ++g) {
    Gpu gpu;
    gpu.index = g;
    gpu.uuid = fmt::format("GPU-{:08x}-{}", i, g);
    gpu.model = "H100-SXM5-80GB";
    gpu.memory_mib = 81'559;
    gpu.island = "nvlink-0";
    gpu.bandwidth_gbps = 900;
    node.gpus.push_back(gpu);
  }
  return node;
}

Job make_job(const std::string& id, const std::string& tenant, int gpus, int tasks = 1) {
  Job job;
  job.id = id;
  job.tenant = tenant;
  Group group;
  group.request.gpu.count = gpus;
  group.request.resources = {4000LL * gpus, 16LL * 1024 * kMiB * gpus, {}};
  group.count = tasks;
  job.groups.push_back(group);
  return job;
}

struct Lab {
  explicit Lab(int nodes) {
    cluster.set_topology({"spine", "leaf"});
    for (int i = 0; i < nodes; ++i) cluster.put_node(make_node(i));
    Tenant t;
    t.id = "t";
    tenant = cluster.put_tenant(t);
    placer = std::make_unique<Placer>(cluster, config);
  }
  PlaceAsk ask(JobId job) const {
    PlaceAsk ask{job, {}, Firmness::StartNow, nullptr, Instant{0}};
    const JobShape& shape = cluster.shape_of(job);
    for (std::size_t g = 0; g < shape.groups.size(); ++g) {
      GroupTasks tasks{static_cast<int>(g), {}};
      for (int i = 0; i < shape.groups[g].count; ++i) tasks.ranks.push_back(i);
      ask.tasks.push_back(std::move(tasks));
    }
    return ask;
  }
  Cluster cluster;
  Config config;
  TenantId tenant;
  std::unique_ptr<Placer> placer;
};

// Returns the median in microseconds.
double single_placements(Report& report, int nodes, int gpus, const std::string& what, double aim) {
  Lab lab(nodes);
  const int count = std::min(nodes * kGpus / gpus / 2, 200'000);
  std::vector<JobId> jobs;
  for (int i = 0; i < count; ++i)
    jobs.push_back(lab.cluster.add_job(make_job(fmt::format("j{}", i), "t", gpus), lab.tenant));
  std::vector<PlaceAsk> asks;
  for (const JobId job : jobs) asks.push_back(lab.ask(job));
  Samples samples;
  samples.us.reserve(asks.size());
  int placed = 0;
  for (const PlaceAsk& ask : asks) {
    const Stopwatch watch;
    lab.placer->observe(ask.job);
    lab.placer->refresh();
    Trial trial(lab.cluster);
    placed += lab.placer->place(trial, ask);
    trial.keep();
    samples.us.push_back(watch.us());
  }
  if (placed != count) fmt::print("{}: only {} of {} placed\n", what, placed, count);
  report.add({fmt::format("{}, {} nodes, rate", what, nodes), "1/s", samples.per_second(), aim,
              aim > 0 ? "aim" : "", false});
  report.add({fmt::format("{}, {} nodes, p50", what, nodes), "us", samples.at(0.5), 0, ""});
  report.add({fmt::format("{}, {} nodes, p99", what, nodes), "us", samples.at(0.99), 0, ""});
  return samples.at(0.5);
}

// In a cluster of which a third is taken here and there. A shape that was never asked for before
// pays for its counts; those behind it don't. Returns the median of the latter in microseconds.
double gang_in_spine(Report& report, int nodes) {
  Lab lab(nodes);
  Rng rng(3);
  for (int i = 0; i < nodes * 2; ++i) {
    const int gpus = static_cast<int>(rng.between(1, 4));
    const JobId id = lab.cluster.add_job(make_job(fmt::format("j{}", i), "t", gpus), lab.tenant);
    const NodeId node{rng.below(static_cast<std::uint64_t>(nodes))};
    const GpuMask free = lab.cluster.node(node).free_gpus(View::Now);
    if (gpu_count(free) < gpus || lab.cluster.node(node).tasks.size() > 1) continue;
    GpuMask set = 0;
    for_each_gpu(free, [&](int gpu) { set |= gpu_count(set) < gpus ? gpu_bit(gpu) : 0; });
    lab.cluster.place(id, 0, 0, {node, set, {}}, TaskState::Running, Instant{0});
  }
  Samples known, fresh;
  for (int round = 0; round < 10; ++round) {
    Job job = make_job(fmt::format("gang{}", round), "t", 1, 512);
    job.groups[0].topology.required_level = "spine";
    job.groups[0].request.resources.cpu_milli += round % 2 == 0 ? round : 0;
    const PlaceAsk ask = lab.ask(lab.cluster.add_job(job, lab.tenant));
    const Stopwatch watch;
    Trial trial(lab.cluster);
    const bool placed = lab.placer->place(trial, ask);
    (round % 2 == 0 ? fresh : known).us.push_back(watch.us());
    if (!placed) fmt::print("gang of 512 not placed\n");
    if (nodes > 1000) trial.keep();
  }
  report.add({fmt::format("512-task gang within one spine, {} nodes, p50", nodes), "ms",
              known.at(0.5) / 1000, 10'000, "KAI end to end, 1,000 nodes"});
  report.add({fmt::format("512-task gang of a new shape, {} nodes, p50", nodes), "ms",
              fresh.at(0.5) / 1000, 5, "aim"});
  return known.at(0.5);
}

void fill(Engine& engine, int nodes, int tenants, int gpus_each) {
  (void)engine.handle(SetTopology{{"spine", "leaf"}}, Instant{0});
  for (int i = 0; i < nodes; ++i) (void)engine.handle(PutNode{make_node(i)}, Instant{0});
  for (int i = 0; i < tenants; ++i) {
    Tenant t;
    t.id = fmt::format("t{}", i);
    t.created_order = i;
    (void)engine.handle(PutTenant{t}, Instant{0});
  }
  const int jobs = nodes * kGpus / gpus_each;
  for (int i = 0; i < jobs; ++i) {
    const auto result =
        engine.handle(SubmitJob{make_job(fmt::format("run{}", i), "t0", gpus_each)}, Instant{0});
    if (!result.ok()) fmt::print("submit: {}\n", result.error().message);
  }
  engine.tick(Instant{1});
}

void does_not_fit(Report& report) {
  Lab lab(500);
  for (int i = 0; i < 500; ++i) {
    const JobId id =
        lab.cluster.add_job(make_job(fmt::format("full{}", i), "t", kGpus), lab.tenant);
    Trial trial(lab.cluster);
    if (!lab.placer->place(trial, lab.ask(id))) fmt::print("not full\n");
    trial.keep();
  }
  Samples samples;
  for (int round = 0; round < 50; ++round) {
    const JobId id =
        lab.cluster.add_job(make_job(fmt::format("gang{}", round), "t", kGpus, 10), lab.tenant);
    const PlaceAsk ask = lab.ask(id);
    const Stopwatch watch;
    Trial trial(lab.cluster);
    const bool placed = lab.placer->place(trial, ask);
    samples.us.push_back(watch.us());
    if (placed) fmt::print("placed in a full cluster\n");
  }
  report.add({"'does not fit', 10-task gang, full 500 nodes, first", "us", samples.us.front(), 100,
              "aim"});
  report.add({"'does not fit', 10-task gang, full 500 nodes, p50", "us", samples.at(0.5), 100'000,
              "KAI 0.1-0.8 s"});
}

// Every leaf of 16 nodes has 9 nodes full of jobs that may be evicted or moved, 7 full of jobs that
// may not, and one idle GPU on each node. The gang wants 10 whole nodes in one leaf: there are
// thousands of victims and hundreds of idle GPUs, and no plan works.
void does_not_fit_hard(Report& report) {
  constexpr int kNodes = 500;
  Engine engine;
  Config config;
  config.consolidation = true;
  config.refuse_never = false;
  (void)engine.handle(SetConfig{config}, Instant{0});
  (void)engine.handle(SetTopology{{"spine", "leaf"}}, Instant{0});
  for (int i = 0; i < kNodes; ++i) (void)engine.handle(PutNode{make_node(i)}, Instant{0});
  Tenant poor, rich, fixed;
  poor.id = "poor";
  rich.id = "rich";
  rich.guaranteed.gpu_milli = 1000LL * kWholeGpu;
  fixed.id = "fixed";
  fixed.guaranteed = kUnlimitedShare;
  for (const Tenant& tenant : {poor, rich, fixed})
    (void)engine.handle(PutTenant{tenant}, Instant{0});
  for (int i = 0; i < kNodes; ++i)
    for (int g = 0; g < 7; ++g) {
      const bool stays = i % kNodesPerLeaf < 7;
      Job job = make_job(fmt::format("run{}-{}", i, g), stays ? "fixed" : "poor", 1);
      job.preemptible = !stays;
      job.movable = true;
      (void)engine.handle(SubmitJob{job}, Instant{0});
      (void)engine.handle(
          AdoptTask{{job.id, 0, 0}, fmt::format("node-{}", i), {g}, {}, Instant{0}, false},
          Instant{0});
    }
  engine.tick(Instant{1});
  Job gang = make_job("gang", "rich", kGpus, 10);
  gang.groups[0].topology.required_level = "leaf";
  auto result = engine.handle(SubmitJob{gang}, Instant{2});
  if (!result.ok()) fmt::print("{}\n", result.error().message);
  const Stopwatch watch;
  const Effects effects = engine.tick(Instant{3});
  const double us = watch.us();
  if (!effects.empty()) fmt::print("hard case: {} effects\n", effects.size());
  report.add({"'does not fit' after reclaim and consolidation, 500 nodes", "ms", us / 1000, 249'500,
              "KAI publishes 249.5 s"});
  report.add({"'does not fit' after reclaim and consolidation, against the aim", "ms", us / 1000,
              20, "aim"});
}

void reclaim_plan(Report& report) {
  Engine engine;
  fill(engine, 500, 2, 1);  // t0 runs 4,000 jobs of one GPU
  Tenant poor;
  poor.id = "t0";
  (void)engine.handle(PutTenant{poor}, Instant{2});
  Tenant rich;
  rich.id = "t1";
  rich.created_order = 1;
  rich.guaranteed.gpu_milli = 4000LL * kWholeGpu;
  (void)engine.handle(PutTenant{rich}, Instant{2});
  auto result = engine.handle(SubmitJob{make_job("gang", "t1", kGpus, 500)}, Instant{2});
  if (!result.ok()) fmt::print("{}\n", result.error().message);
  const Stopwatch watch;
  const Effects effects = engine.tick(Instant{3});
  const double us = watch.us();
  std::size_t stopped = 0;
  for (const Effect& effect : effects)
    if (const auto* stop = std::get_if<StopTasks>(&effect)) stopped += stop->tasks.size();
  if (stopped != 4000) fmt::print("reclaim: {} tasks stopped, expected 4000\n", stopped);
  report.add({"reclaim plan for 4,000 GPUs, 500 nodes, 4,000 running jobs", "ms", us / 1000, 85'000,
              "KAI publishes 85-102 s end to end"});
  report.add({"reclaim plan, against the aim", "ms", us / 1000, 50, "aim"});
}

// As many jobs come as leave. The rate is that of the median slice, so that what else the machine
// does for a moment does not count. Returns the microseconds of a push and a pop.
double queue_operations(Report& report, int waiting, int tenants, double aim) {
  constexpr int kSlices = 50;
  Cluster cluster;
  std::vector<TenantId> ids;
  for (int i = 0; i < tenants; ++i) {
    Tenant t;
    t.id = fmt::format("t{}", i);
    t.created_order = i;
    ids.push_back(cluster.put_tenant(t));
  }
  Rng rng(1);
  std::vector<JobId> jobs;
  Job job = make_job("", "", 1);
  for (int i = 0; i < 2 * waiting; ++i) {
    const TenantId tenant = ids[static_cast<std::size_t>(i % tenants)];
    job.id = std::to_string(i);
    job.tenant = cluster.tenant(tenant).spec.id;
    job.priority = static_cast<int>(rng.between(100, 2000));
    job.submitted = Instant{i};
    jobs.push_back(cluster.add_job(job, tenant));
  }
  Queue queue(cluster);
  Config config;
  auto next = jobs.begin();
  for (int i = 0; i < waiting; ++i) queue.push(*next++);
  FairShares shares;
  shares.compute(cluster, {queue.demand(), config.usage_half_life, Instant{0}});
  JobOrder order(cluster, shares, queue, config, {});
  Samples slices;
  for (int slice = 0; slice < kSlices; ++slice) {
    const Stopwatch watch;
    for (int i = 0; i < waiting / kSlices; ++i) {
      queue.push(*next++);
      queue.erase(order.next());
      order.handled();
    }
    slices.us.push_back(watch.us());
  }
  if (queue.size() != static_cast<std::size_t>(waiting)) fmt::print("the walk ended early\n");
  const int per_slice = waiting / kSlices;
  const double pair_us = slices.at(0.5) / per_slice;
  report.add({fmt::format("queue push+pop with aging, {} waiting, {} lanes, {} tenants", waiting,
                          queue.busy().size(), tenants),
              "op/s", 2e6 / pair_us, aim, aim > 0 ? "aim; seed claims 6 million" : "", false});
  return pair_us;
}

void queue_growth(Report& report) {
  const double few = queue_operations(report, 10'000, 1, 0);
  queue_operations(report, 100'000, 1, 0);
  const double many = queue_operations(report, 1'000'000, 1, 10e6);
  queue_operations(report, 100'000, 100, 0);
  report.add({"queue push+pop, growth from 10,000 to 1,000,000 waiting", "x", many / few, 100,
              "linear growth"});
}

void full_cycle(Report& report) {
  Engine engine;
  Config config;
  config.preemption = config.reclaim = false;
  (void)engine.handle(SetConfig{config}, Instant{0});
  fill(engine, 1000, 10, kGpus);
  Rng rng(2);
  for (int i = 0; i < 100'000; ++i) {
    Job job =
        make_job(fmt::format("w{}", i), fmt::format("t{}", i % 10), 1 + i % 8, 1 + (i / 8) % 5);
    job.groups[0].request.resources.cpu_milli = 1000 * (1 + (i / 40) % 5);
    job.submitted = Instant{i};
    (void)engine.handle(SubmitJob{std::move(job)}, Instant{2});
  }
  engine.tick(Instant{200'000});
  Samples samples;
  for (int i = 0; i < 20; ++i) {
    // Something happens each time, so that nothing is answered from memory alone.
    (void)engine.handle(TaskEnded{{fmt::format("run{}", i), 0, 0}, Outcome::Succeeded},
                        Instant{200'001 + i});
    const Stopwatch watch;
    engine.tick(Instant{200'001 + i});
    samples.us.push_back(watch.us());
  }
  report.add({fmt::format("full cycle, {} waiting jobs of 200 shapes, full cluster, p50",
                          engine.waiting()),
              "ms", samples.at(0.5) / 1000, 10, "aim"});
}

double resident_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmRSS:", 0) == 0) return std::stod(line.substr(6)) / 1024;
  return 0;
}

void memory(Report& report) {
  const double before = resident_mib();
  Engine engine;
  fill(engine, 12'500, 10, kGpus);
  for (int i = 0; i < 100'000; ++i)
    (void)engine.handle(
        SubmitJob{make_job(fmt::format("w{}", i), fmt::format("t{}", i % 10), 1 + i % 8)},
        Instant{2});
  engine.tick(Instant{3});
  report.add(
      {"memory, 12,500 nodes + 100,000 waiting jobs", "MiB", resident_mib() - before, 200, "aim"});
}

}  // namespace

int main(int argc, char** argv) {
  const std::string only = argc > 1 ? argv[1] : "";
  const auto wanted = [&](const char* name) { return only.empty() || only == name; };
  Report report;
  report.header();
  if (wanted("memory")) memory(report);
  const std::vector<int> sizes = {1000, 5000, 12'500, 50'000};
  // How the median grows: 1.0 would be "not at all" for fifty times the nodes.
  const auto growth = [&](const char* key, const std::string& what, auto measure) {
    if (!wanted(key)) return;
    std::vector<double> medians;
    for (const int nodes : sizes) medians.push_back(measure(nodes));
    report.add({what + ", growth of p50 from 1,000 to 50,000 nodes", "x",
                medians.back() / medians.front(), 50, "linear growth"});
  };
  growth("single", "single-GPU placement", [&](int nodes) {
    return single_placements(report, nodes, 1, "single-GPU placement", 500'000);
  });
  growth("island", "8-GPU placement", [&](int nodes) {
    return single_placements(report, nodes, 8, "8-GPU one-island placement", 0);
  });
  growth("gang", "512-task gang", [&](int nodes) { return gang_in_spine(report, nodes); });
  if (wanted("nofit")) does_not_fit(report);
  if (wanted("hard")) does_not_fit_hard(report);
  if (wanted("reclaim")) reclaim_plan(report);
  if (wanted("queue")) queue_growth(report);
  if (wanted("cycle")) full_cycle(report);
  return report.write() ? 0 : 1;
}
