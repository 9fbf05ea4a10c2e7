// Lines that describe the cluster: config, world, node (with gpu and link under it), tenant.
#include <algorithm>

#include <fmt/format.h>

#include "sim/scenario_words.hpp"

namespace gs::scenario {
namespace {

ScoringWeights weights(const Value& v) {
  std::vector<double> parts;
  for (const std::string& part : v.list()) parts.push_back(v.with(part).decimal());
  if (parts.size() != 4) {
    v.fail("four weights are needed: resources,topology,domain,history");
    return {};
  }
  return {parts[0], parts[1], parts[2], parts[3]};
}

// "1:500:4:0.3" or "1:500:4:0.3:H100/A100": GPUs, milli of each, cores, share of all, models.
TypicalTask typical_task(const Value& v) {
  const std::vector<std::string> parts = v.list(':');
  if (parts.size() < 4 || parts.size() > 5) {
    v.fail("a typical task is gpus:milli:cores:share[:models]");
    return {};
  }
  TypicalTask task;
  task.gpus = v.with(parts[0]).integer();
  task.milli = v.with(parts[1]).integer();
  task.cpu_milli = v.with(parts[2]).milli();
  task.share = v.with(parts[3]).decimal();
  if (parts.size() == 5) task.models = v.with(parts[4]).list('/');
  return task;
}

constexpr Field<Config> kConfig[] = {
    {"strategy",
     [](Config& c, const Value& v) {
       c.strategy = v.one_of<Strategy>({{"balanced", Strategy::Balanced},
                                        {"consolidated", Strategy::Consolidated},
                                        {"distributed", Strategy::Distributed}});
     }},
    {"node-policy", [](Config& c, const Value& v) { c.node_policy = v.text(); }},
    {"typical-task", [](Config& c, const Value& v) { c.typical_tasks.push_back(typical_task(v)); }},
    {"gang-layout",
     [](Config& c, const Value& v) {
       c.gang_layout = v.one_of<GangLayout>(
           {{"least-harm", GangLayout::LeastHarm}, {"best-fit", GangLayout::BestFit}});
     }},
    {"weights", [](Config& c, const Value& v) { c.weights = weights(v); }},
    {"implicit-topology", [](Config& c, const Value& v) { c.implicit_topology = v.flag(); }},
    {"phases", [](Config& c, const Value& v) { c.phases = v.list(); }},
    {"aging", [](Config& c, const Value& v) { c.aging_per_hour = v.decimal(); }},
    {"tier-step", [](Config& c, const Value& v) { c.tier_step = v.integer(); }},
    {"half-life", [](Config& c, const Value& v) { c.usage_half_life = v.duration(); }},
    {"reservations", [](Config& c, const Value& v) { c.reservations = v.integer(); }},
    {"preemption", [](Config& c, const Value& v) { c.preemption = v.flag(); }},
    {"reclaim", [](Config& c, const Value& v) { c.reclaim = v.flag(); }},
    {"consolidation", [](Config& c, const Value& v) { c.consolidation = v.flag(); }},
    {"max-moves", [](Config& c, const Value& v) { c.max_moves = v.integer(); }},
    {"gang-scheduling", [](Config& c, const Value& v) { c.gang_scheduling = v.flag(); }},
    {"thermal", [](Config& c, const Value& v) { c.thermal_aware = v.flag(); }},
    {"thermal-threshold", [](Config& c, const Value& v) { c.thermal_threshold_c = v.integer(); }},
    {"thermal-hysteresis", [](Config& c, const Value& v) { c.thermal_hysteresis_c = v.integer(); }},
    {"max-nodes-per-leaf", [](Config& c, const Value& v) { c.max_nodes_per_leaf = v.integer(); }},
    {"max-gpus-per-leaf", [](Config& c, const Value& v) { c.max_gpus_per_leaf = v.integer(); }},
    {"refuse-never", [](Config& c, const Value& v) { c.refuse_never = v.flag(); }},
    {"max-queue", [](Config& c, const Value& v) { c.max_queue = v.number(); }},
};

constexpr Field<WorldOptions> kWorld[] = {
    {"start-delay", [](WorldOptions& w, const Value& v) { w.start_delay = v.duration(); }},
    {"stop-delay", [](WorldOptions& w, const Value& v) { w.stop_delay = v.duration(); }},
    {"tick-every", [](WorldOptions& w, const Value& v) { w.tick_every = v.duration(); }},
};

void each_gpu(Node& node, const Value& v, void (*set)(Gpu&, const Value&)) {
  for (Gpu& gpu : node.gpus) set(gpu, v);
}

// "4+4": the first four, the next four.
void set_parts(Node& node, const Value& v, void (*set)(Gpu&, int)) {
  std::size_t next = 0;
  int part = 0;
  for (const std::string& size : v.list('+')) {
    for (int n = v.with(size).integer(); n > 0 && next < node.gpus.size(); --n)
      set(node.gpus[next++], part);
    ++part;
  }
  if (next != node.gpus.size())
    v.fail(fmt::format("'{}' does not cover {} GPUs", v.text(), node.gpus.size()));
}

void set_gpu_count(Node& node, const Value& v) {
  const int count = v.integer();
  if (count < 0 || count > 64) {
    v.fail("a node has 0 to 64 GPUs");
    return;
  }
  node.peer_bandwidth_gbps.clear();
  node.gpus.assign(static_cast<std::size_t>(count), Gpu{});
  for (int i = 0; i < count; ++i) {
    Gpu& gpu = node.gpus[static_cast<std::size_t>(i)];
    gpu.index = i;
    gpu.uuid = fmt::format("GPU-{}-{}", node.name, i);
    gpu.model = "H100";
    gpu.memory_mib = 80 * 1024;
    gpu.island = "0";
    gpu.bandwidth_gbps = 900;
  }
}

Taint taint(const Value& v) {
  const auto [what, effect] = v.split(':');
  const std::size_t equals = what.find('=');
  Taint taint;
  taint.key = what.substr(0, equals);
  if (equals != std::string::npos) taint.value = what.substr(equals + 1);
  taint.effect =
      v.with(effect).one_of<TaintEffect>({{"NoSchedule", TaintEffect::NoSchedule},
                                          {"PreferNoSchedule", TaintEffect::PreferNoSchedule},
                                          {"NoExecute", TaintEffect::NoExecute}});
  return taint;
}

void set_labels(Labels& labels, const Value& v) {
  for (const std::string& label : v.list()) {
    const std::size_t colon = label.find(':');
    if (colon == std::string::npos)
      v.fail(fmt::format("'{}' is not a label such as zone:a", label));
    else
      set_label(labels, label.substr(0, colon), label.substr(colon + 1));
  }
}

void set_rdma(Fabric& fabric, const Value& v) {
  const std::size_t x = v.text().find('x');
  if (x == std::string::npos) {
    v.fail(fmt::format("'{}' is not ports x Gbit/s such as 2x400", v.text()));
    return;
  }
  fabric.rdma_ports = v.with(v.text().substr(0, x)).integer();
  fabric.rdma_gbps = v.with(v.text().substr(x + 1)).integer();
}

// "3g.40gb@0,1g.10gb@4"; without @ the place is not known.
std::vector<MigInstance> mig_instances(const Value& v) {
  std::vector<MigInstance> instances;
  for (const std::string& one : v.list()) {
    const std::size_t at = one.find('@');
    instances.push_back(
        {one.substr(0, at), at == std::string::npos ? -1 : v.with(one.substr(at + 1)).integer()});
  }
  return instances;
}

constexpr Field<Gpu> kGpu[] = {
    {"uuid", [](Gpu& g, const Value& v) { g.uuid = v.text(); }},
    {"model", [](Gpu& g, const Value& v) { g.model = v.text(); }},
    {"gpu-memory", [](Gpu& g, const Value& v) { g.memory_mib = v.mib(); }},
    {"health",
     [](Gpu& g, const Value& v) {
       g.health = v.one_of<Health>({{"healthy", Health::Healthy},
                                    {"unhealthy", Health::Unhealthy},
                                    {"unknown", Health::Unknown}});
     }},
    {"temperature", [](Gpu& g, const Value& v) { g.temperature_c = v.integer(); }},
    {"island", [](Gpu& g, const Value& v) { g.island = v.text(); }},
    {"bandwidth", [](Gpu& g, const Value& v) { g.bandwidth_gbps = v.integer(); }},
    {"numa", [](Gpu& g, const Value& v) { g.numa = v.integer(); }},
    {"mig",
     [](Gpu& g, const Value& v) {
       g.mig_enabled = true;
       g.mig = mig_instances(v);
     }},
    {"mig-dynamic",
     [](Gpu& g, const Value& v) {
       g.mig_dynamic = v.flag();
       g.mig_enabled |= g.mig_dynamic;
     }},
};

constexpr Field<Node> kNode[] = {
    {"gpus", set_gpu_count},
    {"model",
     [](Node& n, const Value& v) {
       each_gpu(n, v, [](Gpu& g, const Value& value) { g.model = value.text(); });
     }},
    {"gpu-memory",
     [](Node& n, const Value& v) {
       each_gpu(n, v, [](Gpu& g, const Value& value) { g.memory_mib = value.mib(); });
     }},
    {"bandwidth",
     [](Node& n, const Value& v) {
       each_gpu(n, v, [](Gpu& g, const Value& value) { g.bandwidth_gbps = value.integer(); });
     }},
    {"mig-dynamic",
     [](Node& n, const Value& v) {
       each_gpu(n, v, [](Gpu& g, const Value& value) {
         g.mig_dynamic = value.flag();
         g.mig_enabled = g.mig_dynamic;
       });
     }},
    {"islands",
     [](Node& n, const Value& v) {
       set_parts(n, v, [](Gpu& g, int part) { g.island = std::to_string(part); });
     }},
    {"numa",
     [](Node& n, const Value& v) { set_parts(n, v, [](Gpu& g, int part) { g.numa = part; }); }},
    {"cpu", [](Node& n, const Value& v) { n.capacity.cpu_milli = v.milli(); }},
    {"memory", [](Node& n, const Value& v) { n.capacity.memory_bytes = v.bytes(); }},
    {"resource",
     [](Node& n, const Value& v) {
       const auto [name, amount] = v.split(':');
       n.capacity.named.push_back({name, v.with(amount).number()});
     }},
    {"domain", [](Node& n, const Value& v) { n.domain = v.list('/'); }},
    {"labels", [](Node& n, const Value& v) { set_labels(n.labels, v); }},
    {"taint", [](Node& n, const Value& v) { n.taints.push_back(taint(v)); }},
    {"untaint",
     [](Node& n, const Value& v) {
       std::erase_if(n.taints, [&](const Taint& t) { return t.key == v.text(); });
     }},
    {"rdma", [](Node& n, const Value& v) { set_rdma(n.fabric, v); }},
    {"gpudirect-rdma", [](Node& n, const Value& v) { n.fabric.gpudirect_rdma = v.flag(); }},
    {"cufile", [](Node& n, const Value& v) { n.fabric.cufile = v.flag(); }},
    {"ready", [](Node& n, const Value& v) { n.ready = v.flag(); }},
    {"cordoned", [](Node& n, const Value& v) { n.cordoned = v.flag(); }},
};

constexpr Field<Tenant> kTenant[] = {
    {"name", [](Tenant& t, const Value& v) { t.name = v.text(); }},
    {"parent", [](Tenant& t, const Value& v) { t.parent = v.text(); }},
    {"priority", [](Tenant& t, const Value& v) { t.priority = v.integer(); }},
    {"tier",
     [](Tenant& t, const Value& v) {
       t.tier = v.one_of<Tier>({{"low", Tier::Low},
                                {"medium", Tier::Medium},
                                {"high", Tier::High},
                                {"critical", Tier::Critical}});
     }},
    {"guaranteed", [](Tenant& t, const Value& v) { t.guaranteed.gpu_milli = v.milli(); }},
    {"guaranteed-cpu", [](Tenant& t, const Value& v) { t.guaranteed.cpu_milli = v.milli(); }},
    {"guaranteed-memory", [](Tenant& t, const Value& v) { t.guaranteed.memory_bytes = v.bytes(); }},
    {"limit", [](Tenant& t, const Value& v) { t.limit.gpu_milli = v.milli(); }},
    {"limit-gpu-memory", [](Tenant& t, const Value& v) { t.limit.gpu_memory_mib = v.mib(); }},
    {"limit-cpu", [](Tenant& t, const Value& v) { t.limit.cpu_milli = v.milli(); }},
    {"limit-memory", [](Tenant& t, const Value& v) { t.limit.memory_bytes = v.bytes(); }},
    {"limit-jobs", [](Tenant& t, const Value& v) { t.limit.running_jobs = v.number(); }},
    {"limit-model",
     [](Tenant& t, const Value& v) {
       const auto [model, gpus] = v.split(':');
       t.limit.gpus_by_model.emplace_back(model, v.with(gpus).number());
     }},
    {"weight", [](Tenant& t, const Value& v) { t.over_quota_weight = v.number(); }},
    {"allow-preemption", [](Tenant& t, const Value& v) { t.allow_preemption = v.flag(); }},
    {"can-preempt-others", [](Tenant& t, const Value& v) { t.can_preempt_others = v.flag(); }},
    {"max-queue", [](Tenant& t, const Value& v) { t.max_queue = v.number(); }},
    {"created-order", [](Tenant& t, const Value& v) { t.created_order = v.integer(); }},
};

constexpr Field<GpuReport> kReport[] = {
    {"healthy", [](GpuReport& r, const Value&) { r.health = Health::Healthy; }},
    {"unhealthy", [](GpuReport& r, const Value&) { r.health = Health::Unhealthy; }},
    {"unknown", [](GpuReport& r, const Value&) { r.health = Health::Unknown; }},
    {"temperature", [](GpuReport& r, const Value& v) { r.temperature_c = v.integer(); }},
};

template <typename T, std::size_t N>
Result<T> read_flat(const Block& block, std::size_t first, const Field<T> (&fields)[N], T target) {
  if (!block.body.empty())
    return at_line(block.body[0].number, "nothing may be indented under this line");
  if (Status s = apply<T>(block.head, first, fields, target); !s) return s.error();
  return target;
}

// `link 0-3 900`: GB/s between each pair of these GPUs.
Status read_link(const Line& line, Node& node) {
  if (line.words.size() != 3) return at_line(line.number, "link needs GPUs and GB/s: link 0-3 900");
  std::string problem;
  const std::vector<int> gpus = Value(line.words[1].value, problem).numbers();
  const int gbps = Value(line.words[2].value, problem).integer();
  const std::size_t count = node.gpus.size();
  for (const int gpu : gpus)
    if (gpu < 0 || gpu >= static_cast<int>(count))
      problem = fmt::format("GPU {} does not exist", gpu);
  if (!problem.empty()) return at_line(line.number, problem);
  node.peer_bandwidth_gbps.resize(count * count, 0);
  for (const int a : gpus)
    for (const int b : gpus)
      if (a != b)
        node.peer_bandwidth_gbps[static_cast<std::size_t>(a) * count +
                                 static_cast<std::size_t>(b)] = gbps;
  return ok_status();
}

// `gpu 0-3 model=...`: differs from the rest of the node.
Status read_gpus(const Line& line, Node& node) {
  if (line.words.size() < 2) return at_line(line.number, "gpu needs its number");
  std::string problem;
  for (const int i : Value(line.words[1].value, problem).numbers()) {
    if (i < 0 || i >= static_cast<int>(node.gpus.size()))
      return at_line(line.number, fmt::format("GPU {} does not exist", i));
    if (Status s = apply<Gpu>(line, 2, kGpu, node.gpus[static_cast<std::size_t>(i)]); !s) return s;
  }
  return problem.empty() ? ok_status() : at_line(line.number, problem);
}

}  // namespace

Result<Config> read_config(const Block& block, Config before) {
  return read_flat(block, 1, kConfig, std::move(before));
}

Result<WorldOptions> read_world(const Block& block, WorldOptions before) {
  return read_flat(block, 1, kWorld, before);
}

Result<Tenant> read_tenant(const Block& block, Tenant before) {
  return read_flat(block, 2, kTenant, std::move(before));
}

Result<GpuReport> read_gpu_report(const Line& line) {
  return read_flat(Block{line, {}}, 2, kReport, GpuReport{});
}

Result<Node> read_node(const Block& block, Node before) {
  Node node = std::move(before);
  if (Status s = apply<Node>(block.head, 2, kNode, node); !s) return s.error();
  for (const Line& line : block.body) {
    const std::string& verb = line.words[0].value;
    Status s = verb == "gpu"    ? read_gpus(line, node)
               : verb == "link" ? read_link(line, node)
                                : at_line(line.number, unknown("line", verb, {"gpu", "link"}));
    if (!s) return s.error();
  }
  return node;
}

void add_cluster_keys(std::vector<std::string>& keys) {
  const auto add = [&](const std::string& verb, const auto& fields) {
    for (const auto& field : fields) keys.push_back(verb + " " + field.key);
  };
  add("config", kConfig);
  add("world", kWorld);
  add("node", kNode);
  add("gpu", kGpu);
  add("tenant", kTenant);
  add("gpu", kReport);
}

}  // namespace gs::scenario
