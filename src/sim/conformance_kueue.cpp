// Runs cases of suite kueue-tas: other work and what is left of the job are placed as given, then
// the engine's placement does the rest, and the layout is compared.
#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cluster/trial.hpp"
#include "placement/devices.hpp"
#include "placement/place.hpp"
#include "sim/conformance.hpp"
#include "sim/kueue_case.hpp"
#include "sim/kueue_grade.hpp"

namespace gs {
namespace {

class KueueRun {
 public:
  explicit KueueRun(KueueCase& c) : c_(c), placer_(cluster_, config_) { build(); }

  std::optional<TaskLayout> place() {
    PlaceAsk ask;
    ask.job = job_;
    for (std::size_t g = 0; g < c_.job.groups.size(); ++g) {
      std::vector<int> ranks = cluster_.missing_ranks(job_, static_cast<int>(g));
      if (!ranks.empty()) ask.tasks.push_back({static_cast<int>(g), std::move(ranks)});
    }
    Trial trial(cluster_);
    if (!placer_.place(trial, ask)) {
      why_ = placer_.explain(ask).sentence;
      return std::nullopt;
    }
    trial.keep();
    return layout();
  }
  const std::string& why() const { return why_; }

 private:
  void build() {
    std::vector<std::string> levels = c_.levels;
    levels.pop_back();
    cluster_.set_topology(levels);
    for (const KueueLeaf& leaf : c_.leaves) cluster_.put_node(leaf.node);
    for (std::size_t i = 0; i < c_.used.size(); ++i) occupy(c_.used[i], i);
    job_ = cluster_.add_job(c_.job, {});
    for (std::size_t g = 0; g < c_.job.groups.size(); ++g) keep_previous(static_cast<int>(g));
  }

  NodeId node_at(const DomainPath& path) { return cluster_.find_node(c_.find(path)->node.name); }

  // Somebody else's task. Cases may use more than there is; then it takes all there is.
  void occupy(const KueueCase::Use& use, std::size_t number) {
    const NodeId node = node_at(use.path);
    const NodeState& books = cluster_.node(node);
    Group group;
    group.name = "task";
    group.request = use.request;
    Resources& r = group.request.resources;
    r.cpu_milli = std::min(r.cpu_milli, books.cpu_milli.free(View::Now));
    r.memory_bytes = std::min(r.memory_bytes, books.memory_bytes.free(View::Now));
    for (NamedAmount& named : r.named) {
      const std::uint32_t id = cluster_.shapes().resources().intern(named.name);
      const std::int64_t free = id < books.named.size() ? books.named[id].free(View::Now) : 0;
      named.amount = std::min(named.amount, free);
    }
    Job other;
    other.id = fmt::format("other-{}", number);
    other.groups.push_back(group);
    const JobId id = cluster_.add_job(other, {});
    put(id, 0, 0, node);
  }

  // Ranks in the order of the places, so that the members of a slice follow each other. Those of a
  // node that failed are missing.
  void keep_previous(int group) {
    const Group& spec = c_.job.groups[static_cast<std::size_t>(group)];
    int rank = 0;
    for (const KueueCase::Kept& kept : c_.previous[spec.name])
      for (int i = 0; i < kept.tasks && rank < spec.count; ++i, ++rank)
        if (!kept.lost) put(job_, group, rank, node_at(kept.path));
  }

  void put(JobId job, int group, int rank, NodeId node) {
    const auto place = devices_.choose(cluster_, node, shape(job, group), View::Now, job);
    if (place) cluster_.place(job, group, rank, *place, TaskState::Running, {});
  }
  const Shape& shape(JobId job, int group) const {
    return cluster_.shapes().at(
        cluster_.shape_of(job).groups[static_cast<std::size_t>(group)].shape);
  }

  TaskLayout layout() const {
    TaskLayout layout;
    for (const TaskId id : cluster_.job(job_).tasks) {
      const Task& task = cluster_.task(id);
      const std::string& name = cluster_.node(task.place.node).spec.name;
      const auto leaf = std::find_if(c_.leaves.begin(), c_.leaves.end(),
                                     [&](const KueueLeaf& l) { return l.node.name == name; });
      ++layout[c_.job.groups[task.group].name][leaf->path];
    }
    return layout;
  }

  KueueCase& c_;
  Config config_;
  Cluster cluster_;
  Placer placer_;
  DeviceChooser devices_;
  JobId job_;
  std::string why_;
};

CaseResult grade(const KueueCase& c, const std::optional<TaskLayout>& ours,
                 const std::string& why) {
  CaseResult result;
  if (ours.has_value() != c.feasible) {
    result.why = ours ? "placed, expected not to fit" : fmt::format("not placed: {}", why);
    return result;
  }
  result.passed = true;
  if (!ours) {
    result.why = fmt::format("does not fit: {}", why);
    return result;
  }
  if (std::string what = illegal(c, *ours); !what.empty()) {
    result.passed = false;
    result.why = what;
    return result;
  }
  const bool same = *ours == c.expected;
  const bool listed = std::find(c.any_of.begin(), c.any_of.end(), *ours) != c.any_of.end();
  const bool mirror = mirror_images(c, *ours, c.expected);
  result.why = same     ? "the same layout"
               : listed ? "one of the layouts listed"
               : mirror ? "its mirror image"
                        : "another layout";
  if (c.compare == "exact") result.passed = same;
  if (c.compare == "modulo-symmetry") result.passed = same || listed || mirror;
  return result;
}

std::vector<std::string> show_cluster(const KueueCase& c) {
  std::vector<std::string> lines;
  for (const KueueLeaf& leaf : c.leaves) {
    const Resources& r = leaf.node.capacity;
    std::string line = fmt::format("{}: {} milli-CPU", fmt::join(leaf.path, "/"), r.cpu_milli);
    if (r.memory_bytes > 0) line += fmt::format(", {} MiB", r.memory_bytes / kMiB);
    if (!leaf.node.gpus.empty()) line += fmt::format(", {} GPUs", leaf.node.gpus.size());
    for (const NamedAmount& named : r.named)
      line += fmt::format(", {} {}", named.amount, named.name);
    for (const Taint& taint : leaf.node.taints)
      line += fmt::format(", taint {}={}", taint.key, taint.value);
    if (!leaf.node.ready) line += ", not ready";
    if (leaf.node.cordoned) line += ", cordoned";
    for (const KueueCase::Use& use : c.used)
      if (use.path == leaf.path)
        line += fmt::format("; in use: {} milli-CPU, {} GPUs", use.request.resources.cpu_milli,
                            use.request.gpu.count);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string show_wish(const TopologyWish& wish) {
  if (!wish.required_level.empty()) return ", required " + wish.required_level;
  return wish.preferred_level.empty() ? "" : ", preferred " + wish.preferred_level;
}

std::vector<std::string> show_job(const KueueCase& c) {
  std::vector<std::string> lines;
  for (const Group& g : c.job.groups) {
    const Resources& r = g.request.resources;
    std::string line = fmt::format("{}: {} tasks of {} milli-CPU", g.name, g.count, r.cpu_milli);
    if (g.request.gpu.count > 0) line += fmt::format(", {} GPUs", g.request.gpu.count);
    line +=
        show_wish(g.set > 0 ? c.job.sets[static_cast<std::size_t>(g.set)].topology : g.topology);
    for (const Slice& slice : g.slices)
      line += fmt::format(", slices of {} in one {}", slice.size, slice.level);
    if (g.set > 0)
      line += fmt::format(", together as {}", c.job.sets[static_cast<std::size_t>(g.set)].name);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

CaseResult run_kueue_case(const nlohmann::json& json, bool show) {
  KueueCase c = read_kueue_case(json);
  c.job.id = "job";
  c.job.tenant = "tenant";
  std::optional<TaskLayout> ours;
  std::string why;
  if (const Status valid = validate(c.job); !valid) {
    why = valid.error().message;  // refused at the door
  } else {
    KueueRun run(c);
    ours = run.place();
    why = run.why();
  }
  CaseResult result = grade(c, ours, why);
  if (!show) return result;
  result.sections = {{"cluster", show_cluster(c)},
                     {"job", show_job(c)},
                     {"expected", {c.feasible ? describe(c.expected) : "does not fit"}},
                     {"ours", {ours ? describe(*ours) : "does not fit"}}};
  return result;
}

}  // namespace gs
