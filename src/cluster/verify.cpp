// Cluster::verify: every total from scratch, out of the tasks alone, against the books that are
// kept by difference. It shares no arithmetic with NodeState::charge, so a slip there shows here.
//
// More used than there is, of CPU, memory and named resources, is legal: a report may shrink a
// node under its tasks. A GPU and a MIG instance are never over-committed.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "cluster/cluster.hpp"
#include "model/mig.hpp"

namespace gs {
namespace {

std::string text(const Ledger& l) {
  return "used " + std::to_string(l.used) + ", releasing " + std::to_string(l.releasing) +
         ", nominated " + std::to_string(l.nominated);
}

void same_ledger(const Ledger& kept, const Ledger& counted, const std::string& node,
                 const std::string& what) {
  const bool same = kept.used == counted.used && kept.releasing == counted.releasing &&
                    kept.nominated == counted.nominated;
  CHECK_MSG(same, "node " + node + ": " + what + " says " + text(kept) + "; its tasks hold " +
                      text(counted));
}

void add(Ledger& ledger, TaskState state, std::int64_t amount) {
  if (state == TaskState::Nominated) ledger.nominated += amount;
  if (state != TaskState::Nominated) ledger.used += amount;
  if (state == TaskState::Releasing) ledger.releasing += amount;
}

struct GpuCount {
  Ledger milli, memory_mib;
  int pins = 0, pins_releasing = 0;
  std::vector<PinOwner> pinned_by;   // not releasing
  std::int64_t exclusive_later = 0;  // whole-GPU tasks that have it or will have it
  std::int64_t sharers_later = 0;
};

// What the tasks of one node hold, counted anew.
struct NodeCount {
  Ledger cpu_milli, memory_bytes;
  std::vector<Ledger> named;
  std::vector<GpuCount> gpus;
  struct Instance {
    int gpu;
    int id;
    TaskState state;
  };
  std::vector<Instance> instances;
};

void count_gpu(GpuCount& gpu, const Task& task, const Shape& shape, std::int64_t capacity_mib) {
  const GpuRequest& ask = shape.request.gpu;
  const bool later = task.state != TaskState::Releasing;
  if (!ask.pinned_ids.empty()) {
    ++gpu.pins;
    gpu.pins_releasing += later ? 0 : 1;
    if (later) gpu.pinned_by.emplace_back(shape, task.job);
    return;
  }
  (shape.exclusive() ? gpu.exclusive_later : gpu.sharers_later) += later ? 1 : 0;
  const GpuPart part =
      shape.exclusive() ? GpuPart{kWholeGpu, capacity_mib} : gpu_part(ask, capacity_mib);
  add(gpu.milli, task.state, part.milli);
  add(gpu.memory_mib, task.state, part.memory_mib);
}

NodeCount count_node(const Cluster& cluster, const NodeState& node) {
  NodeCount count;
  count.gpus.resize(node.gpus.size());
  for (const TaskId id : node.tasks) {
    const Task& task = cluster.task(id);
    const Shape& shape = cluster.shape_of(task);
    add(count.cpu_milli, task.state, shape.request.resources.cpu_milli);
    add(count.memory_bytes, task.state, shape.request.resources.memory_bytes);
    for (const auto& [name, amount] : shape.named) {
      if (count.named.size() <= name) count.named.resize(name + 1);
      add(count.named[name], task.state, amount);
    }
    CHECK_MSG(task.place.gpus == 0 || std::bit_width(task.place.gpus) <= node.gpus.size(),
              "node " + node.spec.name + ": a task holds a GPU that is not there");
    for_each_gpu(task.place.gpus, [&](int gpu) {
      const auto i = static_cast<std::size_t>(gpu);
      count_gpu(count.gpus[i], task, shape, node.gpus[i].memory_mib.capacity);
    });
    for (const MigPick& pick : task.place.mig)
      count.instances.push_back({pick.gpu, pick.id, task.state});
  }
  return count;
}

void check_masks(const NodeState& node, int gpu, const GpuCount& count) {
  const GpuMask bit = gpu_bit(gpu);
  const std::int64_t later = count.milli.used - count.milli.releasing + count.milli.nominated;
  const bool now = count.milli.used + count.milli.nominated > 0 || count.pins > 0;
  const bool future = later > 0 || count.pins > count.pins_releasing;
  const bool part = (now || future) && count.pins == 0 &&
                    (count.milli.used + count.milli.nominated < kWholeGpu || later < kWholeGpu);
  const std::string of = "node " + node.spec.name + ": gpu " + std::to_string(gpu);
  CHECK_MSG(((node.busy_now & bit) != 0) == now, of + ": busy_now is wrong");
  CHECK_MSG(((node.busy_future & bit) != 0) == future, of + ": busy_future is wrong");
  CHECK_MSG(((node.partly & bit) != 0) == part, of + ": partly is wrong");
  const auto i = static_cast<std::size_t>(gpu);
  if (i >= node.spec.gpus.size()) return;
  CHECK_MSG(((node.healthy & bit) != 0) == (node.spec.gpus[i].health == Health::Healthy),
            of + ": the healthy mask is wrong");
  CHECK_MSG(((node.whole & bit) != 0) == !node.spec.gpus[i].mig_enabled,
            of + ": the whole mask is wrong");
}

void check_gpu(const NodeState& node, int gpu, const GpuCount& count) {
  const GpuState& kept = node.gpus[static_cast<std::size_t>(gpu)];
  const std::string name = "gpu " + std::to_string(gpu);
  const std::string of = "node " + node.spec.name + ": " + name;
  same_ledger(kept.milli, count.milli, node.spec.name, name + " milli");
  same_ledger(kept.memory_mib, count.memory_mib, node.spec.name, name + " memory");
  const std::int64_t later = count.milli.used - count.milli.releasing + count.milli.nominated;
  CHECK_MSG(count.milli.used <= kWholeGpu, of + " is held twice");
  CHECK_MSG(later <= kWholeGpu, of + " is promised twice");
  CHECK_MSG(count.exclusive_later == 0 || count.sharers_later == 0,
            of + " is shared and given away whole");
  CHECK_MSG(kept.pin_tasks == count.pins && kept.pin_releasing == count.pins_releasing,
            of + ": the count of pinned tasks is wrong");
  CHECK_MSG(later == 0 || count.pinned_by.empty(), of + " is pinned by one and used by another");
  for (const PinOwner& owner : count.pinned_by)
    CHECK_MSG(kept.pin_owner == owner, of + " is pinned by a job that does not own it");
  CHECK_MSG(!count.pinned_by.empty() || !kept.pin_owner.valid(),
            of + " has a pin owner without a pinned task");
  check_masks(node, gpu, count);
}

void check_instance(const NodeState& node, const MigGpuState& gpu, const MigSlotState& instance,
                    const NodeCount& count) {
  int used = 0;
  int releasing = 0;
  int nominated = 0;
  for (const auto& held : count.instances) {
    if (held.gpu != gpu.gpu || held.id != instance.id) continue;
    nominated += held.state == TaskState::Nominated ? 1 : 0;
    used += held.state != TaskState::Nominated ? 1 : 0;
    releasing += held.state == TaskState::Releasing ? 1 : 0;
  }
  const std::string of = "node " + node.spec.name + ": gpu " + std::to_string(gpu.gpu) +
                         " MIG instance " + std::to_string(instance.id);
  CHECK_MSG(used <= 1 && nominated <= 1, of + " is given away twice");
  CHECK_MSG(nominated == 0 || used == releasing, of + " is promised while somebody keeps it");
  CHECK_MSG(instance.used == (used > 0) && instance.releasing == (releasing > 0) &&
                instance.nominated == (nominated > 0),
            of + ": its state does not match its tasks");
}

void check_mig(const NodeState& node, const NodeCount& count) {
  std::size_t known = 0;
  for (const MigGpuState& gpu : node.mig) {
    std::uint8_t taken = 0;
    for (const MigSlotState& instance : gpu.instances) {
      check_instance(node, gpu, instance, count);
      for (const auto& held : count.instances)
        if (held.gpu == gpu.gpu && held.id == instance.id) ++known;
      if (instance.start < 0) continue;
      const std::uint8_t slots = mig_slots(instance.start, instance.size);
      CHECK_MSG((taken & slots) == 0, "node " + node.spec.name + ": gpu " +
                                          std::to_string(gpu.gpu) + ": MIG instances overlap");
      taken |= slots;
    }
  }
  CHECK_MSG(known == count.instances.size(),
            "node " + node.spec.name + ": a task holds a MIG instance that is not there");
}

void check_node(const Cluster& cluster, NodeId id) {
  const NodeState& node = cluster.node(id);
  CHECK_MSG(!node.gone || node.tasks.empty(), "node " + node.spec.name + " is gone and has tasks");
  if (node.gone) return;
  const NodeCount count = count_node(cluster, node);
  same_ledger(node.cpu_milli, count.cpu_milli, node.spec.name, "cpu");
  same_ledger(node.memory_bytes, count.memory_bytes, node.spec.name, "memory");
  for (std::size_t i = 0; i < std::max(node.named.size(), count.named.size()); ++i)
    same_ledger(i < node.named.size() ? node.named[i] : Ledger{},
                i < count.named.size() ? count.named[i] : Ledger{}, node.spec.name,
                cluster.shapes().resources().name(static_cast<std::uint32_t>(i)));
  for (std::size_t gpu = 0; gpu < node.gpus.size(); ++gpu)
    check_gpu(node, static_cast<int>(gpu), count.gpus[gpu]);
  check_mig(node, count);
}

struct TenantCount {
  Usage used, used_unpreemptible;
  std::vector<std::int64_t> milli_by_model;
  int running_jobs = 0;
};

std::string text(const Usage& u) {
  return std::to_string(u.gpu_milli) + " gpu_milli, " + std::to_string(u.gpu_memory_mib) +
         " gpu_memory_mib, " + std::to_string(u.cpu_milli) + " cpu_milli, " +
         std::to_string(u.memory_bytes) + " memory_bytes";
}

void check_tenant(const TenantRecord& kept, const TenantCount& count) {
  const std::string of = "tenant " + kept.spec.id + ": ";
  CHECK_MSG(kept.used == count.used,
            of + "books say " + text(kept.used) + "; its tasks hold " + text(count.used));
  CHECK_MSG(kept.used_unpreemptible == count.used_unpreemptible,
            of + "books of unpreemptible work say " + text(kept.used_unpreemptible) +
                "; its tasks hold " + text(count.used_unpreemptible));
  CHECK_MSG(kept.running_jobs == count.running_jobs,
            of + "counts " + std::to_string(kept.running_jobs) + " running jobs; there are " +
                std::to_string(count.running_jobs));
  for (std::size_t i = 0; i < std::max(kept.milli_by_model.size(), count.milli_by_model.size());
       ++i) {
    const auto of_model = [i](const std::vector<std::int64_t>& v) {
      return i < v.size() ? v[i] : 0;
    };
    CHECK_MSG(of_model(kept.milli_by_model) == of_model(count.milli_by_model),
              of + "books of GPU model " + std::to_string(i) + " are wrong");
  }
}

void count_task(const Cluster& cluster, const JobRecord& job, const Task& task,
                std::vector<TenantCount>& tenants) {
  const NodeState& node = cluster.node(task.place.node);
  int gpu = task.place.gpus != 0 ? std::countr_zero(task.place.gpus) : -1;
  if (gpu < 0 && !task.place.mig.empty()) gpu = task.place.mig.front().gpu;
  const auto i = static_cast<std::size_t>(gpu);
  const Usage usage = usage_of(cluster.shape_of(task), gpu < 0 ? 0 : node.spec.gpus[i].memory_mib);
  for (TenantId id = job.tenant; id.valid(); id = cluster.tenant(id).parent) {
    TenantCount& books = tenants[id.index()];
    books.used += usage;
    if (!job.preemptible) books.used_unpreemptible += usage;
    if (gpu < 0) continue;
    const std::uint32_t model = node.layout->model[i];
    if (books.milli_by_model.size() <= model) books.milli_by_model.resize(model + 1);
    books.milli_by_model[model] += usage.gpu_milli;
  }
}

void check_job(const Cluster& cluster, JobId id, std::vector<TenantCount>& tenants) {
  const JobRecord& job = cluster.job(id);
  const std::string of = "job " + job.id + ": ";
  std::vector<std::uint16_t> active(cluster.shape_of(id).groups.size(), 0);
  int all = 0;
  int nominated = 0;
  int releasing = 0;
  int started = 0;
  std::vector<std::pair<int, int>> ranks;
  for (const TaskId task_id : job.tasks) {
    const Task& task = cluster.task(task_id);
    CHECK_MSG(task.job == id, of + "lists a task of another job");
    releasing += task.state == TaskState::Releasing ? 1 : 0;
    started += task.started ? 1 : 0;
    if (task.state == TaskState::Releasing) continue;
    nominated += task.state == TaskState::Nominated ? 1 : 0;
    ++active[task.group];
    ++all;
    ranks.emplace_back(task.group, task.rank);
    CHECK_MSG(task.rank >= 0 && task.rank < cluster.shape_of(id).groups[task.group].count,
              of + "has a task beyond its count");
    count_task(cluster, job, task, tenants);
  }
  std::sort(ranks.begin(), ranks.end());
  CHECK_MSG(std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end(),
            of + "one of its tasks has two places");
  CHECK_MSG(job.active == active && job.active_tasks == all, of + "active tasks are miscounted");
  CHECK_MSG(job.nominated_tasks == nominated, of + "nominated tasks are miscounted");
  CHECK_MSG(job.releasing_tasks == releasing, of + "releasing tasks are miscounted");
  CHECK_MSG(job.started_tasks == started, of + "started tasks are miscounted");
  if (all == 0) return;
  for (TenantId t = job.tenant; t.valid(); t = cluster.tenant(t).parent)
    ++tenants[t.index()].running_jobs;
}

}  // namespace

void Cluster::verify() const {
  std::size_t on_nodes = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    check_node(*this, NodeId{i});
    on_nodes += nodes_[i].tasks.size();
    for (const TaskId id : nodes_[i].tasks)
      CHECK_MSG(task(id).place.node == NodeId{i}, "node lists a task of another node");
  }
  std::vector<TenantCount> count(tenants_.size());
  std::size_t of_jobs = 0;
  std::size_t named = 0;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    of_jobs += jobs_[i].tasks.size();
    if (jobs_[i].id.empty()) continue;  // a free record
    ++named;
    CHECK_MSG(find_job(jobs_[i].id) == JobId{i}, "job " + jobs_[i].id + " is not found by its id");
    check_job(*this, JobId{i}, count);
  }
  CHECK_MSG(named == job_by_id_.size(), "jobs and their ids do not match");
  CHECK_MSG(on_nodes == of_jobs && of_jobs + free_tasks_.size() == tasks_.size(),
            "a task is lost between nodes, jobs and free records");
  for (std::size_t i = 0; i < tenants_.size(); ++i) check_tenant(tenants_[i], count[i]);
  if (total_stale_) return;
  const Usage kept = total_;
  total_stale_ = true;
  CHECK_MSG(total() == kept, "the total is out of date: kept " + text(kept));
}

}  // namespace gs
