// Nodes and their devices: what they report, and what follows from it.
#include <algorithm>
#include <tuple>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "cluster/cluster.hpp"
#include "model/mig.hpp"

namespace gs {

void Cluster::set_topology(std::vector<std::string> levels) {
  domains_ = DomainTree{};
  domains_.set_levels(std::move(levels));
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (!nodes_[i].gone)
      nodes_[i].domain = domains_.attach(NodeId{i}, nodes_[i].spec.name, nodes_[i].spec.domain);
  ++structure_version_;
}

const Layout* Cluster::intern(const Layout& layout) {
  for (const Layout& known : layouts_)
    if (known == layout) return &known;
  layouts_.push_back(layout);
  return &layouts_.back();
}

void Cluster::touch(NodeId id) {
  // Readers further behind than this rebuild; it costs them less than walking a longer log.
  const std::size_t keep = std::max<std::size_t>(1024, nodes_.size());
  if (log_.size() >= 2 * keep) {
    log_.erase(log_.begin(), log_.begin() + static_cast<std::ptrdiff_t>(keep));
    log_base_ += keep;
  }
  log_.push_back(id);
}

namespace {

bool overlaps(const MigGpuState& gpu, const MigSlotState& instance) {
  return instance.start >= 0 &&
         std::any_of(gpu.instances.begin(), gpu.instances.end(), [&](const MigSlotState& other) {
           return other.start >= 0 && (mig_slots(other.start, other.size) &
                                       mig_slots(instance.start, instance.size)) != 0;
         });
}

// Whether the device under a task would be another one after this report.
bool other_device(const Node& before, const Node& after, int gpu) {
  const auto i = static_cast<std::size_t>(gpu);
  if (i >= after.gpus.size()) return true;
  const Gpu& a = before.gpus[i];
  const Gpu& b = after.gpus[i];
  return a.model != b.model || a.memory_mib != b.memory_mib || a.mig_enabled != b.mig_enabled ||
         (!a.uuid.empty() && !b.uuid.empty() && a.uuid != b.uuid);
}

}  // namespace

std::vector<TaskId> Cluster::displaced_by(const Node& spec) const {
  std::vector<TaskId> displaced;
  const NodeId id = find_node(spec.name);
  if (!id.valid() || node(id).gone) return displaced;
  for (const TaskId task_id : node(id).tasks) {
    const Allocation& place = task(task_id).place;
    bool lost = false;
    for_each_gpu(place.gpus, [&](int gpu) { lost |= other_device(node(id).spec, spec, gpu); });
    for (const MigPick& pick : place.mig) lost |= other_device(node(id).spec, spec, pick.gpu);
    if (lost) displaced.push_back(task_id);
  }
  std::sort(displaced.begin(), displaced.end(), [&](TaskId a, TaskId b) {
    const Task& x = task(a);
    const Task& y = task(b);
    return std::tuple(job(x.job).seq, x.group, x.rank, x.state) <
           std::tuple(job(y.job).seq, y.group, y.rank, y.state);
  });
  return displaced;
}

void Cluster::apply_spec(NodeState& node, const Node& spec) {
  node.spec = spec;
  node.layout = intern(layout_of(spec, shapes_.models()));
  node.cpu_milli.capacity = spec.capacity.cpu_milli;
  node.memory_bytes.capacity = spec.capacity.memory_bytes;
  for (auto& ledger : node.named) ledger.capacity = 0;
  for (const auto& [name, amount] : spec.capacity.named) {
    const std::uint32_t id = shapes_.resources().intern(name);
    if (node.named.size() <= id) node.named.resize(id + 1);
    node.named[id].capacity = amount;
  }
  node.gpus.resize(spec.gpus.size());
  node.hot &= first_gpus(static_cast<int>(spec.gpus.size()));
  node.warm &= first_gpus(static_cast<int>(spec.gpus.size()));
  node.busy_now = node.busy_future = node.partly = 0;
  node.healthy = node.whole = 0;
  std::vector<MigGpuState> mig;
  for (std::size_t i = 0; i < spec.gpus.size(); ++i) {
    const Gpu& gpu = spec.gpus[i];
    const GpuMask bit = gpu_bit(static_cast<int>(i));
    node.gpus[i].memory_mib.capacity = gpu.memory_mib;
    if (gpu.health == Health::Healthy) node.healthy |= bit;
    if (!gpu.mig_enabled) node.whole |= bit;
    if (!gpu.mig_enabled) continue;
    // Instances that tasks use keep their ids; the others are taken from the report.
    MigGpuState state{static_cast<int>(i), gpu.mig_dynamic, 1, {}};
    if (const MigGpuState* old = node.mig_gpu(static_cast<int>(i))) {
      state.next_id = old->next_id;
      for (const auto& instance : old->instances)
        if (instance.used || instance.nominated) state.instances.push_back(instance);
    }
    std::vector<bool> matched(state.instances.size(), false);
    for (const auto& reported : gpu.mig) {
      const std::uint32_t profile =
          shapes_.resources().intern("mig:" + canonical_mig_profile(reported.profile));
      bool known = false;
      for (std::size_t k = 0; k < matched.size() && !known; ++k) {
        const auto& instance = state.instances[k];
        if (matched[k] || instance.profile != profile) continue;
        if (reported.start >= 0 && instance.start != reported.start) continue;
        matched[k] = known = true;
      }
      if (known) continue;
      const MigProfile* geometry =
          find_mig_profile(gpu.model, gpu.memory_mib, canonical_mig_profile(reported.profile));
      const MigSlotState instance{
          profile,
          static_cast<std::int8_t>(reported.start),
          static_cast<std::uint8_t>(geometry != nullptr ? geometry->size : 1),
          state.next_id,
          false,
          false,
          false};
      if (overlaps(state, instance)) continue;  // the report is older than what we gave away there
      state.instances.push_back(instance);
      ++state.next_id;
    }
    state.sort_by_start();
    mig.push_back(std::move(state));
  }
  node.mig = std::move(mig);
  for (int i = 0; i < static_cast<int>(spec.gpus.size()); ++i) node.refresh_gpu(i);
}

NodeId Cluster::put_node(const Node& spec) {
  CHECK_MSG(displaced_by(spec).empty(), "node " + spec.name + " takes devices from its tasks");
  NodeId id = find_node(spec.name);
  const bool known = id.valid() && !node(id).gone;
  if (!id.valid()) {
    id = NodeId{nodes_.size()};
    nodes_.emplace_back();
    node_by_name_.emplace(spec.name, id);
  }
  NodeState& state = nodes_[id.index()];
  if (!known) {  // one that returns is a new one: nothing of its past decides
    const std::uint32_t stamp = state.spec_stamp;
    state = NodeState{};
    state.spec_stamp = stamp;
  }
  if (!known || state.spec.domain != spec.domain) {
    if (known) domains_.detach(id, state.domain);
    state.domain = domains_.attach(id, spec.name, spec.domain);
    state.gone = false;
    ++structure_version_;
  }
  if (state.spec.gpus.size() != spec.gpus.size()) ++structure_version_;
  apply_spec(state, spec);
  ++state.spec_stamp;
  ++spec_version_;
  touch(id);
  total_stale_ = true;
  return id;
}

void Cluster::remove_node(NodeId id) {
  NodeState& node = nodes_[id.index()];
  CHECK(!node.gone && node.tasks.empty());
  domains_.detach(id, node.domain);
  node.gone = true;
  ++spec_version_;
  ++structure_version_;
  touch(id);
  total_stale_ = true;
}

void Cluster::set_ready(NodeId id, bool ready) {
  if (nodes_[id.index()].spec.ready != ready) ++spec_version_;
  nodes_[id.index()].spec.ready = ready;
  ++nodes_[id.index()].spec_stamp;
  touch(id);
  total_stale_ = true;
}

void Cluster::set_cordoned(NodeId id, bool cordoned) {
  if (nodes_[id.index()].spec.cordoned != cordoned) ++spec_version_;
  nodes_[id.index()].spec.cordoned = cordoned;
  ++nodes_[id.index()].spec_stamp;
  touch(id);
  total_stale_ = true;
}

void Cluster::set_gpu(NodeId id, int gpu, Health health, Heat heat) {
  NodeState& node = nodes_[id.index()];
  const GpuMask bit = gpu_bit(gpu);
  Gpu& spec = node.spec.gpus[static_cast<std::size_t>(gpu)];
  const bool was_healthy = spec.health == Health::Healthy;
  const GpuMask usable = node.usable();
  spec.health = health;
  spec.temperature_c = heat.temperature_c;
  node.healthy = health == Health::Healthy ? node.healthy | bit : node.healthy & ~bit;
  node.hot = heat.hot ? node.hot | bit : node.hot & ~bit;
  node.warm = heat.warm ? node.warm | bit : node.warm & ~bit;
  if (node.usable() != usable) ++spec_version_;
  touch(id);
  if (was_healthy != (health == Health::Healthy)) total_stale_ = true;
}

void Cluster::set_hot(NodeId id, GpuMask hot) {
  if (nodes_[id.index()].hot != hot) ++spec_version_;
  nodes_[id.index()].hot = hot;
  touch(id);
}

void Cluster::set_mig(NodeId id, const std::vector<MigPlace>& instances) {
  NodeState& node = nodes_[id.index()];
  for (MigGpuState& gpu : node.mig) {
    gpu.instances.clear();
    const Gpu& spec = node.spec.gpus[static_cast<std::size_t>(gpu.gpu)];
    for (const MigPlace& place : instances) {
      if (place.gpu != gpu.gpu) continue;
      const MigProfile* geometry = find_mig_profile(spec.model, spec.memory_mib, place.profile);
      gpu.instances.push_back({shapes_.resources().intern("mig:" + place.profile),
                               static_cast<std::int8_t>(place.start),
                               static_cast<std::uint8_t>(geometry != nullptr ? geometry->size : 1),
                               gpu.next_id++, false, false, false});
    }
  }
  touch(id);
}

void Cluster::set_performance(NodeId id, double performance) {
  nodes_[id.index()].performance = performance;
  touch(id);
}

namespace {

// A GPU that may be cut anew counts as a whole one; else it is worth what it is cut into.
std::int64_t mig_total(const ShapeTable& shapes, const MigGpuState& gpu) {
  if (gpu.dynamic) return kWholeGpu;
  int slices = 0;
  for (const auto& instance : gpu.instances)
    slices += mig_compute_slices(shapes.resources().name(instance.profile).substr(4));  // "mig:"
  return shapes.mig_milli(slices);
}

}  // namespace

const Usage& Cluster::total() const {
  if (!total_stale_) return total_;
  total_stale_ = false;
  total_ = {};
  smallest_gpu_memory_mib_ = largest_gpu_memory_mib_ = 0;
  for (const NodeState& node : nodes_) {
    if (!node.schedulable()) continue;
    total_.cpu_milli += node.cpu_milli.capacity;
    total_.memory_bytes += node.memory_bytes.capacity;
    for_each_gpu(node.healthy & node.whole, [&](int gpu) {
      const std::int64_t memory = node.gpus[static_cast<std::size_t>(gpu)].memory_mib.capacity;
      total_.gpu_milli += kWholeGpu;
      total_.gpu_memory_mib += memory;
      if (memory > 0 && (smallest_gpu_memory_mib_ == 0 || memory < smallest_gpu_memory_mib_))
        smallest_gpu_memory_mib_ = memory;
      largest_gpu_memory_mib_ = std::max(largest_gpu_memory_mib_, memory);
    });
    for (const auto& gpu : node.mig)
      if ((node.healthy & gpu_bit(gpu.gpu)) != 0) total_.gpu_milli += mig_total(shapes_, gpu);
  }
  return total_;
}

}  // namespace gs
