// Jobs: submitted, cancelled, held, timed out; and the one place where their state changes.
#include <algorithm>

#include "base/check.hpp"
#include "engine/state.hpp"
#include "queue/members.hpp"

namespace gs {
namespace {

Why plain_why(Verdict verdict, Constraint constraint, std::string sentence) {
  Why why;
  why.verdict = verdict;
  why.constraint = constraint;
  why.sentence = std::move(sentence);
  return why;
}

std::string in_minutes(std::int64_t ms) {
  const std::int64_t s = ms / 1000;
  return s % 60 == 0 ? std::to_string(s / 60) + " min" : std::to_string(s) + " s";
}

}  // namespace

// Held jobs count: what waits takes memory, whoever keeps it waiting.
Status Engine::Impl::room_in_queue(TenantId tenant) const {
  const auto full = [](const std::string& whose, std::int64_t waiting, std::int64_t most) {
    return Error{ErrorCode::QueueFull, "queue full" + whose + ": " + std::to_string(waiting) +
                                           " jobs wait, the maximum is " + std::to_string(most)};
  };
  const std::int64_t all = static_cast<std::int64_t>(queue.size()) + all_held;
  if (config.max_queue > 0 && all >= config.max_queue) return full("", all, config.max_queue);
  for (TenantId id = tenant; id.valid(); id = cluster.tenant(id).parent) {
    const TenantRecord& record = cluster.tenant(id);
    const auto held = held_jobs.find(id);
    const std::int64_t own = record.waiting_jobs + (held == held_jobs.end() ? 0 : held->second);
    if (own >= record.spec.max_queue)
      return full(" for tenant " + record.spec.id, own, record.spec.max_queue);
  }
  return ok_status();
}

Status Engine::Impl::apply(const SubmitJob& command) {
  const Job& job = command.job;
  if (Status s = validate(job); !s) return s;
  if (cluster.find_job(job.id).valid())
    return Error{ErrorCode::AlreadyExists, "job " + job.id + " exists already"};
  const TenantId tenant = cluster.find_tenant(job.tenant);
  if (!tenant.valid() || cluster.tenant(tenant).gone)
    return not_found("tenant " + job.tenant + " does not exist");
  if (Status s = room_in_queue(tenant); !s) return s;
  const std::uint64_t seq = cluster.next_seq();
  const JobId id = cluster.add_job(job, tenant);
  if (std::optional<Why> never = refusal_of(id)) {
    cluster.forget_job(id);
    cluster.set_next_seq(seq);
    const ErrorCode code = never->constraint == Constraint::Quota ? ErrorCode::QuotaExceeded
                                                                  : ErrorCode::InvalidArgument;
    return Error{code, never->sentence};
  }
  placer.observe(id);
  ++cluster.tenant(tenant).jobs;
  const JobState state = cluster.job(id).state;
  cluster.job(id).state = JobState::Held;  // so that entering the queue counts it as waiting
  count_held(tenant, 1);
  cluster.job(id).waiting_since = now;
  if (job.submitted == Instant{}) cluster.job(id).submitted = now;
  watch_deadline(id);
  if (state == JobState::Held)
    effects.emplace_back(JobChanged{job.id, to_string(JobState::Held), {}});
  else
    requeue(id);
  return ok_status();
}

Status Engine::Impl::apply(const CancelJob& command) {
  const JobId id = cluster.find_job(command.id);
  if (!id.valid()) return not_found("job " + command.id + " does not exist");
  if (cluster.job(id).state == JobState::Stopping)
    return Error{ErrorCode::Conflict, "job " + command.id + " is being stopped already"};
  stop_job(id, JobState::Cancelled, StopReason::Cancelled, std::nullopt);
  return ok_status();
}

Status Engine::Impl::apply(const HoldJob& command) {
  const JobId id = cluster.find_job(command.id);
  if (!id.valid()) return not_found("job " + command.id + " does not exist");
  const JobState state = cluster.job(id).state;
  if (command.held && state == JobState::Waiting) {
    queue.erase(id);
    set_state(id, JobState::Held);
  } else if (!command.held && state == JobState::Held) {
    requeue(id);
  } else if (state != JobState::Waiting && state != JobState::Held) {
    return Error{ErrorCode::Conflict, "job " + command.id + " is " + to_string(state) +
                                          "; only a waiting job can be held"};
  }
  return ok_status();
}

Status Engine::Impl::apply(const SetPriority& command) {
  const JobId id = cluster.find_job(command.id);
  if (!id.valid()) return not_found("job " + command.id + " does not exist");
  if (command.priority < 0 || command.priority > 1'000'000)
    return invalid("priority must be 0..1000000, got " + std::to_string(command.priority));
  const bool queued = queue.contains(id);
  queue.erase(id);
  cluster.job(id).priority = command.priority;
  cycle.eviction_order().forget(cluster.job(id).seq);  // who is more important was asked anew
  if (queued) queue.push(id);
  return ok_status();
}

Status Engine::Impl::apply(const MembersArrived& command) {
  const JobId id = cluster.find_job(command.id);
  if (!id.valid()) return not_found("job " + command.id + " does not exist");
  const int tasks = cluster.shape_of(id).tasks;
  if (command.arrived < 0 || command.arrived > tasks)
    return invalid("job " + command.id + ": arrived must be 0.." + std::to_string(tasks));
  queue.erase(id);
  cluster.job(id).arrived = command.arrived >= tasks ? -1 : command.arrived;
  const JobRecord& record = cluster.job(id);
  const bool waits = record.state == JobState::Waiting || record.active_tasks > 0;
  if (waits && is_ready(cluster, id) && !waiting_members(cluster, id, nullptr).empty())
    queue.push(id);
  return ok_status();
}

// ---------------------------------------------------------------- states

void Engine::Impl::set_state(JobId id, JobState state, std::optional<Why> why) {
  JobRecord& record = cluster.job(id);
  if (record.state == state) return;
  const int waits = (state == JobState::Waiting) - (record.state == JobState::Waiting);
  for (TenantId t = record.tenant; t.valid(); t = cluster.tenant(t).parent)
    cluster.tenant(t).waiting_jobs += waits;
  const int holds = (state == JobState::Held) - (record.state == JobState::Held);
  if (holds != 0) count_held(record.tenant, holds);
  record.state = state;
  effects.emplace_back(JobChanged{record.id, to_string(state),
                                  why ? std::make_shared<const Why>(std::move(*why)) : nullptr});
}

void Engine::Impl::count_held(TenantId tenant, int change) {
  all_held += change;
  for (TenantId t = tenant; t.valid(); t = cluster.tenant(t).parent) held_jobs[t] += change;
}

void Engine::Impl::requeue(JobId id) {
  JobRecord& record = cluster.job(id);
  record.waiting_since = now;
  set_state(id, JobState::Waiting);
  // An incomplete gang is in nobody's way: it enters the queue when it is whole.
  if (is_ready(cluster, id)) queue.push(id);
  watch_deadline(id);
}

void Engine::Impl::end_job(JobId id, JobState state, std::optional<Why> why) {
  queue.erase(id);
  endings.erase(id);
  const std::uint64_t seq = cluster.job(id).seq;
  cycle.broken().erase({seq, id});
  std::erase(cycle.nominated(), id);
  cycle.eviction_order().forget(seq);
  --cluster.tenant(cluster.job(id).tenant).jobs;
  set_state(id, state, std::move(why));
  cluster.forget_job(id);
}

void Engine::Impl::refresh(JobId id) {
  const JobRecord& record = cluster.job(id);
  if (is_final(record.state)) return;
  if (record.state == JobState::Stopping) {
    if (record.tasks.empty()) {
      const auto known = endings.find(id);
      std::optional<Why> why;
      if (known != endings.end()) why = std::move(known->second);
      end_job(id, record.ends_as, std::move(why));
    }
    return;
  }
  if (record.active_tasks == 0) {
    const int tasks = cluster.shape_of(id).tasks;
    if (record.releasing_tasks > 0) {
      if (record.state != JobState::Evicting && record.state != JobState::Waiting) {
        cluster.job(id).ran_ms += std::max<std::int64_t>(0, now.ms - record.started.ms);
        ++cluster.job(id).preemptions;
        cycle.broken().erase({record.seq, id});
        queue.erase(id);
        set_state(id, JobState::Evicting);
      }
    } else if (!record.ended.empty() && (static_cast<int>(record.ended.size()) >= tasks ||
                                         (record.state != JobState::Evicting &&
                                          !cycle.broken().contains({record.seq, id})))) {
      // All that ran has succeeded; members of an elastic job that never started are not needed.
      end_job(id, JobState::Completed, std::nullopt);
    } else if (record.state == JobState::Evicting || record.state == JobState::Starting ||
               record.state == JobState::Running) {
      cycle.broken().erase({record.seq, id});
      queue.erase(id);
      requeue(id);
    }
    return;
  }
  if (record.state == JobState::Waiting || record.state == JobState::Held ||
      record.state == JobState::Evicting) {
    cluster.job(id).started = now;
    set_state(id, JobState::Starting);
    watch_deadline(id);
  }
  const int running = record.active_tasks - record.nominated_tasks;
  if (record.state == JobState::Starting && running > 0 && record.nominated_tasks == 0 &&
      record.started_tasks >= running)
    set_state(id, JobState::Running);
  // Ranks that were told to stop can be given out again once they have gone.
  const auto there = record.tasks.size() + record.ended.size();
  if (there < static_cast<std::size_t>(cluster.shape_of(id).tasks) && !queue.contains(id) &&
      !cycle.broken().contains({record.seq, id}) && !waiting_members(cluster, id, nullptr).empty())
    queue.push(id);
}

void Engine::Impl::stop_job(JobId id, JobState ends_as, StopReason reason, std::optional<Why> why) {
  queue.erase(id);
  std::vector<TaskId> tasks = cluster.job(id).tasks;
  std::sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) {
    return std::tuple(cluster.task(a).group, cluster.task(a).rank) <
           std::tuple(cluster.task(b).group, cluster.task(b).rank);
  });
  StopTasks stop{cluster.job(id).id, {}, reason, {}};
  for (const TaskId task : tasks) {
    if (cluster.task(task).state == TaskState::Running) {
      stop.tasks.push_back(ref(cluster.task(task)));
      cluster.set_task_state(task, TaskState::Releasing);
    } else if (cluster.task(task).state == TaskState::Nominated) {
      cluster.remove_task(task);
    }
  }
  if (!stop.tasks.empty()) effects.emplace_back(std::move(stop));
  if (cluster.job(id).tasks.empty()) {
    end_job(id, ends_as, std::move(why));
    return;
  }
  cycle.broken().erase({cluster.job(id).seq, id});
  std::erase(cycle.nominated(), id);
  cluster.job(id).ends_as = ends_as;
  if (why) endings[id] = *why;
  set_state(id, JobState::Stopping, std::move(why));
}

// ---------------------------------------------------------------- deadlines

void Engine::Impl::watch_deadline(JobId id) {
  const JobRecord& record = cluster.job(id);
  const bool placed = record.active_tasks > 0;
  if (!placed && record.start_timeout_ms >= 0)
    deadlines.emplace(record.waiting_since + milliseconds(record.start_timeout_ms), record.seq, id);
  if (placed && record.max_runtime_ms >= 0)
    deadlines.emplace(record.started + milliseconds(record.max_runtime_ms), record.seq, id);
  if (placed && record.min_runtime_ms > 0)  // nothing happens to it then, but others may go on
    deadlines.emplace(record.started + milliseconds(record.min_runtime_ms), record.seq, id);
}

void Engine::Impl::check_deadline(JobId id) {
  const JobRecord& record = cluster.job(id);
  if (is_final(record.state) || record.state == JobState::Stopping) return;
  const bool waits = record.state == JobState::Waiting || record.state == JobState::Held;
  if (waits && record.start_timeout_ms >= 0 &&
      record.waiting_since + milliseconds(record.start_timeout_ms) <= now) {
    Why why = why_waiting(id);
    const std::string waited = "did not start within " + in_minutes(record.start_timeout_ms);
    stop_job(id, JobState::Failed, StopReason::TimeLimit,
             plain_why(Verdict::Broken, Constraint::Timeout, waited + ": " + why.sentence));
  } else if (record.active_tasks > 0 && record.max_runtime_ms >= 0 &&
             record.started + milliseconds(record.max_runtime_ms) <= now) {
    stop_job(id, JobState::Failed, StopReason::TimeLimit,
             plain_why(Verdict::Broken, Constraint::Timeout,
                       "ran longer than max_runtime (" + in_minutes(record.max_runtime_ms) + ")"));
  }
}

}  // namespace gs
