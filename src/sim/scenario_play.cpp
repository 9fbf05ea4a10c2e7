#include <algorithm>

#include <fmt/format.h>

#include "sim/describe.hpp"
#include "sim/scenario.hpp"

namespace gs::scenario {

Play::Play() {
  world_.watch([this](World&, const LogEntry& entry) { remember(entry); });
}

void Play::remember(const LogEntry& entry) {
  for (const Effect& effect : entry.effects) {
    if (const auto* starts = std::get_if<StartTasks>(&effect)) {
      JobHistory& job = jobs_[starts->job];
      job.started = job.started.value_or(entry.now);
      if (job.start_order == 0) job.start_order = ++starts_;
    } else if (const auto* stops = std::get_if<StopTasks>(&effect)) {
      jobs_[stops->job].stops.push_back(
          {entry.now, stops->reason, stops->for_job, static_cast<int>(stops->tasks.size())});
    } else if (const auto* changed = std::get_if<JobChanged>(&effect)) {
      JobHistory& job = jobs_[changed->job];
      job.state = changed->state;
      job.why = changed->why ? std::optional(*changed->why) : std::nullopt;
      if (job.state == "completed" || job.state == "failed" || job.state == "cancelled")
        job.ended = entry.now;
    }
  }
}

void Play::step(const Step& step) {
  if (const auto* expectation = std::get_if<Expect>(&step.what)) {
    if (refusal_ && !refusal_seen_ && !expectation->of_refusal) fail_unexpected_refusal();
    rest(step.line, world_.settle());
    expect(step, *expectation);
    return;
  }
  if (refusal_ && !refusal_seen_) fail_unexpected_refusal();
  if (const auto* command = std::get_if<Command>(&step.what)) {
    tell(step, *command);
  } else if (const auto* submit = std::get_if<Submit>(&step.what)) {
    Job job = submit->scripted.job;
    job.submitted = world_.now();
    if (submit->scripted.duration) world_.set_duration(job.id, *submit->scripted.duration);
    tell(step, SubmitJob{job}, job.id);
  } else if (const auto* gpu = std::get_if<Report>(&step.what)) {
    report(step, *gpu);
  } else if (const auto* ends = std::get_if<EndTasks>(&step.what)) {
    end_tasks(step, *ends);
  } else if (const auto* ask = std::get_if<AskDryRun>(&step.what)) {
    rest(step.line, world_.settle());
    ask_dry_run(step, ask->job);
  } else if (const auto* advance = std::get_if<AdvanceTo>(&step.what)) {
    if (advance->t < world_.now())
      outcome_.failures.push_back(
          {step.line, step.text, "it is already " + describe(world_.now()), ""});
    rest(step.line, world_.advance_to(advance->t));
  } else if (const auto* options = std::get_if<SetWorld>(&step.what)) {
    world_.options() = options->options;
  } else {
    rest(step.line, world_.settle());
  }
}

void Play::tell(const Step& step, const Command& command, const std::string& job) {
  const Result<Effects> answer = world_.send(command);
  if (answer) return;
  refusal_ = Refusal{step.line, step.text, job, answer.error(), std::nullopt};
  refusal_seen_ = false;
  if (const auto* submit = std::get_if<SubmitJob>(&command)) {
    jobs_[submit->job.id].state = "refused";
    if (const auto asked = world_.engine().dry_run(submit->job, world_.now()); asked)
      refusal_->why = asked->why;
  }
}

void Play::report(const Step& step, const Report& report) {
  const Cluster& cluster = world_.engine().cluster();
  ReportGpu command{report.node, report.gpu, Health::Healthy, 0};
  if (const NodeId node = cluster.find_node(report.node); node.valid()) {
    const auto& gpus = cluster.node(node).spec.gpus;
    if (report.gpu >= 0 && report.gpu < static_cast<int>(gpus.size())) {
      command.health = gpus[static_cast<std::size_t>(report.gpu)].health;
      command.temperature_c = gpus[static_cast<std::size_t>(report.gpu)].temperature_c;
    }
  }
  command.health = report.report.health.value_or(command.health);
  command.temperature_c = report.report.temperature_c.value_or(command.temperature_c);
  tell(step, command);
}

void Play::end_tasks(const Step& step, const EndTasks& ends) {
  std::vector<TaskRef> tasks;
  for (const auto& [key, live] : world_.tasks())
    if (key.first == ends.job && (ends.rank < 0 || ends.rank == key.second.second) &&
        (ends.group < 0 || ends.group == key.second.first))
      tasks.push_back(live.place.task);
  if (tasks.empty()) outcome_.failures.push_back({step.line, step.text, "no such task runs", ""});
  for (const TaskRef& task : tasks) tell(step, TaskEnded{task, ends.outcome});
}

void Play::ask_dry_run(const Step& step, const Job& asked) {
  Job job = asked;
  job.submitted = world_.now();
  const std::uint64_t before = world_.engine().hash();
  const Result<DryRun> answer = world_.engine().dry_run(job, world_.now());
  dry_run_.reset();
  if (!answer) {
    refusal_ = Refusal{step.line, step.text, job.id, answer.error(), std::nullopt};
    refusal_seen_ = false;
    return;
  }
  if (world_.engine().hash() != before)
    outcome_.failures.push_back({step.line, "a dry run changes nothing", "the state changed", ""});
  dry_run_ = *answer;
  dry_runs_.emplace_back(job, *answer);
}

void Play::expect(const Step& step, const Expect& expect) {
  ++outcome_.expectations;
  if (expect.of_refusal) refusal_seen_ = true;
  const std::optional<std::string> actual = expect.check(*this);
  if (!actual) return;
  std::string why = expect.subject.empty() ? "" : sentence(expect.subject);
  outcome_.failures.push_back({step.line, step.text, *actual, std::move(why)});
}

void Play::rest(int line, bool rested) {
  if (!rested)
    outcome_.failures.push_back({line, "the engine comes to rest",
                                 "decisions go on and on at " + describe(world_.now()), ""});
}

void Play::fail_unexpected_refusal() {
  refusal_seen_ = true;
  outcome_.failures.push_back(
      {refusal_->line, refusal_->text, "refused: " + refusal_->error.message, ""});
}

void Play::finish(int line) {
  if (refusal_ && !refusal_seen_) fail_unexpected_refusal();
  rest(line, world_.settle());
  world_.engine().verify();
  for (const std::string& surprise : world_.surprises())
    outcome_.failures.push_back({line, "orders that can be carried out", surprise, ""});
  if (const Status same = replay(world_.log(), world_.engine().hash()); !same)
    outcome_.failures.push_back(
        {line, "the log plays again the same way", same.error().message, ""});
}

std::vector<TaskPlace> Play::places(const std::string& job) {
  std::vector<TaskPlace> places;
  for (const auto& [key, live] : world_.tasks())
    if (key.first == job && live.state != LiveTask::State::Stopping) places.push_back(live.place);
  if (!places.empty()) return places;
  if (const auto explained = world_.engine().explain(job, world_.now()); explained)
    return explained->places;
  return places;
}

std::string Play::sentence(const std::string& job) {
  if (refusal_ && refusal_->job == job) return refusal_->error.message;
  if (const auto explained = world_.engine().explain(job, world_.now()); explained) {
    if (!explained->why) return "";
    return fmt::format("[{}] {}", to_string(explained->why->constraint), explained->why->sentence);
  }
  const auto known = jobs_.find(job);
  if (known == jobs_.end() || !known->second.why) return "";
  return fmt::format("[{}] {}", to_string(known->second.why->constraint),
                     known->second.why->sentence);
}

std::string Play::describe_job(const std::string& job) {
  const auto known = jobs_.find(job);
  if (known == jobs_.end() || known->second.state.empty()) return job + " is not known";
  std::string text = job + " is " + known->second.state;
  const std::vector<TaskPlace> tasks = places(job);
  if (!tasks.empty()) {
    text += " on";
    for (const TaskPlace& place : tasks) text += " " + describe(place);
  }
  return text;
}

CaseOutcome play_case(const ScenarioCase& c, const World::Observer& observe) {
  Play play;
  if (observe) play.world().watch(observe);
  for (const Step& step : c.steps) play.step(step);
  play.finish(c.steps.empty() ? c.line : c.steps.back().line);
  return play.outcome();
}

}  // namespace gs::scenario
