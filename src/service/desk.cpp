// The turn, and what the engine's effects mean for rows, orders and events.
#include "service/desk.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "wire/job_json.hpp"

namespace gs {

Desk::Desk(DeskOptions options, FindEnded find_ended)
    : options_(std::move(options)),
      find_ended_(std::move(find_ended)),
      engine_(std::make_unique<Engine>()) {
  Status configured = tell(SetConfig{options_.config});
  CHECK_MSG(configured.ok(), configured.ok() ? "" : configured.error().message);
  configured = tell(SetTopology{options_.topology});
  CHECK_MSG(configured.ok(), configured.ok() ? "" : configured.error().message);
}

void Desk::reconfigure(const DeskOptions& options) {
  if (tell(SetConfig{options.config})) options_.config = options.config;
  options_.lease = options.lease;
  options_.lease_margin = options.lease_margin;
  options_.offline_after = options.offline_after;
  options_.grace = options.grace;
  options_.cost_per_gpu_hour = options.cost_per_gpu_hour;
  settle();
}

void Desk::begin(Instant now) {
  now_ = std::max(now_, now);
  check_nodes();
}

bool Desk::wants_cycle() const { return engine_->needs_tick(now_); }

void Desk::cycle() {
  for (Effect& effect : engine_->tick(now_)) effects_.push_back(std::move(effect));
  settle();
}

std::optional<Instant> Desk::next_wake() const {
  std::optional<Instant> wake = engine_->next_deadline();
  for (const auto& [name, node] : nodes_) {
    const Instant due = node.online ? node.last_contact + options_.offline_after
                                    : node.last_contact + options_.lease + options_.lease_margin;
    if (due > now_ && (!wake || due < *wake)) wake = due;
  }
  return wake;
}

TurnResult Desk::take() {
  TurnResult result;
  for (const std::int64_t seq : touched_jobs_) {
    LiveJob* live = find(seq);
    if (live == nullptr || !live->dirty) continue;  // ended, or here twice
    live->row.placement = placement_of(*live);
    (live->is_new ? batch_.added : batch_.changed).push_back(live->row);
    live->is_new = live->dirty = false;
  }
  for (const std::string& id : touched_tenants_)
    if (const auto it = tenants_.find(id); it != tenants_.end()) {
      touch_tenant(id);
      batch_.tenants.push_back(it->second);
    }
  for (const std::string& name : touched_nodes_)
    if (const auto it = nodes_.find(name); it != nodes_.end())
      batch_.nodes.push_back(it->second.row);
  touched_jobs_.clear();
  touched_tenants_.clear();
  touched_nodes_.clear();
  result.batch = std::move(batch_);
  result.orders = std::move(orders_);
  result.events = std::move(events_);
  batch_ = {};
  orders_.clear();
  events_.clear();
  if (!result.batch.empty()) result.batch.turn = ++turn_;
  return result;
}

// ---------------------------------------------------------------- bookkeeping

std::int64_t Desk::next_seq() {
  last_seq_ = std::max(last_seq_ + 1, now_.ms * 1'000'000);
  return last_seq_;
}

Desk::LiveJob* Desk::find(std::int64_t seq) {
  const auto it = jobs_.find(seq);
  return it == jobs_.end() ? nullptr : &it->second;
}

Desk::LiveJob* Desk::find(const std::string& id) {
  const auto seq = job_seq(id);
  return seq ? find(*seq) : nullptr;
}

// Where it runs, or ran last: a job that waits again or has ended keeps what it had.
std::string Desk::placement_of(const LiveJob& live) {
  if (live.processes.empty()) return live.row.placement;
  std::vector<Process> all = live.done;
  all.insert(all.end(), live.processes.begin(), live.processes.end());
  return encode_processes(all);
}

const JobRow* Desk::job(std::int64_t seq) const {
  const auto it = jobs_.find(seq);
  return it == jobs_.end() ? nullptr : &it->second.row;
}

const JobSpec& Desk::spec_of(LiveJob& live) {
  if (!live.spec) {
    Result<JobSpec> spec = parse_job(live.row.spec);
    CHECK_MSG(spec.ok(), "a stored job can't be read: " + live.row.spec);
    live.spec = std::make_shared<const JobSpec>(std::move(*spec));
  }
  return *live.spec;
}

void Desk::touch(LiveJob& live) {
  if (!live.dirty) touched_jobs_.push_back(live.row.seq);
  live.dirty = true;
}

void Desk::set_state(LiveJob& live, RunState state) {
  if (live.row.state == state) return;
  --counts_[static_cast<std::size_t>(live.row.state)];
  ++counts_[static_cast<std::size_t>(state)];
  ++entered_[static_cast<std::size_t>(state)];
  live.row.state = state;
  touch(live);
}

void Desk::event(std::string type, const LiveJob* live, std::string node, std::string message,
                 bool durable) {
  EventRow row;
  // Grows by time too, so that numbers given out before a crash are not given out again.
  last_event_ = std::max(last_event_ + 1, static_cast<std::uint64_t>(now_.ms) * 1000);
  row.id = last_event_;
  row.time = now_;
  row.type = std::move(type);
  if (live != nullptr) {
    row.job = live->row.seq;
    row.tenant = live->row.tenant;
  }
  row.node = std::move(node);
  row.message = std::move(message);
  if (durable) batch_.events.push_back(row);
  events_.push_back(std::move(row));
}

// ---------------------------------------------------------------- effects

Status Desk::tell(const Command& command) {
  Result<Effects> effects = engine_->handle(command, now_);
  if (!effects) return effects.error();
  for (Effect& effect : *effects) effects_.push_back(std::move(effect));
  return ok_status();
}

void Desk::settle() {
  if (settling_) return;
  settling_ = true;
  // What an effect brings about may have effects of its own: they come after those under way.
  for (std::size_t i = 0; i < effects_.size(); ++i) {
    const Effect effect = std::move(effects_[i]);
    std::visit([&](const auto& e) { on(e); }, effect);
  }
  effects_.clear();
  settling_ = false;
}

void Desk::on(const StartTasks& effect) {
  LiveJob* live = find(effect.job);
  CHECK_MSG(live != nullptr, "the engine starts a job that the desk does not know");
  live->places.insert(live->places.end(), effect.tasks.begin(), effect.tasks.end());
  launch(*live);
}

void Desk::on(const StopTasks& effect) {
  LiveJob* live = find(effect.job);
  CHECK_MSG(live != nullptr, "the engine stops a job that the desk does not know");
  live->evicted_by = effect.reason;
  const std::string reason = to_string(effect.reason);
  const std::string what =
      reason + (effect.for_job.empty() ? "" : ": makes room for " + effect.for_job);
  if (effect.reason == StopReason::Preempted || effect.reason == StopReason::Reclaimed)
    ++preemptions_;
  if (effect.reason != StopReason::Cancelled) event("job.stopping", live, {}, what);
  const std::int64_t seq = live->row.seq;
  for (const TaskRef& task : effect.tasks) {
    const auto at = std::find_if(live->places.begin(), live->places.end(),
                                 [&](const TaskPlace& place) { return place.task == task; });
    CHECK_MSG(at != live->places.end(), "the engine stops a task that it has not placed");
    live->leaving.push_back(std::move(*at));
    live->places.erase(at);
    // A place that no process has been started on is free at once.
    Process* process = process_of(*live, task);
    if (process != nullptr)
      order_stop(*live, *process, what);
    else
      give_back(live->leaving, task, Outcome::Stopped);
  }
  touch(*find(seq));
}

void Desk::on(const JobChanged& effect) {
  LiveJob* live = find(effect.job);
  CHECK_MSG(live != nullptr, "the engine tells of a job that the desk does not know");
  const std::string& state = effect.state;
  if (state == "waiting" || state == "held") {
    back_in_queue(*live);
  } else if (state == "stopping") {
    if (live->row.ending == Ending::None) live->row.ending = Ending::Fail;
    if (effect.why && live->row.message.empty()) live->row.message = effect.why->sentence;
    touch(*live);
  } else if (state == "completed") {
    end(*live, RunState::Completed, effect.why.get());
  } else if (state == "failed") {
    end(*live, RunState::Failed, effect.why.get());
  } else if (state == "cancelled") {
    const RunState usual =
        live->row.ending == Ending::Fail ? RunState::Failed : RunState::Cancelled;
    end(*live, live->ended_as.value_or(usual), effect.why.get());
  }
}

void Desk::back_in_queue(LiveJob& live) {
  if (live.is_new && live.row.attempt == 0) return;  // it has just come
  const bool evicted =
      live.evicted_by == StopReason::Preempted || live.evicted_by == StopReason::Reclaimed;
  if (live.row.state == RunState::Pending || live.row.state == RunState::Preempted) return;
  if (evicted) ++live.row.preempted_count;
  set_state(live, evicted ? RunState::Preempted : RunState::Pending);
  event(evicted ? "job.preempted" : "job.requeued", &live, {},
        evicted ? "gave its GPUs to others and waits to go on" : "waits to start again");
  live.evicted_by.reset();
}

void Desk::end(LiveJob& live, RunState state, const Why* why) {
  CHECK_MSG(live.processes.empty(),
            "job " + job_id(live.row.seq) + " ended as " + to_string(state) +
                " while a process of it is there: " + encode_processes(live.processes));
  JobRow& row = live.row;
  const std::int64_t seq = row.seq;
  if (row.ending == Ending::Requeue) {
    JobRow again = row;
    const bool is_new = live.is_new;
    --counts_[static_cast<std::size_t>(row.state)];
    jobs_.erase(seq);
    resubmit(std::move(again));
    if (LiveJob* back = find(seq); back != nullptr) back->is_new = is_new;
    return;
  }
  set_state(live, state);
  --counts_[static_cast<std::size_t>(state)];
  row.completed = std::max(row.started, live.ended_at.value_or(now_));
  row.ending = Ending::None;
  if (row.message.empty() && why) row.message = why->sentence;
  TenantRow& tenant = tenants_.at(row.tenant);
  tenant.successful_jobs += state == RunState::Completed;
  tenant.failed_jobs += state == RunState::Failed;
  touched_tenants_.insert(row.tenant);
  UsageRow usage{row.tenant, Instant{row.completed.ms / 3'600'000 * 3'600'000}, 0, 1, 0};
  batch_.usage.push_back(std::move(usage));
  event(std::string("job.") + to_string(state), &live, {},
        row.message.empty() ? to_string(state) : row.message);
  (live.is_new ? batch_.added : batch_.changed).push_back(std::move(row));
  jobs_.erase(seq);
  wake_dependents(seq, state);
}

}  // namespace gs
