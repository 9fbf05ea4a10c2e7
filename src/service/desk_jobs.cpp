// Jobs: submitted, cancelled, held, started over; and those that wait for others to end.
#include <algorithm>

#include "service/desk.hpp"
#include "wire/job_json.hpp"

namespace gs {
namespace {

Error no_such_job(std::int64_t seq) { return not_found("job " + job_id(seq) + " does not exist"); }

// What a dependency that has ended means for those that wait for it.
bool is_satisfied(const Dependency& dependency, RunState state) {
  return dependency.any_end || state == RunState::Completed;
}

}  // namespace

// ---------------------------------------------------------------- submitting

Result<std::set<std::int64_t>> Desk::open_dependencies(const JobSpec& spec) {
  std::set<std::int64_t> open;
  for (const Dependency& dependency : spec.depends_on) {
    const auto seq = job_seq(dependency.job);
    if (!seq) return invalid("depends_on: '" + dependency.job + "' is not a job id");
    if (find(*seq) != nullptr) {
      open.insert(*seq);
      continue;
    }
    Result<std::optional<JobRow>> ended = find_ended_(*seq);
    if (!ended) return ended.error();
    if (!*ended) return not_found("depends_on: job " + dependency.job + " does not exist");
    if (!is_satisfied(dependency, (*ended)->state))
      return Error{ErrorCode::Conflict, "depends_on: job " + dependency.job + " has " +
                                            to_string((*ended)->state) +
                                            "; this one would never run"};
  }
  return open;
}

Status Desk::enter(LiveJob& live, const JobSpec& spec) {
  Job job = to_job(spec, job_id(live.row.seq), live.row.submitted);
  job.priority = live.row.priority;
  job.held = live.row.held || !live.waits_for.empty();
  const TenantRow& tenant = tenants_.at(live.row.tenant);
  if (const int bound = tenant.spec.max_preemptions; bound > 0) {
    job.preemptible = job.preemptible && live.row.preempted_count < bound;
    job.max_preemptions = std::max(1, bound - live.row.preempted_count);
  }
  live.tasks = task_count(job);
  return tell(SubmitJob{std::move(job)});
}

Result<std::int64_t> Desk::submit(const JobSpec& spec) {
  if (!tenants_.contains(spec.tenant_id))
    return not_found("tenant " + spec.tenant_id + " does not exist");
  const std::int64_t seq = next_seq();
  if (spec.array_index < 0 || !spec.array_id.empty()) return accept(spec, seq);
  JobSpec first = spec;  // of an array, which is called after it
  first.array_id = job_id(seq);
  return accept(first, seq);
}

Result<std::int64_t> Desk::accept(const JobSpec& spec, std::int64_t seq) {
  Result<std::set<std::int64_t>> open = open_dependencies(spec);
  if (!open) return open.error();
  LiveJob live;
  live.waits_for = std::move(*open);
  JobRow& row = live.row;
  row.seq = seq;
  row.tenant = spec.tenant_id;
  row.name = spec.name;
  row.gpu_count = spec.gpu_count;
  row.labels = spec.labels;
  row.array_id = spec.array_id;
  row.submitted = now_;
  row.priority = spec.priority;
  row.held = spec.held;
  row.spec = encode_job(spec);
  live.is_new = true;
  if (Status s = enter(live, spec); !s) return s.error();
  ++total_jobs_;
  ++tenants_.at(row.tenant).total_jobs;
  touched_tenants_.insert(row.tenant);
  add(std::move(live));
  event("job.submitted", find(seq), {}, "submitted", false);
  settle();
  return seq;
}

void Desk::add(LiveJob live) {
  const std::int64_t seq = live.row.seq;
  ++counts_[static_cast<std::size_t>(live.row.state)];
  ++entered_[static_cast<std::size_t>(live.row.state)];
  for (const std::int64_t other : live.waits_for) dependents_[other].push_back(seq);
  live.dirty = false;
  touch(jobs_.emplace(seq, std::move(live)).first->second);
}

Result<std::vector<std::int64_t>> Desk::submit_array(const JobSpec& spec) {
  const auto room = [&](std::int64_t limit, std::int64_t waiting) {
    return limit == 0 || waiting + spec.array_size <= limit;
  };
  // All of them or none.
  const std::int64_t waiting = count(RunState::Pending) + count(RunState::Preempted);
  if (!room(options_.config.max_queue, waiting))
    return Error{ErrorCode::QueueFull, "queue full: " + std::to_string(waiting) +
                                           " jobs wait, the maximum is " +
                                           std::to_string(options_.config.max_queue)};
  std::vector<std::int64_t> jobs;
  JobSpec one = spec;
  one.array_size = 0;
  set_label(one.environment, "GPU_SCHEDULER_ARRAY_SIZE", std::to_string(spec.array_size));
  for (int i = 0; i < spec.array_size; ++i) {
    one.array_index = i;
    set_label(one.environment, "GPU_SCHEDULER_ARRAY_INDEX", std::to_string(i));
    one.array_id = jobs.empty() ? std::string{} : job_id(jobs.front());
    Result<std::int64_t> seq = submit(one);
    if (!seq) {
      for (const std::int64_t job : jobs) (void)cancel(job);
      return seq.error();
    }
    jobs.push_back(*seq);
  }
  return jobs;
}

// ---------------------------------------------------------------- changing

Error Desk::not_live(std::int64_t job) const {
  Result<std::optional<JobRow>> ended = find_ended_(job);
  if (!ended) return ended.error();
  if (!*ended) return no_such_job(job);
  const char* state = to_string((*ended)->state);
  return Error{ErrorCode::Conflict, "job " + job_id(job) + " has ended already: it is " + state};
}

Result<std::optional<std::string>> Desk::tenant_of(std::int64_t job) const {
  if (const auto live = jobs_.find(job); live != jobs_.end())
    return std::optional(live->second.row.tenant);
  Result<std::optional<JobRow>> ended = find_ended_(job);
  if (!ended) return ended.error();
  return *ended ? std::optional((*ended)->tenant) : std::nullopt;
}

Status Desk::cancel(std::int64_t job) {
  LiveJob* live = find(job);
  if (live == nullptr) return not_live(job);
  if (live->row.ending != Ending::None) {  // on its way out: now it does not come back
    if (live->row.ending == Ending::Requeue) live->row.ending = Ending::Cancel, touch(*live);
    return ok_status();
  }
  live->row.ending = Ending::Cancel;
  touch(*live);
  Status told = tell(CancelJob{job_id(job)});
  if (!told) live->row.ending = Ending::None;
  settle();
  return told;
}

Status Desk::hold_in_engine(LiveJob& live) {
  return tell(HoldJob{job_id(live.row.seq), live.row.held || !live.waits_for.empty()});
}

Status Desk::hold(std::int64_t job, bool held) {
  LiveJob* live = find(job);
  if (live == nullptr) return not_live(job);
  const bool before = live->row.held;
  live->row.held = held;
  if (Status s = hold_in_engine(*live); !s) {
    live->row.held = before;
    return s;
  }
  touch(*live);
  if (before != held)
    event(held ? "job.held" : "job.released", live, {}, held ? "held" : "released");
  settle();
  return ok_status();
}

Status Desk::requeue(std::int64_t job) {
  LiveJob* live = find(job);
  if (live == nullptr) {
    Result<std::optional<JobRow>> ended = find_ended_(job);
    if (!ended) return ended.error();
    if (!*ended) return no_such_job(job);
    if (!tenants_.contains((*ended)->tenant))
      return not_found("tenant " + (*ended)->tenant + " does not exist any more");
    resubmit(std::move(**ended));
    if (find(job) == nullptr)
      return Error{ErrorCode::Conflict, "job " + job_id(job) + " is not accepted any more"};
    settle();
    return ok_status();
  }
  if (live->places.empty())
    return Error{ErrorCode::Conflict, "job " + job_id(job) + " waits already"};
  if (live->row.ending != Ending::None)
    return Error{ErrorCode::Conflict, "job " + job_id(job) + " is being stopped"};
  live->row.ending = Ending::Requeue;
  touch(*live);
  Status told = tell(CancelJob{job_id(job)});
  settle();
  return told;
}

// The same job once more: same id, next attempt.
void Desk::resubmit(JobRow row) {
  LiveJob live;
  live.row = std::move(row);
  live.row.state = RunState::Pending;
  live.row.ending = Ending::None;
  live.row.held = false;
  live.row.scheduled = live.row.started = live.row.completed = Instant{};
  live.row.exit_code.reset();
  live.row.signal = 0;
  live.row.message.clear();
  live.row.placement.clear();
  const std::int64_t seq = live.row.seq;
  const JobSpec spec = spec_of(live);
  if (Status s = enter(live, spec); !s) {
    live.row.state = RunState::Failed;
    live.row.completed = now_;
    live.row.message = "could not be queued again: " + s.error().message;
    batch_.changed.push_back(std::move(live.row));
    return;
  }
  add(std::move(live));
  event("job.requeued", find(seq), {}, "queued again");
}

Status Desk::set_priority(std::int64_t job, int priority) {
  LiveJob* live = find(job);
  if (live == nullptr) return not_live(job);
  if (Status s = tell(SetPriority{job_id(job), priority}); !s) return s;
  live->row.priority = priority;
  touch(*live);
  event("job.priority", live, {}, "priority is now " + std::to_string(priority));
  settle();
  return ok_status();
}

void Desk::wake_dependents(std::int64_t job, RunState state) {
  const auto waiting = dependents_.find(job);
  if (waiting == dependents_.end()) return;
  const std::vector<std::int64_t> dependents = std::move(waiting->second);
  dependents_.erase(waiting);
  for (const std::int64_t seq : dependents) {
    LiveJob* live = find(seq);
    if (live == nullptr || live->waits_for.erase(job) == 0) continue;
    const std::string id = job_id(job);
    bool satisfied = true;
    for (const Dependency& dependency : spec_of(*live).depends_on)
      if (dependency.job == id) satisfied = satisfied && is_satisfied(dependency, state);
    if (satisfied) {
      (void)hold_in_engine(*live);  // it waits: it was held until now
    } else {
      live->row.message = "depends on " + id + ", which has " + to_string(state);
      (void)cancel(seq);
    }
  }
}

// ---------------------------------------------------------------- asking

Result<Explanation> Desk::explain(std::int64_t job) {
  LiveJob* live = find(job);
  if (live == nullptr) return no_such_job(job);
  Result<Explanation> answer = engine_->explain(job_id(job), now_);
  if (answer && !live->waits_for.empty()) {
    std::string list;
    for (const std::int64_t other : live->waits_for)
      list.append(list.empty() ? "" : ", ").append(job_id(other));
    if (answer->why) answer->why->sentence = "waits for " + list + " to end";
  }
  return answer;
}

Result<DryRun> Desk::dry_run(const JobSpec& spec) {
  if (!tenants_.contains(spec.tenant_id))
    return not_found("tenant " + spec.tenant_id + " does not exist");
  return engine_->dry_run(to_job(spec, "dry-run", now_), now_);
}

Result<std::optional<KeyRow>> Desk::recall(Store& store, const std::string& tenant,
                                           const std::string& key) const {
  for (const KeyRow& row : batch_.keys)
    if (row.tenant == tenant && row.key == key) return std::optional(row);
  return store.find_key(tenant, key);
}

int Desk::queue_position(std::int64_t job) const {
  const auto it = jobs_.find(job);
  if (it == jobs_.end() || !it->second.places.empty()) return 0;
  const JobRow& row = it->second.row;
  int before = 1;
  for (const auto& [seq, live] : jobs_)
    if (live.places.empty() &&
        (live.row.priority > row.priority || (live.row.priority == row.priority && seq < row.seq)))
      ++before;
  return before;
}

}  // namespace gs
