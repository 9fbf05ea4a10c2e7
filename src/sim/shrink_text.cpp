// Actions in full, for people who have to understand a failure.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/describe.hpp"
#include "sim/shrink.hpp"

namespace gs {
namespace {

// Words for what is not as usual, one after another.
class Words {
 public:
  template <typename T>
  Words& add(const char* name, const T& value, const T& usual) {
    if (value != usual) text_ += fmt::format(" {}={}", name, value);
    return *this;
  }
  Words& flag(bool on, const char* name) {
    if (on) text_ += fmt::format(" {}", name);
    return *this;
  }
  Words& time(const char* name, const std::optional<Duration>& value) {
    if (value) text_ += fmt::format(" {}={}", name, describe(*value));
    return *this;
  }
  Words& quota(const char* name, std::int64_t value) {
    if (value < kUnlimited) text_ += fmt::format(" {}={}", name, value);
    return *this;
  }
  Words& say(const std::string& text) {
    text_ += " " + text;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string words(const TaskRequest& r) {
  Words w;
  const GpuRequest& g = r.gpu;
  w.add("gpus", g.count, 0)
      .add("milli", g.milli, 0)
      .add("gpu_memory", g.memory_mib, std::int64_t{0});
  for (const MigAsk& ask : g.mig) w.say(fmt::format("mig={}x{}", ask.count, ask.profile));
  if (!g.models.empty()) w.say(fmt::format("models={}", fmt::join(g.models, ",")));
  if (!g.pinned_ids.empty()) w.say(fmt::format("pinned={}", describe_gpus(g.pinned_ids)));
  if (!g.pin_group.empty()) w.say("pin-group=" + g.pin_group);
  w.add("min_memory", g.min_memory_mib, std::int64_t{0});
  w.add("policy", static_cast<int>(g.policy), 0).add("topology", static_cast<int>(g.topology), 0);
  w.add("min_bandwidth", g.min_bandwidth_gbps, 0);
  w.add("cpu", r.resources.cpu_milli, std::int64_t{0});
  w.add("memory_mib", r.resources.memory_bytes / kMiB, std::int64_t{0});
  for (const auto& [name, amount] : r.resources.named) w.say(fmt::format("{}={}", name, amount));
  for (const auto& [key, value] : r.selector) w.say(fmt::format("selector:{}={}", key, value));
  if (!r.only_nodes.empty()) w.say(fmt::format("node={}", fmt::join(r.only_nodes, ",")));
  w.flag(!r.affinity.empty(), "affinity").flag(!r.preferred_affinity.empty(), "preferred_affinity");
  w.flag(!r.tolerations.empty(), "tolerates").add("rdma", static_cast<int>(r.rdma), 0);
  w.add("cufile", static_cast<int>(r.cufile), 0).add("network", r.min_network_gbps, 0);
  w.add("strategy", static_cast<int>(r.strategy), 0);
  w.add("preferred_domain", r.preferred_domain, std::string{});
  return w.flag(r.latency_sensitive, "latency_sensitive").text();
}

std::string words(const TopologyWish& t) {
  return Words{}
      .add("required", t.required_level, std::string{})
      .add("preferred", t.preferred_level, std::string{})
      .text();
}

std::string words(const Job& job) {
  Words w;
  w.add("priority", job.priority, 500).time("expected", job.expected_runtime);
  w.time("max", job.max_runtime).time("timeout", job.start_timeout);
  w.add("min_runtime_ms", job.min_runtime.ms, std::int64_t{0});
  w.flag(!job.preemptible, "unpreemptible").flag(!job.can_preempt_others, "no_preempting");
  w.add("max_preemptions", job.max_preemptions, 0).add("budget", job.disruption_budget, 0);
  w.flag(job.checkpointable, "checkpointable").flag(job.movable, "movable").flag(job.held, "held");
  w.add("arrived", job.arrived, -1);
  for (std::size_t i = 0; i < job.sets.size(); ++i)
    if (i > 0 || job.sets[i].topology != TopologyWish{})
      w.say(fmt::format("set{}:{}", i, words(job.sets[i].topology)));
  for (const Group& g : job.groups) {
    w.say(fmt::format("[{} tasks", g.count)).add("min", g.min, 0).add("set", g.set, 0);
    w.say(words(g.topology).substr(words(g.topology).empty() ? 0 : 1));
    for (const Slice& s : g.slices) w.say(fmt::format("slices={}x{}", s.size, s.level));
    w.say(words(g.request) + "]");
  }
  return w.text();
}

std::string words(const Node& node) {
  Words w;
  if (!node.domain.empty()) w.say(fmt::format("in {}", fmt::join(node.domain, "/")));
  w.say(fmt::format("cpu={} memory_mib={}", node.capacity.cpu_milli,
                    node.capacity.memory_bytes / kMiB));
  for (const auto& [name, amount] : node.capacity.named) w.say(fmt::format("{}={}", name, amount));
  for (const Gpu& gpu : node.gpus) {
    std::string mig = gpu.mig_dynamic ? "/mig*" : gpu.mig_enabled ? "/mig" : "";
    for (const MigInstance& i : gpu.mig) mig += fmt::format("{}@{}", i.profile, i.start);
    w.say(gpu.model + "/" + gpu.island + mig);
  }
  for (const auto& [key, value] : node.labels) w.say(fmt::format("{}={}", key, value));
  for (const Taint& taint : node.taints) w.say("taint:" + taint.key);
  return w.flag(!node.ready, "not-ready").flag(node.fabric.rdma_ports > 0, "rdma").text();
}

std::string words(const Tenant& t) {
  Words w;
  w.add("parent", t.parent, std::string{}).add("priority", t.priority, 100);
  w.add("tier", static_cast<int>(t.tier), 1);
  w.add("guaranteed", t.guaranteed.gpu_milli, std::int64_t{0});
  w.quota("limit", t.limit.gpu_milli).quota("limit_memory", t.limit.gpu_memory_mib);
  w.quota("limit_cpu", t.limit.cpu_milli).quota("running", t.limit.running_jobs);
  for (const auto& [model, gpus] : t.limit.gpus_by_model) w.say(fmt::format("{}<={}", model, gpus));
  w.add("weight", t.over_quota_weight, std::int64_t{1}).quota("max_queue", t.max_queue);
  w.flag(!t.allow_preemption, "not-preemptible").flag(!t.can_preempt_others, "no-preempting");
  return w.text();
}

std::string words(const Config& c) {
  const Config usual;
  Words w;
  w.add("strategy", static_cast<int>(c.strategy), static_cast<int>(usual.strategy));
  w.flag(!c.implicit_topology, "no-implicit-topology");
  w.add("aging", c.aging_per_hour, usual.aging_per_hour);
  w.add("half_life_ms", c.usage_half_life.ms, usual.usage_half_life.ms);
  w.add("reservations", c.reservations, usual.reservations).flag(!c.preemption, "no-preemption");
  w.flag(!c.reclaim, "no-reclaim").flag(c.consolidation, "consolidation");
  w.flag(!c.thermal_aware, "not-thermal").add("nodes_per_leaf", c.max_nodes_per_leaf, 0);
  return w.add("gpus_per_leaf", c.max_gpus_per_leaf, 0)
      .add("max_queue", c.max_queue, std::int64_t{0})
      .text();
}

}  // namespace

std::string describe_fully(const Action& action) {
  const auto* command = std::get_if<Command>(&action.what);
  std::string text = describe(action);
  if (command == nullptr) return text;
  if (const auto* c = std::get_if<SubmitJob>(command)) text += ":" + words(c->job);
  if (const auto* c = std::get_if<PutNode>(command)) text += ":" + words(c->node);
  if (const auto* c = std::get_if<PutTenant>(command)) text += ":" + words(c->tenant);
  if (const auto* c = std::get_if<SetConfig>(command)) text += ":" + words(c->config);
  return text;
}

}  // namespace gs
