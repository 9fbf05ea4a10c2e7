// The turn, and what the engine's effects mean.
#include "drivers/kubernetes/desk.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace gs::kube {
namespace {

// Plans that are turned back by rules between pods are made anew at once, but not for ever.
constexpr int kRoundsPerCycle = 16;

}  // namespace

PodName name_of(const Pod& pod) { return {pod.meta.ns, pod.meta.name, pod.meta.uid}; }

Desk::Desk(DeskOptions options, AskOf ask_of)
    : options_(std::move(options)),
      ask_of_(std::move(ask_of)),
      engine_(std::make_unique<Engine>()) {
  // A pod that fits nowhere waits: somebody may add a node for it.
  options_.config.refuse_never = false;
  Status configured = tell(SetConfig{options_.config});
  CHECK_MSG(configured.ok(), configured.ok() ? "" : configured.error().message);
  configured = tell(SetTopology{options_.levels});
  CHECK_MSG(configured.ok(), configured.ok() ? "" : configured.error().message);
  Tenant others;
  others.id = kOthersTenant;
  others.allow_preemption = false;
  configured = tell(PutTenant{others});
  CHECK(configured.ok());
}

void Desk::begin(Instant now) {
  now_ = std::max(now_, now);
  if (!synced_) return;
  check_members();
  check_leases();
  for (const std::string& id : std::vector<std::string>(held_.begin(), held_.end()))
    if (Unit& unit = units_.at(id); unit.retry_at <= now_) release_held(unit);
  while (!retries_.empty() && retries_.begin()->first <= now_) {
    const std::string uid = retries_.begin()->second;
    retries_.erase(retries_.begin());
    reconsider(uid);
  }
  stand_waiting();
  untie_stuck();
  settle_tenants();
  settle();
}

// Nodes lie nowhere while levels change, since their paths are of the old ones.
Status Desk::configure(const Config& config, std::vector<std::string> levels,
                       std::vector<std::string> scheduler_names, DeviceNaming naming) {
  Config wanted = config;
  wanted.refuse_never = false;
  if (Status told = tell(SetConfig{wanted}); !told) return told;
  options_.config = std::move(wanted);
  if (levels != options_.levels) {
    for (auto& [name, record] : nodes_) {
      if (!record.node) continue;
      gs::Node nowhere = *record.node;
      nowhere.domain.clear();
      record.node = std::make_shared<const gs::Node>(std::move(nowhere));
      if (synced_) touch_node(name);
    }
    put_dirty_nodes();
    options_.levels = std::move(levels);
    const Status told = tell(SetTopology{options_.levels});
    CHECK_MSG(told.ok(), told.ok() ? "" : told.error().message);
  }
  options_.scheduler_names = std::move(scheduler_names);
  options_.naming = naming;
  for (const std::string& uid : pods_by_age()) {
    PodRecord& record = pods_.at(uid);
    const bool was_ours = std::exchange(record.ours, is_ours(record.pod));
    if (!synced_ || record.ours == was_ours) continue;
    if (record.ours)
      look_at(record);
    else if (!record.unit.empty() && !has_begun(units_.at(record.unit)))
      (void)tell(CancelJob{record.unit});
  }
  settle();
  return ok_status();
}

bool Desk::wants_cycle() const {
  return synced_ &&
         (engine_->needs_tick(now_) || plan_is_old_ || turned_back_ > 0 || !dirty_nodes_.empty() ||
          !dirty_budgets_.empty() || (!ruled_waiting_.empty() && rules_version() != seen_rules_));
}

void Desk::cycle() {
  plan_is_old_ = false;
  refresh_budgets();
  for (int round = 0; round < kRoundsPerCycle; ++round) {
    refresh_families();
    put_dirty_nodes();
    turned_back_ = 0;
    take_in(engine_->tick(now_));
    settle();
    solve_turned_back();
    settle();
    if (turned_back_ == 0) break;
  }
  seen_rules_ = rules_version();
  untie_stuck();
  settle();
}

std::optional<Instant> Desk::next_wake() const {
  std::optional<Instant> wake = engine_->next_deadline();
  const auto sooner = [&](Instant due) {
    if (!wake || due < *wake) wake = due;
  };
  for (const std::string& id : held_) sooner(units_.at(id).retry_at);
  for (const std::string& id : hollow_)
    for (const Slot& slot : units_.at(id).slots)
      if (slot.pod.empty() && slot.stage != Stage::Done)
        sooner(slot.empty_since + options_.member_timeout);
  for (const std::string& name : wrong_leases_) {
    const LeaseRecord& record = leases_.at(name);
    sooner(std::max(record.seen, record.ordered) + options_.lease_patience);
  }
  for (const std::string& id : tied_)
    if (const auto it = units_.find(id); it != units_.end()) sooner(it->second.untie_at);
  if (wants_cycle()) sooner(now_);
  if (!retries_.empty()) sooner(retries_.begin()->first);
  if (!tell_at_.empty()) sooner(tell_at_.begin()->first);
  if (!claim_looks_.empty()) sooner(claim_looks_.begin()->first);
  if (const std::optional<Instant> due = tenants_due()) sooner(*due);
  return wake;
}

std::vector<Order> Desk::take() {
  put_dirty_nodes();
  settle();
  if (synced_) {
    tell_waiting();
    tell_claims();
    tell_tenants();
  }
  return std::exchange(orders_, {});
}

// ---------------------------------------------------------------- engine

Status Desk::tell(const Command& command) {
  Result<Effects> effects = engine_->handle(command, now_);
  if (!effects) return effects.error();
  take_in(std::move(*effects));
  return ok_status();
}

// A cycle has thousands of effects: they are taken over as they are.
void Desk::take_in(Effects effects) {
  tenants_changed_ = true;
  if (effects_.empty())
    effects_ = std::move(effects);
  else
    effects_.insert(effects_.end(), std::move_iterator(effects.begin()),
                    std::move_iterator(effects.end()));
}

// Working off an effect may tell the engine something, which has effects of its own.
void Desk::settle() {
  if (settling_) return;
  settling_ = true;
  while (!effects_.empty() || !newly_used_.empty()) {
    for (const Effect& effect : std::exchange(effects_, {}))
      std::visit([&](const auto& e) { on(e); }, effect);
    if (effects_.empty()) look_at_newly_used();
  }
  settling_ = false;
}

Desk::Slot* Desk::find_slot(const TaskRef& task) {
  const auto unit = units_.find(task.job);
  if (unit == units_.end()) return nullptr;
  for (Slot& slot : unit->second.slots)
    if (slot.task == task) return &slot;
  return nullptr;
}

Desk::Slot* Desk::slot_of(const PodRecord& record) {
  return record.unit.empty() ? nullptr : &units_.at(record.unit).slots[record.slot];
}

void Desk::on(const StartTasks& effect) {
  const auto it = units_.find(effect.job);
  if (it == units_.end()) return;  // a blocker: it is there already
  Unit& unit = it->second;
  std::vector<std::size_t> ready;
  for (const TaskPlace& place : effect.tasks) {
    Slot* slot = find_slot(place.task);
    CHECK_MSG(slot != nullptr, "the engine starts a task that no pod stands for");
    CHECK_MSG(!slot->place, "the engine starts a task that has a place");
    slot->place = place;
    slot->stop = false;
    if (slot->stage == Stage::Done) {  // it was promised a place before its pod left the unit
      give_back(*slot, Outcome::Succeeded);
      continue;
    }
    if (slot->pod.empty()) continue;  // its pod is still to be made
    if (slot->stage == Stage::Bound) {
      // The engine lost the place of a pod that is bound: its node is gone. The pod has to go, too;
      // the one that is made in its stead gets this place.
      evict(pods_.at(slot->pod), "NodeLost", "its node was lost; a new place is ready");
      continue;
    }
    ready.push_back(static_cast<std::size_t>(slot - unit.slots.data()));
  }
  if (!held_.contains(unit.id)) bind_ready(unit, std::move(ready));
}

void Desk::on(const StopTasks& effect) {
  const std::string message =
      std::string(to_string(effect.reason)) +
      (effect.for_job.empty() ? std::string{} : " to make room for " + title_of(effect.for_job));
  for (const TaskRef& task : effect.tasks) {
    Slot* slot = find_slot(task);
    if (slot == nullptr) {
      (void)tell(TaskEnded{task, Outcome::Stopped});
      stand_again(task.job);
      continue;
    }
    slot->stop = true;
    if (slot->stage == Stage::Binding) continue;  // its result comes first
    if (slot->pod.empty() || slot->stage == Stage::Waiting)
      give_back(*slot, Outcome::Stopped);
    else
      evict(pods_.at(slot->pod), to_string(effect.reason), message);
  }
}

void Desk::on(const NominateTasks& effect) {
  for (const TaskPlace& place : effect.tasks) {
    const Slot* slot = find_slot(place.task);
    if (slot == nullptr || slot->pod.empty()) continue;
    PodRecord& record = pods_.at(slot->pod);
    record.nominated_node = place.node;
    will_tell(record);
  }
}

std::string Desk::title_of(const std::string& job) const {
  const auto it = units_.find(job);
  if (it == units_.end()) return job;
  if (!it->second.gang.empty()) return "gang " + it->second.gang;
  const auto pod = pods_.find(it->second.slots.front().pod);
  return pod == pods_.end() ? job : "pod " + pod->second.pod.meta.key();
}

void Desk::on(const JobChanged& effect) {
  const auto it = units_.find(effect.job);
  if (it == units_.end()) return;
  // The engine has ended it (cancelled by us, failed, completed): what is left of its pods is
  // looked at anew.
  if (engine_->cluster().find_job(effect.job).valid()) return;
  dissolve(effect.job);
}

}  // namespace gs::kube
