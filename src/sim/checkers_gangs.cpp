// Gangs and quotas: whole or absent, together where they have to be, and within the limits.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "sim/checkers.hpp"
#include "sim/describe.hpp"
#include "sim/rules.hpp"

namespace gs {
namespace {

// Tasks of each group that run, have succeeded, or are on their way from one place to another;
// with `promised` also those that only have a place to come.
std::vector<int> counts(const MirrorJob& job, bool promised) {
  std::vector<std::set<int>> ranks(job.spec.groups.size());
  const auto add = [&](Rank rank) {
    ranks[static_cast<std::size_t>(rank.first)].insert(rank.second);
  };
  for (const auto& [rank, task] : job.tasks)
    if (!task.stopping) add(rank);
  for (const Rank& rank : job.succeeded) add(rank);
  for (const auto& [rank, place] : job.nominated)
    if (promised || job.tasks.count(rank) > 0) add(rank);
  std::vector<int> count;
  for (const auto& group : ranks) count.push_back(static_cast<int>(group.size()));
  return count;
}

// Enough groups and sets below `set` have what they need.
bool is_satisfied(const Job& job, const std::vector<int>& count, int set) {
  int children = 0;
  int satisfied = 0;
  for (std::size_t i = 0; i < job.groups.size(); ++i) {
    if (job.groups[i].set != set) continue;
    ++children;
    satisfied += count[i] >= job.groups[i].min_count() ? 1 : 0;
  }
  for (std::size_t i = 1; i < job.sets.size(); ++i) {
    if (job.sets[i].parent != set) continue;
    ++children;
    satisfied += is_satisfied(job, count, static_cast<int>(i)) ? 1 : 0;
  }
  const int needed = job.sets[static_cast<std::size_t>(set)].min_children;
  return satisfied >= (needed > 0 ? std::min(needed, children) : children);
}

bool is_below(const Job& job, int set, int outer) {
  while (set != outer && set > 0) set = job.sets[static_cast<std::size_t>(set)].parent;
  return set == outer;
}

}  // namespace

// Whether the job would have its minimum if these had not been told to stop.
bool Checkers::whole_with(const MirrorJob& job, const std::vector<Rank>& kept) const {
  std::vector<int> count = counts(job, false);
  for (const Rank& rank : kept)
    if (job.tasks.count(rank) > 0) ++count[static_cast<std::size_t>(rank.first)];
  return is_satisfied(job.spec, count, 0);
}

void Checkers::check_gang(const MirrorJob& job) {
  if (is_satisfied(job.spec, counts(job, false), 0)) return;
  std::string have;
  for (const int count : counts(job, false)) have += fmt::format(" {}", count);
  report("gangs", fmt::format("{} starts with fewer tasks than its minimum; tasks by group:{}",
                              job.spec.id, have));
}

// At rest nothing runs on below its minimum, unless the missing ones have a place already.
void Checkers::check_whole(const MirrorJob& job) {
  if (job.active == 0 || is_satisfied(job.spec, counts(job, true), 0)) return;
  report("gangs", fmt::format("{} is {} and runs on below its minimum", job.spec.id, job.state));
}

void Checkers::check_domains(const MirrorJob& job) {
  const auto domains = [&](const std::string& level, auto&& wanted) {
    std::map<std::string, int> found;
    for (const auto& [rank, task] : job.tasks)
      if (!task.stopping && wanted(rank.first))
        ++found[mirror_.domain_of(*task.node, mirror_.level_index(level))];
    return found;
  };
  const auto one = [&](const std::string& level, const std::string& of, auto&& wanted) {
    if (level.empty()) return;
    const auto found = domains(level, wanted);
    if (found.size() > 1 || found.count("") > 0)
      report("gangs", fmt::format("{}: {} must lie in one {}, and lies in {}", job.spec.id, of,
                                  level, found.size()));
  };
  for (std::size_t s = 0; s < job.spec.sets.size(); ++s)
    one(job.spec.sets[s].topology.required_level, fmt::format("set {}", s), [&](int group) {
      return is_below(job.spec, job.spec.groups[static_cast<std::size_t>(group)].set,
                      static_cast<int>(s));
    });
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    const Group& group = job.spec.groups[g];
    const auto in_group = [&](int other) { return other == static_cast<int>(g); };
    one(group.topology.required_level, fmt::format("group {}", g), in_group);
    for (const Slice& slice : group.slices) {
      const auto found = domains(slice.level, in_group);
      int tasks = 0;
      for (const auto& [domain, count] : found) tasks += count;
      if (tasks != group.count) continue;  // members that have left leave packs that are not full
      for (const auto& [domain, count] : found)
        if (count % slice.size != 0)
          report("gangs", fmt::format("{}: group {} comes in packs of {}, and {} lie in one {}",
                                      job.spec.id, g, slice.size, count, slice.level));
    }
  }
}

// ---------------------------------------------------------------- quotas

namespace {

struct Row {
  const char* what;
  std::int64_t asked, taken, limit;
};

std::optional<std::string> first_over(std::initializer_list<Row> rows) {
  for (const Row& row : rows)
    if (row.asked > 0 && row.limit < kUnlimited && row.taken > row.limit)
      return fmt::format("{} {} of {}", row.taken, row.what, row.limit);
  return std::nullopt;
}

// `more` on top of what it has; `asked_jobs`: whether a job more is asked for, which it has
// already.
std::optional<std::string> over(const MirrorTenant& t, const Taken& ask, const Taken& more,
                                int asked_jobs) {
  const Quota& q = t.spec.limit;
  return first_over({
      {"gpu_milli", ask.gpu_milli, t.taken.gpu_milli + more.gpu_milli, q.gpu_milli},
      {"gpu_memory_mib", ask.gpu_memory_mib, t.taken.gpu_memory_mib + more.gpu_memory_mib,
       q.gpu_memory_mib},
      {"cpu_milli", ask.cpu_milli, t.taken.cpu_milli + more.cpu_milli, q.cpu_milli},
      {"memory_bytes", ask.memory_bytes, t.taken.memory_bytes + more.memory_bytes, q.memory_bytes},
      {"running jobs", asked_jobs, t.running_jobs, q.running_jobs},
  });
}

std::optional<std::string> over_guaranteed(const MirrorTenant& t, const Taken& ask,
                                           const Taken& more) {
  const Share& g = t.spec.guaranteed;
  const Taken& taken = t.taken_unpreemptible;
  return first_over({
      {"guaranteed gpu_milli", ask.gpu_milli, taken.gpu_milli + more.gpu_milli, g.gpu_milli},
      {"guaranteed cpu_milli", ask.cpu_milli, taken.cpu_milli + more.cpu_milli, g.cpu_milli},
      {"guaranteed memory_bytes", ask.memory_bytes, taken.memory_bytes + more.memory_bytes,
       g.memory_bytes},
  });
}

// What it takes since this instant: what ran before was within what held then.
Taken taken_since(const MirrorJob& job, Instant now) {
  Taken taken;
  for (const auto& [rank, task] : job.tasks)
    if (!task.stopping && task.since == now)
      taken.add(taken_by(job.spec.groups[static_cast<std::size_t>(rank.first)].request, task.place,
                         task.node->spec),
                +1);
  return taken;
}

}  // namespace

// Limits that were lowered under what runs are not broken by it, but nothing more may start.
void Checkers::check_quota(const MirrorJob& job) {
  if (job.admitted) return;
  const bool fresh = std::all_of(job.tasks.begin(), job.tasks.end(), [&](const auto& entry) {
    return entry.second.stopping || entry.second.since == now_;
  });
  const Taken ask = taken_since(job, now_);
  for (const MirrorTenant* t = job.tenant; t != nullptr; t = t->parent) {
    if (const auto too_much = over(*t, ask, {}, fresh ? 1 : 0))
      report("quota",
             fmt::format("{} starts, and tenant {} has {}", job.spec.id, t->spec.id, *too_much));
    if (!job.spec.preemptible)
      if (const auto too_much = over_guaranteed(*t, ask, {}))
        report("quota", fmt::format("{} can't be evicted and starts, and tenant {} has {}",
                                    job.spec.id, t->spec.id, *too_much));
    for (const auto& [model, gpus] : t->spec.limit.gpus_by_model) {
      const auto taken = t->milli_by_model.find(model);
      const bool uses = std::any_of(job.tasks.begin(), job.tasks.end(), [&](const auto& entry) {
        const auto& gpus_of = entry.second.place.gpus;
        return entry.second.since == now_ && !entry.second.stopping && !gpus_of.empty() &&
               entry.second.node->spec.gpus[static_cast<std::size_t>(gpus_of[0])].model == model;
      });
      if (uses && taken != t->milli_by_model.end() && taken->second > gpus * kWholeGpu)
        report("quota", fmt::format("{} starts, and tenant {} has {} milli of {} {}", job.spec.id,
                                    t->spec.id, taken->second, gpus, model));
    }
  }
}

// Whether the quotas would let the whole countable job start.
bool Checkers::quota_allows(const MirrorJob& job) const {
  const Group& group = job.spec.groups[0];
  Taken ask;
  std::int64_t largest = 0;
  for (const auto& [name, node] : mirror_.nodes())
    for (const Gpu& gpu : node.spec.gpus) largest = std::max(largest, gpu.memory_mib);
  const auto [milli, memory] = part_of(group.request.gpu, largest);
  ask.gpu_milli = group.request.gpu.milli > 0 || group.request.gpu.memory_mib == 0
                      ? milli * group.request.gpu.count * group.count
                      : kWholeGpu * group.request.gpu.count * group.count;
  ask.gpu_memory_mib = largest * group.request.gpu.count * group.count;
  ask.cpu_milli = group.request.resources.cpu_milli * group.count;
  ask.memory_bytes = group.request.resources.memory_bytes * group.count;
  (void)memory;
  for (const MirrorTenant* t = job.tenant; t != nullptr; t = t->parent) {
    if (over(*t, ask, ask, 0) || t->running_jobs + 1 > t->spec.limit.running_jobs ||
        !t->spec.limit.gpus_by_model.empty())
      return false;
    if (!job.spec.preemptible && over_guaranteed(*t, ask, ask)) return false;
  }
  return true;
}

// ---------------------------------------------------------------- progress

// With no reservations to respect, a job that the rules allow and the free room holds must not
// wait. Promised rooms are not free, and may be given up without a word: then nothing is said.
void Checkers::check_idle_room() {
  if (finding_) return;
  int waiting = 0;
  for (const auto& [id, job] : mirror_.jobs()) {
    if (!job.nominated.empty()) return;
    waiting += job.state == "waiting" ? 1 : 0;
  }
  if (mirror_.config().reservations > 0 && waiting != 1) return;
  for (const auto& [id, job] : mirror_.jobs()) {
    const bool whole = job.spec.arrived < 0 || job.spec.arrived >= task_count(job.spec);
    if (job.state != "waiting" || !whole || !is_countable(mirror_, job.spec)) continue;
    if (quota_allows(job) && fits(mirror_, job.spec, false))
      return report("progress", fmt::format("{} waits although it fits", id));
  }
}

}  // namespace gs
