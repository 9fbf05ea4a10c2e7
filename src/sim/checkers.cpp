#include "sim/checkers.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "queue/queue.hpp"
#include "sim/describe.hpp"
#include "sim/rules.hpp"

namespace gs {

void Checkers::report(const char* checker, std::string text) {
  if (!finding_) finding_ = Finding{checker, std::move(text), now_};
}

void Checkers::observe(const LogEntry& entry) {
  if (finding_) return;
  now_ = entry.now;
  started_.clear();
  placed_.clear();
  evicted_.clear();
  if (entry.command) command(entry);
  for (const Effect& e : entry.effects) std::visit([&](const auto& one) { effect(one); }, e);
  for (const std::string& id : started_)
    if (const MirrorJob* job = mirror_.find_job(id)) {
      check_quota(*job);
      check_gang(*job);
      check_domains(*job);
    }
  for (const Eviction& eviction : evicted_) check_eviction(eviction);
}

void Checkers::command(const LogEntry& entry) {
  const auto* ended = std::get_if<TaskEnded>(&*entry.command);
  if (entry.error) {
    const MirrorJob* job = ended == nullptr ? nullptr : mirror_.find_job(ended->task.job);
    if (job != nullptr && job->tasks.count({ended->task.group, ended->task.rank}) > 0)
      report("facts",
             fmt::format("{} is refused: {}", describe(*entry.command), entry.error->message));
    return;
  }
  if (const auto* submit = std::get_if<SubmitJob>(&*entry.command)) {
    // Whoever comes with a higher order may push reserved starts back.
    for (auto& [id, job] : mirror_.jobs()) {
      const double aging = mirror_.config().aging_per_hour;
      if (order_key(submit->job.priority, now_, aging) <
          order_key(job.spec.priority, job.submitted, aging))
        continue;
      job.promised.reset();
      job.overtakers.clear();
    }
    if (submit->job.start_timeout || submit->job.max_runtime) with_deadline_.insert(submit->job.id);
  }
  if (const auto* set = std::get_if<SetPriority>(&*entry.command))
    std::erase_if(evicted_for_, [&](const auto& pair) {
      return pair.first == set->id || pair.second == set->id;
    });
  const auto* removed = std::get_if<RemoveNode>(&*entry.command);
  const auto* put = std::get_if<PutNode>(&*entry.command);
  if (removed != nullptr || put != nullptr)
    if (const MirrorNode* node =
            mirror_.find_node(removed != nullptr ? removed->name : put->node.name))
      for (const MirrorTask* task : node->tasks) unsettled_.insert(task->job->spec.id);
  if (ended != nullptr) unsettled_.insert(ended->task.job);
  mirror_.told(*entry.command, now_);
}

// ---------------------------------------------------------------- effects

void Checkers::effect(const StartTasks& effect) {
  MirrorJob* job = mirror_.find_job(effect.job);
  if (job == nullptr) return report("states", effect.job + " starts although it has ended");
  for (const TaskPlace& place : effect.tasks) {
    check_place(*job, place);
    if (finding_) return;
    mirror_.start(*job, place, now_);
    ++starts_;
  }
  started_.insert(effect.job);
  fresh_.insert(effect.job);
  placed_.insert(effect.job);
  unsettled_.insert(effect.job);
}

void Checkers::effect(const StopTasks& effect) {
  MirrorJob* job = mirror_.find_job(effect.job);
  if (job == nullptr) return report("states", effect.job + " stops although it has ended");
  Eviction eviction{effect.job, effect.for_job, {}, effect.reason};
  // Who moves has no more than before, whatever the limits are by now.
  if (effect.reason == StopReason::Moved) job->admitted = true;
  for (const TaskRef& ref : effect.tasks) {
    const Rank rank{ref.group, ref.rank};
    const auto task = job->tasks.find(rank);
    if (task == job->tasks.end())
      return report("states", describe(ref) + " is told to stop, and does not run");
    if (task->second.stopping)
      return report("states", describe(ref) + " is told to stop a second time");
    mirror_.stop(*job, rank);
    eviction.tasks.push_back(rank);
  }
  if (!effect.for_job.empty()) evicted_.push_back(std::move(eviction));
  unsettled_.insert(effect.job);
}

void Checkers::effect(const NominateTasks& effect) {
  MirrorJob* job = mirror_.find_job(effect.job);
  if (job == nullptr) return report("states", effect.job + " is nominated although it has ended");
  for (const TaskPlace& place : effect.tasks) {
    const MirrorNode* node = mirror_.find_node(place.node);
    const auto group = static_cast<std::size_t>(place.task.group);
    if (node == nullptr)
      return report("places", effect.job + " is promised " + place.node + ", which is gone");
    if (const auto why = forbidden(*node, job->spec.groups[group].request, place))
      return report("places", fmt::format("{} is promised {}, although {}", describe(place.task),
                                          describe(place), *why));
    mirror_.nominate(*job, place);
  }
  placed_.insert(effect.job);
  unsettled_.insert(effect.job);
}

void Checkers::effect(const JobChanged& effect) {
  if (const MirrorJob* job = mirror_.find_job(effect.job)) {
    if (is_final_state(effect.state) && !job->tasks.empty())
      report("states", fmt::format("{} is {}, and {} of its tasks hold on", effect.job,
                                   effect.state, job->tasks.size()));
    if (effect.state == "waiting" && !job->tasks.empty())
      report("states", effect.job + " waits, and some of its tasks hold on");
    if (effect.state == "completed" && job->succeeded.empty())
      report("states", effect.job + " is completed, and nothing of it has succeeded");
  }
  mirror_.changed(effect, now_);
}

void Checkers::check_place(const MirrorJob& job, const TaskPlace& place) {
  const std::string what = fmt::format("{} starts on {}", describe(place.task), describe(place));
  const Rank rank{place.task.group, place.task.rank};
  if (job.tasks.count(rank) > 0) return report("places", what + " while it is still there");
  if (job.succeeded.count(rank) > 0) return report("places", what + " and has succeeded already");
  const MirrorNode* node = mirror_.find_node(place.node);
  if (node == nullptr) return report("places", what + ", which is gone");
  const TaskRequest& request = job.spec.groups[static_cast<std::size_t>(rank.first)].request;
  if (const auto why = forbidden(*node, request, place))
    return report("places", what + ", although " + *why);
  std::vector<Use> uses = uses_on(*node);
  uses.push_back({&job.spec.id, &request, &place});
  if (const auto too_much = overuse(node->spec, uses, request.resources))
    report("places", what + ", where there is no room: " + *too_much);
}

// ---------------------------------------------------------------- states and deadlines

void Checkers::at_rest(Instant now) {
  if (finding_) return;
  now_ = now;
  for (const std::string& id : unsettled_)
    if (const MirrorJob* job = mirror_.find_job(id)) {
      check_whole(*job);
      check_state(*job);
    }
  unsettled_.clear();
  for (auto it = with_deadline_.begin(); it != with_deadline_.end();) {
    const MirrorJob* job = mirror_.find_job(*it);
    if (job != nullptr) check_deadlines(*job);
    it = job == nullptr ? with_deadline_.erase(it) : std::next(it);
  }
}

void Checkers::check_state(const MirrorJob& job) {
  const std::string& state = job.state;
  const std::string of = fmt::format("{} is {}", job.spec.id, state);
  if (is_final_state(state)) return report("states", of + ", and was not forgotten");
  const bool waits = state == "waiting" || state == "held";
  if (waits && !job.tasks.empty()) report("states", of + ", and holds GPUs");
  if (!waits && job.tasks.empty() && job.nominated.empty())
    report("states", of + ", and has no task anywhere");
  if (static_cast<int>(job.succeeded.size()) == task_count(job.spec))
    report("states", of + ", and all its tasks have succeeded");
}

void Checkers::check_deadlines(const MirrorJob& job) {
  const std::string of = fmt::format("{} is {}", job.spec.id, job.state);
  const bool waits = job.state == "waiting" || job.state == "held";
  if (waits && job.spec.start_timeout && job.waiting_since + *job.spec.start_timeout < now_)
    report("states", fmt::format("{} since {}, with a time-out of {}", of,
                                 describe(job.waiting_since), describe(*job.spec.start_timeout)));
  if (job.active > 0 && job.spec.max_runtime && job.started + *job.spec.max_runtime < now_)
    report("states", fmt::format("{} since {}, with a maximum of {}", of, describe(job.started),
                                 describe(*job.spec.max_runtime)));
}

}  // namespace gs
