#include "cycle/cycle.hpp"

#include <algorithm>
#include <cstring>

#include "cycle/take_back.hpp"

namespace gs {

const std::vector<Phase>& phases() {
  static const std::vector<Phase> all = {
      {"recover", run_recover, "re-place what stands on broken ground"},
      {"nominated", run_nominated, "start what was promised room that is free now"},
      {"allocate", run_allocate, "start, in order, whatever fits"},
      {"refine", run_refine, "place gangs that start together together"},
      {"backfill", run_backfill,
       "reserve for those that wait, run others where they don't delay them"},
      {"consolidate", run_consolidate, "move what is movable so that a waiting job fits"},
      {"reclaim", run_reclaim, "tenants over their share give back"},
      {"preempt", run_preempt, "lower priorities of a tenant make room for higher ones"},
  };
  return all;
}

Cycle::Cycle(Cluster& cluster, const Config& config, Placer& placer, Queue& queue)
    : cluster_(cluster), config_(config), placer_(placer), queue_(queue) {}

bool Cycle::enabled(const Phase& phase) const {
  const std::string name = phase.name;
  if (name == "consolidate" && !config_.consolidation) return false;
  if (name == "refine" && config_.gang_layout != GangLayout::LeastHarm) return false;
  if (name == "reclaim" && !config_.reclaim) return false;
  if (name == "preempt" && !config_.preemption) return false;
  return true;
}

namespace {

std::vector<const Phase*> plan_of(const Config& config) {
  std::vector<const Phase*> plan;
  if (config.phases.empty())
    for (const Phase& phase : phases()) plan.push_back(&phase);
  for (const std::string& name : config.phases)
    for (const Phase& phase : phases())
      if (name == phase.name) plan.push_back(&phase);
  return plan;
}

PhaseCount count_of(const char* phase, const std::vector<Decision>& decisions, std::size_t from) {
  PhaseCount count{phase, 0, 0, 0};
  for (std::size_t i = from; i < decisions.size(); ++i) {
    count.started += decisions[i].kind == Decision::Kind::Start ? 1 : 0;
    count.nominated += decisions[i].kind == Decision::Kind::Nominate ? 1 : 0;
    count.evicted += decisions[i].kind == Decision::Kind::Evict ? 1 : 0;
  }
  return count;
}

}  // namespace

std::vector<Decision> Cycle::run(Instant now) {
  decay_usage(cluster_, config_.usage_half_life, now);
  shares_.compute(cluster_, {queue_.demand(), config_.usage_half_life, now});
  CycleContext context{cluster_, config_,       placer_,   queue_,          shares_, nominated_,
                       broken_,  reservations_, searched_, eviction_order_, plans_,  now};
  counts_.clear();
  for (const Phase* phase : plan_of(config_)) {
    if (!enabled(*phase)) continue;
    const std::size_t before = context.decisions.size();
    context.phase = phase->name;
    phase->run(context);
    counts_.push_back(count_of(phase->name, context.decisions, before));
    if (verify_) cluster_.verify();
  }
  take_back_evictions(context);
  if (take_back_starts(context)) {
    context.unsettled = true;
    context.phase = "nominated";
    run_nominated(context);
  }
  forget_promises(context);
  unsettled_ = context.unsettled;
  reasons_ = std::move(context.reasons);
  return std::move(context.decisions);
}

}  // namespace gs
