// Cluster::hash: the content by names and in canonical orders, without internal numbers. What
// follows from the rest (ledgers, usage, counters) is verify()'s business and left out.
#include "base/hash.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <type_traits>
#include <vector>

#include "cluster/cluster.hpp"

namespace gs {
namespace {

template <typename Number>
requires std::is_integral_v<Number> || std::is_enum_v<Number>
void put(Hash& h, Number value) { h.add(static_cast<std::uint64_t>(value)); }
void put(Hash& h, double value) { h.add(std::bit_cast<std::uint64_t>(value)); }
void put(Hash& h, const std::string& text) { h.add(text); }
void put(Hash& h, Instant t) { put(h, t.ms); }

template <typename... Values>
void put_all(Hash& h, const Values&... values) {
  (put(h, values), ...);
}

void put(Hash& h, Resources r) {
  std::sort(r.named.begin(), r.named.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  put_all(h, r.cpu_milli, r.memory_bytes, r.named.size());
  for (const auto& [name, amount] : r.named) put_all(h, name, amount);
}

void put(Hash& h, const Gpu& gpu) {
  put_all(h, gpu.uuid, gpu.model, gpu.memory_mib, gpu.health, gpu.temperature_c, gpu.island,
          gpu.bandwidth_gbps, gpu.numa, gpu.mig_enabled, gpu.mig_dynamic);
}

void put(Hash& h, const Node& node) {
  put(h, node.name);
  put(h, node.capacity);
  put(h, node.gpus.size());
  for (const Gpu& gpu : node.gpus) put(h, gpu);
  for (const int gbps : node.peer_bandwidth_gbps) put(h, gbps);
  for (const auto& [key, value] : node.labels) put_all(h, key, value);
  for (const Taint& taint : node.taints) put_all(h, taint.key, taint.value, taint.effect);
  for (const auto& name : node.domain) put(h, name);
  put_all(h, node.fabric.rdma_ports, node.fabric.rdma_gbps, node.fabric.gpudirect_rdma,
          node.fabric.cufile, node.ready, node.cordoned);
}

void put(Hash& h, const NodeState& node, const Names& resources) {
  put(h, node.spec);
  put_all(h, node.hot, node.warm, node.performance);
  for (const MigGpuState& gpu : node.mig) {
    put_all(h, gpu.gpu, gpu.dynamic, gpu.instances.size());
    for (const MigSlotState& i : gpu.instances)
      put_all(h, resources.name(i.profile), i.start, i.size, i.used, i.releasing, i.nominated);
  }
}

void put(Hash& h, const Tenant& t) {
  put_all(h, t.id, t.name, t.parent, t.priority, t.tier, t.guaranteed.gpu_milli,
          t.guaranteed.cpu_milli, t.guaranteed.memory_bytes, t.limit.gpu_milli,
          t.limit.gpu_memory_mib, t.limit.cpu_milli, t.limit.memory_bytes, t.limit.running_jobs);
  for (const auto& [model, gpus] : t.limit.gpus_by_model) put_all(h, model, gpus);
  put_all(h, t.over_quota_weight, t.allow_preemption, t.can_preempt_others, t.max_queue,
          t.created_order);
}

void put(Hash& h, const TaskRequest& r) {
  const GpuRequest& g = r.gpu;
  put_all(h, g.count, g.sharing, g.milli, g.memory_mib, g.min_memory_mib, g.quota_memory_mib,
          g.policy, g.topology, g.min_bandwidth_gbps);
  for (const auto& ask : g.mig) put_all(h, ask.profile, ask.count);
  for (const auto& model : g.models) put(h, model);
  for (const int id : g.prefer_ids) put(h, id);
  for (const int id : g.pinned_ids) put(h, id);
  put(h, g.pin_group);
  put(h, r.resources);
  for (const auto& [key, value] : r.selector) put_all(h, key, value);
  for (const auto& node : r.only_nodes) put(h, node);
  put_all(h, r.affinity.size(), r.preferred_affinity.size(), r.tolerations.size(), r.rdma, r.cufile,
          r.min_network_gbps, r.strategy, r.preferred_domain, r.latency_sensitive);
}

void put(Hash& h, const JobShape& shape, const ShapeTable& shapes) {
  for (const GroupSet& set : shape.sets)
    put_all(h, set.name, set.parent, set.topology.required_level, set.topology.preferred_level,
            set.min_children);
  for (const ShapedGroup& g : shape.groups) {
    put_all(h, g.name, g.count, g.min, g.set, g.topology.required_level, g.topology.preferred_level,
            g.slices.size());
    for (const Slice& slice : g.slices) put_all(h, slice.level, slice.size);
    put(h, shapes.at(g.shape).request);
  }
}

void put(Hash& h, const Task& task, const Cluster& cluster) {
  put_all(h, task.group, task.rank, task.state, cluster.node(task.place.node).spec.name,
          task.place.gpus, task.since, task.started, task.place.mig.size());
  for (const MigPick& pick : task.place.mig)
    put_all(h, pick.gpu, pick.start, pick.size, cluster.shapes().resources().name(pick.profile));
}

void put(Hash& h, const JobRecord& job, const Cluster& cluster) {
  put_all(h, job.id, job.name, cluster.tenant(job.tenant).spec.id, job.priority, job.arrived,
          job.submitted, job.started, job.waiting_since, job.expected_runtime_ms,
          job.max_runtime_ms, job.min_runtime_ms, job.start_timeout_ms, job.ran_ms, job.preemptions,
          job.max_preemptions, job.disruption_budget, job.state, job.preemptible,
          job.can_preempt_others, job.checkpointable, job.movable, job.ends_as);
  for (const auto& [key, value] : job.labels) put_all(h, key, value);
  auto ended = job.ended;
  std::sort(ended.begin(), ended.end());
  for (const auto& [group, rank] : ended) put_all(h, group, rank);
  put(h, cluster.shapes().at(job.shape), cluster.shapes());
  std::vector<TaskId> tasks = job.tasks;
  std::sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) {
    const Task& x = cluster.task(a);
    const Task& y = cluster.task(b);
    if (x.group != y.group) return x.group < y.group;
    if (x.rank != y.rank) return x.rank < y.rank;
    if (x.state != y.state) return x.state < y.state;
    // A task may be releasing at several places, but never twice at one device.
    const std::string& on_x = cluster.node(x.place.node).spec.name;
    const std::string& on_y = cluster.node(y.place.node).spec.name;
    return on_x != on_y ? on_x < on_y : x.place.gpus < y.place.gpus;
  });
  put(h, tasks.size());
  for (const TaskId id : tasks) put(h, cluster.task(id), cluster);
}

// Ids of what is there, in the order of a key that has nothing to do with ids.
template <typename Records, typename There, typename Key>
std::vector<std::size_t> sorted(const Records& records, There there, Key key) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < records.size(); ++i)
    if (there(records[i])) order.push_back(i);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return key(records[a]) < key(records[b]); });
  return order;
}

}  // namespace

std::uint64_t Cluster::hash() const {
  Hash h;
  for (const auto& level : domains_.levels()) put(h, level);
  const auto nodes = sorted(
      nodes_, [](const NodeState& n) { return !n.gone; },
      [](const NodeState& n) -> const std::string& { return n.spec.name; });
  for (const std::size_t i : nodes) put(h, nodes_[i], shapes_.resources());
  const auto tenants = sorted(
      tenants_, [](const TenantRecord& t) { return !t.gone; },
      [](const TenantRecord& t) -> const std::string& { return t.spec.id; });
  for (const std::size_t i : tenants) {
    put(h, tenants_[i].spec);
    put_all(h, tenants_[i].decayed_gpu_hours, tenants_[i].decayed_at);
  }
  const auto jobs = sorted(
      jobs_, [](const JobRecord& j) { return !j.id.empty(); },
      [](const JobRecord& j) { return j.seq; });
  for (const std::size_t i : jobs) put(h, jobs_[i], *this);
  put_all(h, nodes.size(), tenants.size(), jobs.size(), next_seq_);
  return h.value();
}

}  // namespace gs
