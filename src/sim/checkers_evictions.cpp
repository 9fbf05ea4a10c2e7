// Evictions: who is told to stop for somebody else had to be, and might be.
#include <algorithm>

#include <fmt/format.h>

#include "sim/checkers.hpp"
#include "sim/describe.hpp"
#include "sim/rules.hpp"

namespace gs {
namespace {

bool has(const std::vector<Rank>& ranks, Rank rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

const TaskRequest& request_of(const MirrorJob& job, Rank rank) {
  return job.spec.groups[static_cast<std::size_t>(rank.first)].request;
}

// The tenants in which two jobs' ways up to the top first differ.
std::pair<const MirrorTenant*, const MirrorTenant*> parting(const MirrorJob& a,
                                                            const MirrorJob& b) {
  std::vector<const MirrorTenant*> up_a;
  std::vector<const MirrorTenant*> up_b;
  for (const MirrorTenant* t = a.tenant; t != nullptr; t = t->parent) up_a.push_back(t);
  for (const MirrorTenant* t = b.tenant; t != nullptr; t = t->parent) up_b.push_back(t);
  while (!up_a.empty() && !up_b.empty() && up_a.back() == up_b.back())
    up_a.pop_back(), up_b.pop_back();
  return {up_a.empty() ? nullptr : up_a.back(), up_b.empty() ? nullptr : up_b.back()};
}

// Everything that any of them asks for.
Resources all_of(const std::vector<Use>& uses) {
  Resources all;
  for (const Use& use : uses) {
    all.cpu_milli += use.request->resources.cpu_milli;
    all.memory_bytes += use.request->resources.memory_bytes;
    for (const auto& named : use.request->resources.named) all.named.push_back(named);
  }
  return all;
}

bool lies_together(const Job& job) {
  const auto wishes = [](const TopologyWish& wish) {
    return !wish.required_level.empty() || !wish.preferred_level.empty();
  };
  return std::any_of(job.groups.begin(), job.groups.end(),
                     [&](const Group& g) { return wishes(g.topology) || !g.slices.empty(); }) ||
         std::any_of(job.sets.begin(), job.sets.end(),
                     [&](const GroupSet& s) { return wishes(s.topology); });
}

bool is_above(const MirrorTenant* outer, const MirrorTenant* tenant) {
  while (tenant != nullptr && tenant != outer) tenant = tenant->parent;
  return tenant == outer;
}

}  // namespace

void Checkers::check_eviction(const Eviction& eviction) {
  ++evictions_;
  const MirrorJob* victim = mirror_.find_job(eviction.job);
  const MirrorJob* gets = mirror_.find_job(eviction.for_job);
  const std::string of = fmt::format("{} has to stop for {}", eviction.job, eviction.for_job);
  if (victim == nullptr) return;
  if (gets == nullptr) return report("evictions", of + ", which does not exist");
  if (placed_.count(eviction.for_job) == 0)
    return report("evictions", of + ", which gets no place");
  check_rights(eviction, *victim, *gets);
  check_need(eviction, *victim);
  check_turns(eviction, *victim, *gets);
}

void Checkers::check_rights(const Eviction& eviction, const MirrorJob& victim,
                            const MirrorJob& gets) {
  const Job& v = victim.spec;
  const std::string of = fmt::format("{} has to stop for {}", v.id, gets.spec.id);
  const bool moved = eviction.reason == StopReason::Moved;
  if (!v.preemptible && !moved) report("evictions", of + ", and is not preemptible");
  if (!gets.spec.can_preempt_others && !moved)
    report("evictions", of + ", which may not preempt others");
  for (const MirrorTenant* t = victim.tenant; t != nullptr; t = t->parent)
    if (!t->spec.allow_preemption && !moved)
      report("evictions", of + ", and its tenant does not allow it");
  for (const MirrorTenant* t = gets.tenant; t != nullptr; t = t->parent)
    if (!t->spec.can_preempt_others && !moved)
      report("evictions", of + ", whose tenant may not preempt others");
  // What a failure has stopped has no run that could be protected: only its next place is taken.
  if (victim.started + v.min_runtime > now_ && whole_with(victim, eviction.tasks))
    report("evictions", fmt::format("{} after {}, with a minimum of {}", of,
                                    describe(now_ - victim.started), describe(v.min_runtime)));
  const Config& config = mirror_.config();
  if (!config.preemption && !config.reclaim && !config.consolidation)
    report("evictions", of + ", and all of that is off");
  if (moved) return;
  if (victim.tenant == gets.tenant && v.priority >= gets.spec.priority)
    report("evictions", fmt::format("{} of the same tenant, with priority {} against {}", of,
                                    v.priority, gets.spec.priority));
  const MirrorTenant* loses = parting(victim, gets).first;
  if (loses == nullptr || victim.tenant == gets.tenant) return;
  // What a tenant had before this turn took things away from it, promises not counted.
  Taken had = loses->taken;
  for (const Eviction& other : evicted_) {
    const MirrorJob* job = mirror_.find_job(other.job);
    if (job == nullptr || !is_above(loses, job->tenant)) continue;
    for (const auto& [rank, task] : job->tasks)
      if (has(other.tasks, rank))
        had.add(taken_by(request_of(*job, rank), task.place, task.node->spec), +1);
  }
  for (const auto& [id, job] : mirror_.jobs())
    if (!job.nominated.empty() && is_above(loses, job.tenant)) return;
  // A guarantee without a bound is no bound to anybody, and one above the limit ends there.
  Share g = loses->spec.guaranteed;
  const Quota& limit = loses->spec.limit;
  g.gpu_milli = std::min(g.gpu_milli, limit.gpu_milli);
  g.cpu_milli = std::min(g.cpu_milli, limit.cpu_milli);
  g.memory_bytes = std::min(g.memory_bytes, limit.memory_bytes);
  bool below = false;
  bool over = false;
  for (const auto& [taken, guaranteed] :
       {std::pair{had.gpu_milli, g.gpu_milli}, std::pair{had.cpu_milli, g.cpu_milli},
        std::pair{had.memory_bytes, g.memory_bytes}}) {
    below |= guaranteed < kUnlimited && taken < guaranteed;
    over |= taken > guaranteed;
  }
  if (below && !over)
    report("evictions",
           fmt::format("{}, and tenant {} was within its guarantee", of, loses->spec.id));
}

// With the victim kept where it is, what was placed in this turn would not have fitted: not on the
// nodes, or not within the quotas.
void Checkers::check_need(const Eviction& eviction, const MirrorJob& victim) {
  // It lost members to a failure, and their new places to somebody else: the rest can't run on.
  if (!whole_with(victim, eviction.tasks)) return;
  // Its members lie together, and others of them have moved away.
  const bool moved = std::any_of(evicted_.begin(), evicted_.end(), [&](const Eviction& other) {
    return other.job == eviction.job && other.reason == StopReason::Moved;
  });
  if (moved && lies_together(victim.spec)) return;
  for (const auto& [name, node] : mirror_.nodes()) {
    std::vector<Use> uses;
    for (const MirrorTask* task : node.tasks)
      if (!task->stopping || (task->job == &victim && has(eviction.tasks, task->rank)))
        uses.push_back(use_of(*task));
    for (const auto& [id, job] : mirror_.jobs())
      for (const auto& [rank, place] : job.nominated)
        if (place.node == name && !(&job == &victim && has(eviction.tasks, rank)))
          uses.push_back({&job.spec.id, &request_of(job, rank), &place});
    if (overuse(node.spec, uses, all_of(uses))) return;
  }
  // Whoever got a place in this turn may have it within what the victim leaves of a limit.
  for (const MirrorTenant* t = victim.tenant; t != nullptr; t = t->parent)
    if (somebody_placed_in(*t, victim) && over_limit_with(*t, eviction, victim)) return;
  report("evictions", fmt::format("{} has to stop for {}, which fits beside it", eviction.job,
                                  eviction.for_job));
}

bool Checkers::somebody_placed_in(const MirrorTenant& t, const MirrorJob& beside) {
  return std::any_of(placed_.begin(), placed_.end(), [&](const std::string& id) {
    const MirrorJob* job = mirror_.find_job(id);
    return job != nullptr && job != &beside && is_above(&t, job->tenant);
  });
}

// Whether the tenant would be over a limit if all promises were kept and the victim too.
bool Checkers::over_limit_with(const MirrorTenant& t, const Eviction& eviction,
                               const MirrorJob& victim) {
  const Quota& q = t.spec.limit;
  if (!q.gpus_by_model.empty()) return true;  // not worth counting here
  Taken taken = t.taken;
  std::int64_t jobs = t.running_jobs;
  for (const auto& [id, job] : mirror_.jobs()) {
    if (!is_above(&t, job.tenant)) continue;
    jobs += job.active == 0 && (!job.nominated.empty() || &job == &victim) ? 1 : 0;
    for (const auto& [rank, place] : job.nominated)
      if (const MirrorNode* node = mirror_.find_node(place.node))
        taken.add(taken_by(request_of(job, rank), place, node->spec), +1);
  }
  for (const auto& [rank, task] : victim.tasks)
    if (has(eviction.tasks, rank))
      taken.add(taken_by(request_of(victim, rank), task.place, task.node->spec), +1);
  return taken.gpu_milli > q.gpu_milli || taken.gpu_memory_mib > q.gpu_memory_mib ||
         taken.cpu_milli > q.cpu_milli || taken.memory_bytes > q.memory_bytes ||
         jobs > q.running_jobs;
}

// Two jobs never evict each other in turn, as long as their priorities stay.
void Checkers::check_turns(const Eviction& eviction, const MirrorJob& victim,
                           const MirrorJob& gets) {
  if (eviction.reason == StopReason::Moved) return;
  evicted_for_.emplace(victim.spec.id, gets.spec.id);
  if (evicted_for_.count({gets.spec.id, victim.spec.id}) > 0)
    report("evictions",
           fmt::format("{} and {} evict each other in turn", victim.spec.id, gets.spec.id));
}

}  // namespace gs
