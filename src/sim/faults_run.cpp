#include "sim/faults_run.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/hash.hpp"
#include "queue/queue.hpp"
#include "sim/describe.hpp"
#include "sim/rules.hpp"

namespace gs {
namespace {

constexpr std::size_t kTwinEntries = 400;  // commands and ticks that a twin lives
constexpr std::size_t kDrainInstants = 20'000;

// Whether the first comes after the second in the order of their tenant.
bool is_behind(const Mirror& mirror, const MirrorJob& a, const MirrorJob& b) {
  const auto order = [&](const MirrorJob& job) {
    return order_key(job.spec.priority, job.submitted, mirror.config().aging_per_hour);
  };
  if (a.tenant != b.tenant) return false;
  return order(a) != order(b) ? order(a) < order(b) : a.submitted > b.submitted;
}

// How a MIG GPU will be cut by then nobody knows: such a start is a forecast.
bool asks_for_mig(const Job& job) {
  return std::any_of(job.groups.begin(), job.groups.end(),
                     [](const Group& group) { return !group.request.gpu.mig.empty(); });
}

WorldOptions options_of(const Script& script) {
  WorldOptions options;
  options.tick_every = script.tick_every;
  options.keep_log = false;
  return options;
}

}  // namespace

void add_effects(Hash& hash, const Effects& effects) {
  const auto place = [&](const TaskPlace& p) {
    hash.add(p.task.job).add(static_cast<std::uint64_t>(p.task.group));
    hash.add(static_cast<std::uint64_t>(p.task.rank)).add(p.node);
    for (const int gpu : p.gpus) hash.add(static_cast<std::uint64_t>(gpu));
    for (const MigPlace& m : p.mig)
      hash.add(m.profile).add(
          static_cast<std::uint64_t>((m.gpu * 16 + m.start) * 2 + (m.create ? 1 : 0)));
  };
  for (const Effect& effect : effects) {
    hash.add(effect.index());
    if (const auto* e = std::get_if<StartTasks>(&effect))
      for (const TaskPlace& p : e->tasks) place(p);
    if (const auto* e = std::get_if<NominateTasks>(&effect))
      for (const TaskPlace& p : e->tasks) place(p);
    if (const auto* e = std::get_if<StopTasks>(&effect)) {
      hash.add(e->job).add(e->for_job).add(static_cast<std::uint64_t>(e->reason));
      for (const TaskRef& t : e->tasks)
        hash.add(static_cast<std::uint64_t>(t.group)).add(static_cast<std::uint64_t>(t.rank));
    }
    if (const auto* e = std::get_if<JobChanged>(&effect)) {
      hash.add(e->job).add(e->state);
      if (e->why) hash.add(e->why->sentence);
    }
  }
}

FaultsRun::FaultsRun(const Script& script) : script_(script), world_(options_of(script)) {
  world_.watch([this](World&, const LogEntry& entry) { observe(entry); });
}

void FaultsRun::observe(const LogEntry& entry) {
  add_effects(effects_, entry.effects);
  checkers_.observe(entry);
  if (twin_) follow(entry);
}

// ---------------------------------------------------------------- the twin

void FaultsRun::begin_twin() {
  twin_ = Engine::restore(world_.engine().snapshot());
  twin_age_ = 0;
  if (twin_->hash() != world_.engine().hash())
    checkers_.report("determinism", "a restored snapshot has another hash");
  twin_->verify();
}

void FaultsRun::follow(const LogEntry& entry) {
  Effects effects;
  bool refused = false;
  if (entry.command) {
    Result<Effects> answer = twin_->handle(*entry.command, entry.now);
    refused = !answer.ok();
    if (answer) effects = std::move(*answer);
  } else {
    effects = twin_->tick(entry.now);
  }
  Hash ours;
  Hash theirs;
  add_effects(ours, entry.effects);
  add_effects(theirs, effects);
  if (refused != entry.error.has_value())
    checkers_.report(
        "determinism",
        fmt::format("{} is {} by the engine and {} by its restored twin", describe(*entry.command),
                    entry.error ? "refused" : "accepted", refused ? "refused" : "accepted"));
  if (ours.value() != theirs.value())
    checkers_.report("determinism",
                     fmt::format("after {} the engine says\n{}and its restored twin\n{}",
                                 entry.command ? describe(*entry.command) : "a tick",
                                 describe(entry.effects), describe(effects)));
  if (++twin_age_ < kTwinEntries) return;
  // Between a command and its tick both are in the same middle of things.
  if (twin_->hash() != world_.engine().hash())
    checkers_.report("determinism", "the restored twin says the same, and its hash is another");
  twin_.reset();
}

// ---------------------------------------------------------------- playing

void FaultsRun::play(const Action& action) {
  advance(action.at);
  if (failed()) return;
  if (const auto* delays = std::get_if<Delays>(&action.what)) {
    world_.options().start_delay = delays->start;
    world_.options().stop_delay = delays->stop;
  } else if (std::holds_alternative<BeginTwin>(action.what)) {
    begin_twin();
  } else {
    const Command& command = std::get<Command>(action.what);
    const auto* submit = std::get_if<SubmitJob>(&command);
    if (const auto* put = std::get_if<PutNode>(&command)) well_.emplace(put->node.name, put->node);
    if (submit != nullptr && action.runs) world_.set_duration(submit->job.id, *action.runs);
    (void)world_.send(command);  // a refusal is one of the things that happen
    rest(world_.settle());
  }
  if (++played_ % script_.verify_every == 0) world_.engine().verify();
  if (played_ % 4 == 0) checkers_.check_idle_room();
}

void FaultsRun::advance(Instant t) {
  // Instant by instant, so that every rest is looked at.
  while (!failed()) {
    const std::optional<Instant> next = world_.next_event();
    if (!next || *next > t) break;
    rest(world_.advance_to(std::max(*next, world_.now())));
  }
  if (!failed()) rest(world_.advance_to(t));
}

void FaultsRun::rest(bool rested) {
  if (!rested) checkers_.report("progress", "ticks at one instant never come to an end");
  if (!world_.surprises().empty()) checkers_.report("places", world_.surprises().front());
  checkers_.at_rest(world_.now());
  if (script_.calm && !failed()) note_promises();
}

// A reserved start may move back only because of jobs before it in order. When it does, and others
// behind it have started since it was told, the engine is asked once more without those.
void FaultsRun::note_promises() {
  Mirror& mirror = checkers_.mirror();
  const std::set<std::string> started = checkers_.take_started();
  for (auto& [id, job] : mirror.jobs()) {
    if (job.state != "waiting" || asks_for_mig(job.spec) || failed()) continue;
    const Result<Explanation> explanation = world_.engine().explain(id, world_.now());
    const std::optional<Instant> start = explanation ? explanation->expected_start : std::nullopt;
    std::set<std::string> behind;
    bool before = false;  // somebody before it has started, perhaps elsewhere than was planned
    for (const std::string& other : started) {
      const MirrorJob* late = mirror.find_job(other);
      if (late != nullptr && is_behind(mirror, *late, job))
        behind.insert(other);
      else
        before = true;
    }
    // A forecast before it may change its mind.
    before = before || std::any_of(mirror.jobs().begin(), mirror.jobs().end(), [&](const auto& o) {
               return o.second.state == "waiting" && asks_for_mig(o.second.spec) &&
                      !is_behind(mirror, o.second, job);
             });
    if (before) job.promised.reset();
    job.overtakers.insert(behind.begin(), behind.end());
    const bool later = job.promised && (!start || *start > *job.promised);
    if (later && starts_sooner_without(job)) {
      std::string names;
      for (const std::string& other : job.overtakers) names += " " + other;
      checkers_.report("progress",
                       fmt::format("{} was to start at {}, and these behind it push it back:{}", id,
                                   describe(*job.promised), names));
    }
    if (start != job.promised) job.overtakers = behind;
    job.promised = start;
  }
}

bool FaultsRun::starts_sooner_without(const MirrorJob& job) {
  const Instant now = world_.now();
  std::unique_ptr<Engine> engine = Engine::restore(world_.engine().snapshot());
  bool any = false;
  for (const std::string& other : job.overtakers) {
    if (!engine->handle(CancelJob{other}, now)) continue;  // it has ended
    any = true;
    for (const auto& [key, task] : world_.tasks())
      if (key.first == other)
        (void)engine->handle(TaskEnded{task.place.task, Outcome::Stopped}, now);
  }
  if (!any) return false;
  for (const Effect& effect : engine->tick(now))
    if (const auto* start = std::get_if<StartTasks>(&effect); start && start->job == job.spec.id)
      return true;
  const Result<Explanation> explanation = engine->explain(job.spec.id, now);
  return explanation && explanation->expected_start &&
         *explanation->expected_start <= *job.promised;
}

// ---------------------------------------------------------------- the end

void FaultsRun::heal() {
  if (!script_.calm) world_.options().start_delay = world_.options().stop_delay = seconds(1);
  for (const auto& [name, node] : well_) {
    for (int gpu = 0; gpu < static_cast<int>(node.gpus.size()); ++gpu)
      (void)world_.send(ReportGpu{name, gpu, Health::Healthy, 40});
    (void)world_.send(PutNode{node});
    (void)world_.send(CordonNode{name, false, false});
  }
  std::vector<Job> jobs;
  for (const auto& [id, job] : checkers_.mirror().jobs()) jobs.push_back(job.spec);
  for (const Job& job : jobs) {
    (void)world_.send(HoldJob{job.id, false});
    (void)world_.send(MembersArrived{job.id, task_count(job)});
  }
}

void FaultsRun::drain() {
  if (failed() || !script_.drains) return;
  heal();
  rest(world_.settle());
  for (std::size_t i = 0; i < kDrainInstants && !failed(); ++i) {
    const std::optional<Instant> next = world_.next_event();
    const bool idle = world_.tasks().empty();
    if (!next || (idle && *next > world_.now() + hours(2))) break;
    if (idle && i > 1000) break;  // only its own clock keeps the world going
    rest(world_.advance_to(std::max(*next, world_.now())));
  }
  if (failed()) return;
  if (!world_.tasks().empty())
    return checkers_.report(
        "progress", fmt::format("after the load has stopped, {} still run",
                                plural(static_cast<long long>(world_.tasks().size()), "task")));
  judge_waiting();
  world_.engine().verify();
}

namespace {

bool starts_something(const Effects& effects) {
  return std::any_of(effects.begin(), effects.end(), [](const Effect& effect) {
    return std::holds_alternative<StartTasks>(effect);
  });
}

// What the same cluster would do for this job if it had never seen another.
bool starts_in_a_fresh_engine(const Mirror& mirror, Job job) {
  Engine engine;
  const Instant now;
  (void)engine.handle(SetConfig{mirror.config()}, now);
  (void)engine.handle(SetTopology{mirror.levels()}, now);
  for (const auto& [name, node] : mirror.nodes()) (void)engine.handle(PutNode{node.spec}, now);
  for (const bool tops : {true, false})
    for (const auto& [id, tenant] : mirror.tenants())
      if (tenant.spec.parent.empty() == tops) (void)engine.handle(PutTenant{tenant.spec}, now);
  job.arrived = -1;
  job.held = false;
  return engine.handle(SubmitJob{job}, now) && starts_something(engine.tick(now));
}

}  // namespace

// Nothing runs any more. Whoever still waits must be unable to run even so.
void FaultsRun::judge_waiting() {
  const Mirror& mirror = checkers_.mirror();
  for (const auto& [id, job] : mirror.jobs()) {
    if (failed()) return;
    // Packing groups of several kinds is no exact science: what the engine has learned about its
    // load may keep it from finding a place that a fresh one finds.
    if (job.spec.groups.size() == 1 && starts_in_a_fresh_engine(mirror, job.spec))
      checkers_.report("progress", fmt::format("{} is {} in an idle cluster, and would start in a "
                                               "fresh one just like it",
                                               id, job.state));
  }
  checkers_.check_idle_room();
}

std::optional<Finding> play(const Script& script, World::Observer observer) {
  FaultsRun run(script);
  if (observer) run.watch(std::move(observer));
  for (const Action& action : script.actions) {
    run.play(action);
    if (run.failed()) return run.finding();
  }
  run.drain();
  return run.finding();
}

}  // namespace gs
