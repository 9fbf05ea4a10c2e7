#include "sim/world.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/describe.hpp"

namespace gs {
namespace {

World::TaskKey key_of(const TaskRef& task) { return {task.job, {task.group, task.rank}}; }

}  // namespace

World::World(WorldOptions options) : options_(options) {}

void World::set_duration(const std::string& job, Duration duration) {
  jobs_[job].duration = duration;
}

void World::push(Instant at, Command command, std::uint64_t epoch) {
  events_.emplace(std::pair{std::max(at, now_), next_sequence_++},
                  Event{std::move(command), epoch});
}

void World::schedule(Instant at, Command command) { push(at, std::move(command), 0); }

void World::note(LogEntry entry) {
  for (const Observer& observer : observers_) observer(*this, entry);
  if (options_.keep_log) log_.push_back(std::move(entry));
}

Result<Effects> World::send(const Command& command) {
  make_true(command);
  Result<Effects> answer = engine_.handle(command, now_);
  LogEntry entry{now_, command, std::nullopt, {}};
  if (answer) {
    entry.effects = *answer;
    if (const auto* found = std::get_if<AdoptTask>(&command)) adopt(*found);
    carry_out(*answer);
  } else {
    entry.error = answer.error();
  }
  note(std::move(entry));
  return answer;
}

void World::make_true(const Command& command) {
  if (const auto* submit = std::get_if<SubmitJob>(&command))
    jobs_[submit->job.id].checkpointable = submit->job.checkpointable;
  if (const auto* ended = std::get_if<TaskEnded>(&command))
    if (const auto task = tasks_.find(key_of(ended->task)); task != tasks_.end()) vanish(task);
  // A task does not outlive the device that was under it.
  if (const auto* put = std::get_if<PutNode>(&command); put != nullptr && validate(put->node))
    for (const TaskId id : engine_.cluster().displaced_by(put->node)) {
      const Task& lost = engine_.cluster().task(id);
      if (lost.state == TaskState::Nominated) continue;  // nothing of it is there yet
      const TaskRef ref{engine_.cluster().job(lost.job).id, lost.group, lost.rank};
      const auto task = tasks_.find(key_of(ref));
      if (task != tasks_.end() && task->second.place.node == put->node.name) vanish(task);
    }
  if (const auto* removed = std::get_if<RemoveNode>(&command))
    for (auto task = tasks_.begin(); task != tasks_.end();) {
      const auto here = task++;
      if (here->second.place.node == removed->name) vanish(here);
    }
}

void World::vanish(std::map<TaskKey, LiveTask>::iterator task) {
  const LiveTask& live = task->second;
  if (live.state == LiveTask::State::Running && jobs_[task->first.first].checkpointable)
    done_[task->first] = done_[task->first] + (now_ - live.since);
  tasks_.erase(task);
}

// It has been running all the time; only the engine did not know.
void World::adopt(const AdoptTask& found) {
  const std::uint64_t epoch = next_epoch_++;
  tasks_[key_of(found.task)] = LiveTask{
      {found.task, found.node, found.gpus, {}}, LiveTask::State::Running, found.since, epoch};
  if (const auto& duration = jobs_[found.task.job].duration)
    push(found.since + *duration, TaskEnded{found.task, Outcome::Succeeded}, epoch);
}

void World::carry_out(const Effects& effects) {
  for (const Effect& effect : effects) {
    if (const auto* starts = std::get_if<StartTasks>(&effect))
      for (const TaskPlace& place : starts->tasks) start(place);
    if (const auto* stops = std::get_if<StopTasks>(&effect))
      for (const TaskRef& task : stops->tasks) stop(task);
  }
}

void World::start(const TaskPlace& place) {
  const TaskKey key = key_of(place.task);
  if (tasks_.count(key) > 0) {
    surprises_.push_back(fmt::format("{}: {} is told to start although it is still there",
                                     describe(now_), describe(place.task)));
    return;
  }
  const std::uint64_t epoch = next_epoch_++;
  tasks_[key] = LiveTask{place, LiveTask::State::Starting, now_, epoch};
  push(now_ + options_.start_delay, TaskStarted{place.task}, epoch);
}

void World::stop(const TaskRef& task) {
  const auto live = tasks_.find(key_of(task));
  if (live == tasks_.end()) {
    surprises_.push_back(fmt::format("{}: {} is told to stop although it is not there",
                                     describe(now_), describe(task)));
    return;
  }
  if (live->second.state == LiveTask::State::Stopping) return;
  const bool ran = live->second.state == LiveTask::State::Running;
  if (ran && jobs_[task.job].checkpointable)
    done_[live->first] = done_[live->first] + (now_ - live->second.since);
  live->second.state = LiveTask::State::Stopping;
  live->second.since = now_;
  live->second.epoch = next_epoch_++;  // its natural end does not come any more
  push(now_ + options_.stop_delay, TaskEnded{task, Outcome::Stopped}, live->second.epoch);
}

void World::deliver(Event event) {
  if (event.epoch != 0) {
    const auto* started = std::get_if<TaskStarted>(&event.command);
    const auto* ended = std::get_if<TaskEnded>(&event.command);
    const TaskRef& task = started != nullptr ? started->task : ended->task;
    const auto live = tasks_.find(key_of(task));
    if (live == tasks_.end() || live->second.epoch != event.epoch) return;
    if (started != nullptr) {
      live->second.state = LiveTask::State::Running;
      live->second.since = now_;
      const JobFacts& job = jobs_[task.job];
      if (job.duration)
        push(now_ + std::max(Duration{}, *job.duration - done_[live->first]),
             TaskEnded{task, Outcome::Succeeded}, event.epoch);
    }
  }
  (void)send(event.command);  // a refusal is in the log
}

bool World::deliver_due() {
  bool any = false;
  while (!events_.empty() && events_.begin()->first.first <= now_) {
    Event event = std::move(events_.begin()->second);
    events_.erase(events_.begin());
    deliver(std::move(event));
    any = true;
  }
  return any;
}

void World::tick() {
  LogEntry entry{now_, std::nullopt, std::nullopt, engine_.tick(now_)};
  last_tick_ = now_;
  carry_out(entry.effects);
  note(std::move(entry));
}

bool World::settle() {
  for (int round = 0; round < options_.max_rounds; ++round) {
    const bool any = deliver_due();
    if (!any && !engine_.needs_tick(now_)) return true;
    tick();
  }
  return false;
}

std::optional<Instant> World::next_event() const {
  std::optional<Instant> next;
  const auto consider = [&](Instant t) {
    if (!next || t < *next) next = t;
  };
  if (!events_.empty()) consider(events_.begin()->first.first);
  if (const auto deadline = engine_.next_deadline(); deadline && *deadline > now_)
    consider(*deadline);
  if (options_.tick_every.ms > 0 && engine_.waiting() > 0)
    consider(std::max(now_, last_tick_ + options_.tick_every));
  return next;
}

bool World::advance_to(Instant t) {
  bool rested = settle();
  for (auto next = next_event(); next && *next <= t; next = next_event()) {
    const bool periodic = options_.tick_every.ms > 0 && *next >= last_tick_ + options_.tick_every;
    now_ = std::max(now_, *next);
    deliver_due();
    if (periodic) tick();
    rested = settle() && rested;
  }
  now_ = std::max(now_, t);
  return settle() && rested;
}

Status replay(const std::vector<LogEntry>& log, std::uint64_t expected_hash) {
  Engine engine;
  for (std::size_t i = 0; i < log.size(); ++i) {
    const LogEntry& entry = log[i];
    Effects effects;
    if (entry.command) {
      Result<Effects> answer = engine.handle(*entry.command, entry.now);
      if (answer.ok() == entry.error.has_value())
        return Error{ErrorCode::Conflict,
                     fmt::format("entry {}, {}: {} the first time, {} now", i,
                                 describe(*entry.command), entry.error ? "refused" : "accepted",
                                 answer.ok() ? "accepted" : "refused")};
      if (answer) effects = std::move(*answer);
    } else {
      effects = engine.tick(entry.now);
    }
    if (describe(effects) != describe(entry.effects))
      return Error{ErrorCode::Conflict,
                   fmt::format("entry {} at {}:\n{}became\n{}", i, describe(entry.now),
                               describe(entry.effects), describe(effects))};
  }
  if (engine.hash() != expected_hash)
    return Error{ErrorCode::Conflict, "the effects are the same, the state is not"};
  return ok_status();
}

}  // namespace gs
