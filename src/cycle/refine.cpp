// refine: gangs that start in the same cycle are placed together.
//
// The order of the queue says who starts; it need not say who chooses first. The gangs that
// allocate has just started are taken out and placed anew in other orders, all of them and then
// pair by pair, and stay so if the sum of their costs (placement/least_harm.hpp) falls; until no
// pair gets better or the tries are used up. Only decisions that have not left the engine yet are
// touched, and nobody starts or waits because of it. It runs before backfill, so reservations see
// the outcome.
#include <algorithm>

#include "base/check.hpp"
#include "cycle/attempt.hpp"
#include "cycle/cycle.hpp"

namespace gs {
namespace {

constexpr int kMaxTries = 100;             // placements of a pair in one cycle
constexpr std::size_t kMaxTogether = 256;  // gangs that are placed anew all at once

struct Gang {
  JobId job;
  std::vector<Member> members;
};

// Jobs that this cycle has started whole and that may lie anywhere, in order.
std::vector<Gang> fresh_gangs(CycleContext& context) {
  std::vector<Gang> gangs;
  for (const Decision& d : context.decisions) {
    if (d.kind != Decision::Kind::Start || d.phase != std::string_view("allocate")) continue;
    if (gangs.empty() || gangs.back().job != d.job) gangs.push_back({d.job, {}});
    gangs.back().members.push_back({d.group, d.rank});
  }
  std::erase_if(gangs, [&](const Gang& gang) {
    const JobRecord& record = context.cluster.job(gang.job);
    const bool whole = record.tasks.size() == gang.members.size() && record.nominated_tasks == 0 &&
                       record.releasing_tasks == 0;
    return !whole || !context.placer.lies_freely(gang.job);
  });
  return gangs;
}

// Takes the gang out of the books; what its place costs, seen without it.
double take_out(CycleContext& context, Trial& trial, JobId job) {
  std::vector<NodeId> nodes;
  const std::vector<TaskId> tasks = context.cluster.job(job).tasks;
  for (const TaskId id : tasks) {
    nodes.push_back(context.cluster.task(id).place.node);
    trial.hold(id);
    trial.drop(id);
  }
  std::sort(nodes.begin(), nodes.end());
  return context.placer.cost_of(job, nodes);
}

using Gangs = std::vector<const Gang*>;

// The sum of their costs when they choose in this order, or nothing if they don't fit that way.
std::optional<double> put_back(CycleContext& context, Trial& trial, const Gangs& order) {
  double sum = 0;
  for (const Gang* gang : order) {
    const Attempt result =
        attempt(context, trial, gang->job, gang->members, Firmness::StartNow, nullptr);
    if (!result.placed || !context.placer.cost()) return std::nullopt;
    sum += *context.placer.cost();
  }
  return sum;
}

// The decisions about the job speak of tasks that have other numbers now.
void rewrite(CycleContext& context, JobId job) {
  for (Decision& d : context.decisions) {
    if (d.job != job || d.kind != Decision::Kind::Start) continue;
    for (const TaskId id : context.cluster.job(job).tasks) {
      const Task& task = context.cluster.task(id);
      if (task.group == d.group && task.rank == d.rank) d.task = id;
    }
  }
}

// Tries these orders of the gangs that stand as if they had chosen in the order of `now`; the
// cheapest stays if it is cheaper than what there is.
bool improve(CycleContext& context, const Gangs& now, const std::vector<Gangs>& orders) {
  Trial trial(context.cluster);
  double best = 0;
  for (auto gang = now.rbegin(); gang != now.rend(); ++gang)
    best += take_out(context, trial, (*gang)->job);
  const std::size_t out = trial.mark();
  const Gangs* chosen = nullptr;
  for (const Gangs& order : orders) {
    const std::optional<double> cost = put_back(context, trial, order);
    trial.rollback(out);
    if (!cost || *cost >= best) continue;
    best = *cost;
    chosen = &order;
  }
  if (chosen == nullptr) return false;
  CHECK(put_back(context, trial, *chosen).has_value());
  std::vector<Trial::Change> kept = trial.keep();
  if (context.undo != nullptr) context.undo->adopt(std::move(kept));
  for (const Gang* gang : now) rewrite(context, gang->job);
  return true;
}

// The orders of all that are worth a try: large ones first, lone tasks last, small gangs first.
std::vector<Gangs> orders_of(const Gangs& gangs) {
  const auto size = [](const Gang* gang) { return gang->members.size(); };
  const auto lone_last = [&](const Gang* a, const Gang* b) {
    return (size(a) == 1) < (size(b) == 1);
  };
  Gangs large_first = gangs, fifo = gangs, small_first = gangs;
  std::stable_sort(large_first.begin(), large_first.end(),
                   [&](const Gang* a, const Gang* b) { return size(a) > size(b); });
  std::stable_sort(fifo.begin(), fifo.end(), lone_last);
  std::stable_sort(small_first.begin(), small_first.end(), [&](const Gang* a, const Gang* b) {
    return std::pair(size(a) == 1, size(a)) < std::pair(size(b) == 1, size(b));
  });
  return {large_first, fifo, small_first};
}

}  // namespace

void run_refine(CycleContext& context) {
  const std::vector<Gang> gangs = fresh_gangs(context);
  const auto is_gang = [](const Gang& gang) { return gang.members.size() > 1; };
  if (gangs.size() < 2 || std::none_of(gangs.begin(), gangs.end(), is_gang)) return;
  Gangs all;
  for (const Gang& gang : gangs) all.push_back(&gang);
  if (all.size() <= kMaxTogether) improve(context, all, orders_of(all));
  int tries = kMaxTries;
  for (bool better = true; better && tries > 0;) {
    better = false;
    for (std::size_t i = 0; i < gangs.size(); ++i)
      for (std::size_t j = i + 1; j < gangs.size() && tries > 0; ++j) {
        if (!is_gang(gangs[i]) && !is_gang(gangs[j])) continue;
        tries -= 2;
        const Gangs pair = {all[i], all[j]};
        better |= improve(context, pair, {pair, {all[j], all[i]}});
      }
  }
}

}  // namespace gs
