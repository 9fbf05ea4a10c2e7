#include "cycle/reservations.hpp"

#include <algorithm>
#include <map>

#include "base/check.hpp"

namespace gs {
namespace {

// Work that has outlived its estimate may end any moment; nobody knows when, so: soon.
constexpr Duration kOverdue = minutes(1);

std::int64_t blocked(const Ledger& ledger) {
  return std::max<std::int64_t>(0, ledger.nominated - ledger.releasing);
}

bool is_empty(const Hold& hold) {
  return hold.cpu_milli == 0 && hold.memory_bytes == 0 && hold.parts.empty() &&
         hold.mig_gpus.empty() &&
         std::all_of(hold.named.begin(), hold.named.end(),
                     [](const auto& n) { return n.second == 0; });
}

}  // namespace

Reservations::Reservations(CycleContext& context) : context_(context), holds_(context.cluster) {}

Plans Reservations::plans() const {
  Plans plans;
  for (const Made& made : made_)
    if (!made.forecast)
      plans[context_.cluster.job(made.value.job).seq] = {made.value.start, made.places};
  return plans;
}

Instant Reservations::end_of(JobId job, Instant start) const {
  JobRecord record = context_.cluster.job(job);
  record.started = start;
  return record.expected_end();
}

// In order of time; ties by job, group and rank, so that nothing hangs on internal numbers.
std::vector<Reservations::Event> Reservations::events() const {
  const Cluster& cluster = context_.cluster;
  std::vector<std::tuple<Instant, std::uint64_t, int, int, Event>> sorted;
  // By node: what runs is little beside what may wait.
  for (std::size_t i = 0; i < cluster.node_count(); ++i)
    for (const TaskId id : cluster.node(NodeId{i}).tasks) {
      const Task& task = cluster.task(id);
      const JobRecord& job = cluster.job(task.job);
      const Instant expected = job.expected_end();
      if (task.state != TaskState::Running || expected.is_never()) continue;
      const Instant end = expected > context_.now ? expected : context_.now + kOverdue;
      sorted.push_back({end, job.seq, task.group, task.rank, {end, id, 0}});
    }
  for (std::size_t i = 0; i < made_.size(); ++i)
    if (const Instant end = end_of(made_[i].value.job, made_[i].value.start); !end.is_never())
      sorted.push_back({end, cluster.job(made_[i].value.job).seq, -1, 0, {end, TaskId{}, i}});
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a), std::get<2>(a), std::get<3>(a)) <
           std::tie(std::get<0>(b), std::get<1>(b), std::get<2>(b), std::get<3>(b));
  });
  std::vector<Event> events;
  for (const auto& entry : sorted) events.push_back(std::get<4>(entry));
  return events;
}

namespace {

// Moves a trial back and forth along the events.
template <typename Apply>
class Timeline {
 public:
  Timeline(Trial& trial, const std::vector<std::size_t>& ends, Apply apply)
      : trial_(trial), ends_(ends), apply_(apply), marks_{trial.mark()} {}

  // The books after the first `steps` instants.
  void go_to(std::size_t steps) {
    if (steps + 1 < marks_.size()) {
      trial_.rollback(marks_[steps]);
      marks_.resize(steps + 1);
    }
    trial_.rollback(marks_.back());
    while (marks_.size() <= steps) {
      const std::size_t step = marks_.size();
      for (std::size_t i = step == 1 ? 0 : ends_[step - 2]; i < ends_[step - 1]; ++i) apply_(i);
      marks_.push_back(trial_.mark());
    }
  }

 private:
  Trial& trial_;
  const std::vector<std::size_t>& ends_;
  Apply apply_;
  std::vector<std::size_t> marks_;  // marks_[s]: after s instants
};

// Past-the-end positions of the events of each distinct instant.
template <typename Events>
std::vector<std::size_t> instants(const Events& events) {
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < events.size(); ++i)
    if (i + 1 == events.size() || events[i + 1].at != events[i].at) ends.push_back(i + 1);
  return ends;
}

}  // namespace

bool Reservations::reserve(JobId job, const std::vector<Member>& members) {
  // How a GPU will be cut by then nobody knows, so its instances are not shared out in advance.
  holds_.put_up_mig();
  const bool found = search(job, members);
  if (found) {
    holds_.add(found_.value.start, std::move(found_.needs));
    made_.push_back(std::move(found_));
    context_.reservations.push_back(made_.back().value);
  }
  holds_.put_up();
  return found;
}

bool Reservations::search(JobId job, const std::vector<Member>& members) {
  Trial trial(context_.cluster);
  std::vector<std::vector<TaskId>> standing(made_.size());
  for (std::size_t i = 0; i < made_.size(); ++i)
    for (const Plan::Place& planned : made_[i].places)
      standing[i].push_back(trial.place(made_[i].value.job, planned.group, planned.rank,
                                        planned.place, TaskState::Nominated, context_.now));
  const std::vector<Event> all = events();
  const std::vector<std::size_t> ends = instants(all);
  const auto pass = [&](std::size_t i) {
    if (all[i].task.valid())
      trial.evict(all[i].task);
    else
      for (const TaskId id : standing[all[i].made]) trial.drop(id);
  };
  Timeline timeline(trial, ends, pass);
  const auto fits_after = [&](std::size_t steps) {
    timeline.go_to(steps);
    return attempt(context_, trial, job, members, Firmness::Nominate, nullptr).placed;
  };
  const auto old = context_.plans.find(context_.cluster.job(job).seq);
  const auto keep_plan = [&](Instant found) {
    if (old == context_.plans.end() || old->second.start > found) return false;
    if (old->second.start <= context_.now) return false;  // its time has come, and it did not fit
    const auto gone_by = [&](std::size_t end) { return all[end - 1].at <= old->second.start; };
    timeline.go_to(static_cast<std::size_t>(
        std::partition_point(ends.begin(), ends.end(), gone_by) - ends.begin()));
    const std::size_t mark = trial.mark();
    if (!place_as_planned(context_, trial, job, members, View::Future)) return false;
    found_ = {};
    found_.value = {job, old->second.start, {}};
    plan(trial, mark, found_);
    return true;
  };
  // The more has gone the more room there is: gallop, then halve.
  std::size_t high = 1;
  while (high < ends.size() && !fits_after(high)) high = std::min(2 * high, ends.size());
  if (ends.empty() || !fits_after(high)) return keep_plan(Instant::never());
  for (std::size_t low = high / 2 + 1; low < high;) {
    const std::size_t middle = low + (high - low) / 2;
    if (fits_after(middle))
      high = middle;
    else
      low = middle + 1;
  }
  if (keep_plan(all[ends[high - 1] - 1].at)) return true;
  timeline.go_to(high);
  const std::size_t mark = trial.mark();
  CHECK(attempt(context_, trial, job, members, Firmness::Nominate, nullptr).placed);
  found_ = {};
  found_.value = {job, all[ends[high - 1] - 1].at, {}};
  plan(trial, mark, found_);
  return true;
}

// Writes down where the job will lie and what has to be kept free for it until then.
void Reservations::plan(const Trial& trial, std::size_t mark, Made& made) {
  const Cluster& cluster = context_.cluster;
  std::vector<NodeId> nodes;
  std::map<NodeId, std::vector<const Task*>> tasks;
  for (std::size_t i = mark; i < trial.changes().size(); ++i) {
    if (trial.changes()[i].kind != Trial::Kind::Placed) continue;
    const Task& task = cluster.task(trial.changes()[i].task);
    made.places.push_back({task.group, task.rank, {task.place.node, task.place.gpus, {}}});
    made.forecast = made.forecast || !task.place.mig.empty();
    if (tasks[task.place.node].empty()) nodes.push_back(task.place.node);
    tasks[task.place.node].push_back(&task);
  }
  for (const NodeId node : nodes) {
    made.value.nodes.push_back(cluster.node(node).spec.name);
    Hold hold = hold_on(node, tasks[node]);
    if (!is_empty(hold)) made.needs.emplace_back(node, std::move(hold));
  }
}

// What these tasks use on the node has to be there: the trial has all reservations nominated and
// all that ends before the new one releasing, and what is nominated beyond what is releasing must
// be kept free.
Hold Reservations::hold_on(NodeId id, const std::vector<const Task*>& tasks) const {
  const NodeState& node = context_.cluster.node(id);
  Hold hold;
  GpuMask gpus = 0;
  for (const Task* task : tasks) {
    const Shape& shape = context_.cluster.shape_of(*task);
    gpus |= task->place.gpus;
    if (shape.request.resources.cpu_milli > 0) hold.cpu_milli = blocked(node.cpu_milli);
    if (shape.request.resources.memory_bytes > 0) hold.memory_bytes = blocked(node.memory_bytes);
    for (const auto& [name, amount] : shape.named)
      if (const std::int64_t need = blocked(node.named[name]); amount > 0 && need > 0)
        raise_to(hold, Hold{0, 0, {{name, need}}, {}, {}});
    for (const MigPick& pick : task->place.mig) hold.mig_gpus.push_back(pick.gpu);
  }
  for_each_gpu(gpus, [&](int gpu) {
    GpuState books = node.gpus[static_cast<std::size_t>(gpu)];
    if (books.pinned(View::Future)) {  // whoever is pinned there wants nobody beside it
      books.milli.nominated = kWholeGpu;
      books.memory_mib.nominated = books.memory_mib.capacity;
    }
    const Hold::Part part{gpu, static_cast<int>(blocked(books.milli)), blocked(books.memory_mib)};
    if (part.milli > 0 || part.memory_mib > 0) hold.parts.push_back(part);
  });
  return hold;
}

Reservations::Behind Reservations::place_behind(Trial& trial, JobId job,
                                                const std::vector<Member>& members) {
  Behind behind;
  behind.attempt = attempt(context_, trial, job, members, Firmness::StartOrNominate, nullptr);
  // A search that is not exhaustive may miss what an earlier one has found.
  behind.attempt.placed =
      behind.attempt.placed || place_as_planned(context_, trial, job, members, View::Now);
  if (behind.attempt.placed || made_.empty() ||
      behind.attempt.reason.constraint == Constraint::Quota)
    return behind;
  // Ends before some reservations start: those don't mind.
  const Instant end = end_of(job, context_.now);
  const bool some =
      std::any_of(made_.begin(), made_.end(), [&](const Made& m) { return end <= m.value.start; });
  if (some) {
    holds_.put_up(end);
    behind.attempt = attempt(context_, trial, job, members, Firmness::StartNow, nullptr);
  }
  if (!behind.attempt.placed) {
    holds_.lift();
    const std::size_t mark = trial.mark();
    behind.only_holds = attempt(context_, trial, job, members, Firmness::StartNow, nullptr).placed;
    trial.rollback(mark);
  }
  holds_.put_up();
  if (behind.only_holds) behind.attempt.reason.constraint = Constraint::Reservation;
  return behind;
}

}  // namespace gs
