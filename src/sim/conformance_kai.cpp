// Runs cases of suite kai: the cluster is set up as given, cycles run with the phases of the case,
// and between rounds the world does what it was told: what was evicted is gone, what was nominated
// asks again.
#include <algorithm>
#include <functional>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cycle/cycle.hpp"
#include "placement/devices.hpp"
#include "queue/members.hpp"
#include "sim/conformance.hpp"
#include "sim/kai_case.hpp"

namespace gs {
namespace {

constexpr Instant kNow{1'000'000'000};

Config config_for(const KaiCase& c) {
  Config config;
  config.strategy = Strategy::Consolidated;
  config.weights = {1.0, 0.0, 0.0, 0.0};
  config.implicit_topology = false;
  config.phases = c.actions;
  config.aging_per_hour = 0;
  config.reservations = 0;
  config.consolidation = true;
  config.max_moves = 0;
  return config;
}

struct TaskNow {
  std::string state;
  std::string node;
  bool operator==(const TaskNow&) const = default;
};

class KaiRun {
 public:
  explicit KaiRun(const KaiCase& c)
      : c_(c),
        config_(config_for(c)),
        placer_(cluster_, config_),
        queue_(cluster_),
        cycle_(cluster_, config_, placer_, queue_) {
    cluster_.shapes().set_mig_slice_milli(kWholeGpu);  // this suite counts slices as GPUs
    cycle_.verify_after_phases(true);
    build();
  }

  void round() {
    enqueue();
    cycle_.run(kNow);
  }

  // What a driver would have done by the next round.
  void carry_out() {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      queue_.erase(jobs_[i]);
      for (const TaskId id : std::vector<TaskId>(cluster_.job(jobs_[i]).tasks)) {
        const TaskState state = cluster_.task(id).state;
        const bool leaves = state == TaskState::Releasing && !c_.jobs[i].being_deleted;
        if (leaves || state == TaskState::Nominated) cluster_.remove_task(id);
      }
    }
    cycle_.nominated().clear();
  }

  TaskNow now(std::size_t job, const KaiTask& task) const {
    TaskNow found{task.state == "pending" || task.state == "pipelined" ? "pending" : "evicted", ""};
    for (const TaskId id : cluster_.job(jobs_[job]).tasks) {
      const Task& t = cluster_.task(id);
      if (t.group != task.group || t.rank != task.rank) continue;
      const std::string& node = cluster_.node(t.place.node).spec.name;
      if (t.state == TaskState::Running) return {"running", node};
      if (t.state == TaskState::Nominated) return {"pipelined", node};
      found = {task.state == "releasing" ? "releasing" : "evicted", node};
    }
    return found;
  }

  std::int64_t accepted_gpu_milli(std::size_t job) const {
    std::int64_t sum = 0;
    for (const TaskId id : cluster_.job(jobs_[job]).tasks)
      sum += cluster_.usage(cluster_.task(id)).gpu_milli;
    return sum;
  }

  KaiNodeExpect gpus_of(const std::string& name) const {
    const NodeState& node = cluster_.node(cluster_.find_node(name));
    KaiNodeExpect gpus;
    for (const GpuState& gpu : node.gpus) {
      const bool leaving = gpu.milli.used > 0 && gpu.milli.releasing == gpu.milli.used;
      gpus.idle_gpus += gpu.milli.used == 0 ? 1 : 0;
      gpus.releasing_gpus += leaving ? 1 : 0;
      gpus.releasing_gpus -=
          gpu.milli.nominated > 0 && gpu.milli.used == gpu.milli.releasing ? 1 : 0;
    }
    return gpus;
  }

 private:
  void build() {
    cluster_.set_topology(c_.levels);
    for (const Node& node : c_.nodes) cluster_.put_node(node);
    for (const Tenant& tenant : c_.tenants)
      cluster_.tenant(cluster_.put_tenant(tenant)).decayed_at = kNow;
    for (const KaiJob& job : c_.jobs)
      jobs_.push_back(cluster_.add_job(job.job, cluster_.find_tenant(job.job.tenant)));
    // Those that share a GPU first: they say which one.
    for (const bool shared : {true, false})
      for (std::size_t j = 0; j < c_.jobs.size(); ++j)
        for (const KaiTask& task : c_.jobs[j].tasks)
          if (task.state != "pending" && shared == is_shared(j, task)) occupy(j, task);
    for (const Node& node : c_.nodes) refuse_overcommitted(node.name);
  }

  void refuse_overcommitted(const std::string& name) const {
    for (const GpuState& gpu : cluster_.node(cluster_.find_node(name)).gpus)
      if (gpu.milli.free(View::Now) < 0 || gpu.milli.free(View::Future) < 0)
        throw std::runtime_error("more runs on a GPU of " + name + " than it holds");
  }

  const Shape& shape(std::size_t job, const KaiTask& task) const {
    return cluster_.shapes().at(shape_of(cluster_, jobs_[job], task.group));
  }
  bool is_shared(std::size_t job, const KaiTask& task) const {
    return shape(job, task).request.gpu.sharing == Sharing::Shared;
  }

  // A device of its own, or that of its GPU group.
  int device(const KaiTask& task, std::size_t i, GpuMask taken) {
    int* known = nullptr;
    if (i < task.gpu_groups.size()) {
      known = &devices_.try_emplace(task.node + "/" + task.gpu_groups[i], -1).first->second;
      if (*known >= 0) return *known;
    }
    const NodeState& node = cluster_.node(cluster_.find_node(task.node));
    const GpuMask free =
        node.whole & ~taken & ~named_[task.node] & ~(node.busy_now | node.busy_future);
    if (free == 0) throw std::runtime_error(task.name + ": no GPU of " + task.node + " is left");
    const int gpu = std::countr_zero(free);
    if (known != nullptr) {
      *known = gpu;
      named_[task.node] |= gpu_bit(gpu);
    }
    return gpu;
  }

  void occupy(std::size_t job, const KaiTask& task) {
    const NodeId node = cluster_.find_node(task.node);
    Allocation place{node, 0, {}};
    if (is_shared(job, task)) {
      for (int i = 0; i < shape(job, task).gpus(); ++i)
        place.gpus |= gpu_bit(device(task, static_cast<std::size_t>(i), place.gpus));
    } else if (const auto chosen =
                   chooser_.choose(cluster_, node, shape(job, task), View::Now, jobs_[job])) {
      place = *chosen;
    } else if (const auto later =
                   chooser_.choose(cluster_, node, shape(job, task), View::Future, jobs_[job])) {
      place = *later;
    }
    const TaskState state = task.state == "running"     ? TaskState::Running
                            : task.state == "releasing" ? TaskState::Releasing
                                                        : TaskState::Nominated;
    cluster_.place(jobs_[job], task.group, task.rank, place, state, kNow);
    cluster_.job(jobs_[job]).started = kNow;
    cluster_.job(jobs_[job]).state = JobState::Running;
  }

  void enqueue() {
    for (const JobId job : jobs_) {
      queue_.erase(job);
      if (!waiting_members(cluster_, job, nullptr).empty()) queue_.push(job);
    }
  }

  const KaiCase& c_;
  Config config_;
  Cluster cluster_;
  Placer placer_;
  Queue queue_;
  Cycle cycle_;
  DeviceChooser chooser_;
  std::vector<JobId> jobs_;
  std::map<std::string, int> devices_;    // by node and GPU group
  std::map<std::string, GpuMask> named_;  // devices that a GPU group has
};

// Names of nodes may differ where nodes are twins: what is together there must be together here.
class Renaming {
 public:
  explicit Renaming(const KaiCase& c) : c_(c) {}
  bool same(const std::string& theirs, const std::string& ours) {
    if (theirs.empty()) return true;
    const auto there = to_.find(theirs);
    if (there != to_.end()) return there->second == ours;
    for (const auto& [a, b] : to_)
      if (b == ours || !alike(a, theirs, b, ours)) return false;
    if (!twins(theirs, ours)) return false;
    to_[theirs] = ours;
    return true;
  }

 private:
  const Node& node(const std::string& name) const {
    return *std::find_if(c_.nodes.begin(), c_.nodes.end(),
                         [&](const Node& n) { return n.name == name; });
  }
  bool twins(const std::string& a, const std::string& b) const {
    const Node &x = node(a), &y = node(b);
    return x.capacity == y.capacity && x.gpus == y.gpus && load(a) == load(b);
  }
  std::vector<std::string> load(const std::string& name) const {
    std::vector<std::string> tasks;
    for (const KaiJob& job : c_.jobs)
      for (const KaiTask& task : job.tasks)
        if (task.node == name)
          tasks.push_back(fmt::format(
              "{}", job.job.groups[static_cast<std::size_t>(task.group)].request.gpu.count));
    std::sort(tasks.begin(), tasks.end());
    return tasks;
  }
  // The two nodes there meet at the same level as the two nodes here.
  bool alike(const std::string& a, const std::string& b, const std::string& x,
             const std::string& y) const {
    const auto meet = [&](const Node& m, const Node& n) {
      std::size_t level = 0;
      while (level < m.domain.size() && level < n.domain.size() &&
             m.domain[level] == n.domain[level])
        ++level;
      return level;
    };
    return meet(node(a), node(b)) == meet(node(x), node(y));
  }

  const KaiCase& c_;
  std::map<std::string, std::string> to_;
};

// First difference, or nothing.
std::string difference(const KaiCase& c, const KaiRun& run) {
  Renaming renaming(c);
  const bool nodes = c.compare != "state";
  for (std::size_t j = 0; j < c.jobs.size(); ++j)
    for (const KaiTask& task : c.jobs[j].tasks) {
      const auto it = c.tasks.find(task.name);
      if (it == c.tasks.end()) continue;
      const KaiExpect& want = it->second;
      const TaskNow have = run.now(j, task);
      if (have.state != want.state)
        return fmt::format("{} is {}, expected {}", task.name, have.state, want.state);
      const bool placed = have.state != "pending" && have.state != "evicted";
      if (!nodes || !placed || want.node.empty() || want.node == have.node) continue;
      if (c.compare == "exact" || !renaming.same(want.node, have.node))
        return fmt::format("{} is on {}, expected {}", task.name, have.node, want.node);
    }
  for (std::size_t j = 0; j < c.jobs.size(); ++j)
    if (const auto it = c.accepted_gpu_milli.find(c.jobs[j].job.id);
        it != c.accepted_gpu_milli.end() && it->second != run.accepted_gpu_milli(j))
      return fmt::format("{} has {} milli-GPU, expected {}", it->first, run.accepted_gpu_milli(j),
                         it->second);
  for (const auto& [name, want] : c.node_gpus) {
    const KaiNodeExpect have = run.gpus_of(name);
    if (have.idle_gpus != want.idle_gpus || have.releasing_gpus != want.releasing_gpus)
      return fmt::format("{} has {} GPUs idle and {} releasing, expected {} and {}", name,
                         have.idle_gpus, have.releasing_gpus, want.idle_gpus, want.releasing_gpus);
  }
  return {};
}

void show_sections(const KaiCase& c, const KaiRun& run, CaseResult& result) {
  CaseResult::Section cluster{"cluster", {}}, expected{"expected", {}}, ours{"ours", {}};
  for (const Node& node : c.nodes)
    cluster.lines.push_back(
        fmt::format("{}: {} GPUs {}", node.name, node.gpus.size(), fmt::join(node.domain, "/")));
  for (const Tenant& t : c.tenants)
    cluster.lines.push_back(
        fmt::format("tenant {} under '{}': guaranteed {}, limit {} milli-GPU, weight {}", t.id,
                    t.parent, t.guaranteed.gpu_milli, t.limit.gpu_milli, t.over_quota_weight));
  for (std::size_t j = 0; j < c.jobs.size(); ++j)
    for (const KaiTask& task : c.jobs[j].tasks) {
      const Job& job = c.jobs[j].job;
      cluster.lines.push_back(fmt::format("{} of {}, priority {}{}: {} {}", task.name, job.tenant,
                                          job.priority, job.preemptible ? "" : ", not preemptible",
                                          task.state, task.node));
      if (const auto it = c.tasks.find(task.name); it != c.tasks.end())
        expected.lines.push_back(
            fmt::format("{}: {} {}", task.name, it->second.state, it->second.node));
      const TaskNow have = run.now(j, task);
      ours.lines.push_back(fmt::format("{}: {} {}", task.name, have.state, have.node));
    }
  result.sections = {cluster, expected, ours};
}

}  // namespace

CaseResult run_kai_case(const nlohmann::json& json, bool show) {
  const KaiCase c = read_kai_case(json);
  KaiRun run(c);
  const bool full = c.actions.size() > 1;
  for (int i = 0; i < c.rounds; ++i) {
    run.round();
    if (full) run.carry_out();
  }
  CaseResult result;
  result.why = difference(c, run);
  for (int i = 0; i < c.stable_rounds && result.why.empty(); ++i) {
    run.round();
    result.why = difference(c, run);
    if (!result.why.empty()) result.why = fmt::format("not stable: {}", result.why);
    if (result.why.empty()) run.carry_out();
  }
  result.passed = result.why.empty();
  if (result.passed) result.why = fmt::format("as expected after {} round(s)", c.rounds);
  if (show) show_sections(c, run, result);
  return result;
}

}  // namespace gs
