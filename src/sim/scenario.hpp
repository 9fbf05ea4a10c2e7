// Scenario: behaviour as data. A file is a common beginning and cases; each case is played in a
// world of its own, and passes if all its expectations hold. docs/scenarios.md is the manual.
//
//   read_scenario    text -> steps; what is misspelt is an error with its line
//   play_case        steps -> what came of them
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/scenario_words.hpp"
#include "sim/world.hpp"

namespace gs::scenario {

class Play;

// What is the case instead, or nothing if the expectation holds.
using Check = std::function<std::optional<std::string>(Play&)>;

struct Expect {
  Check check;
  std::string subject;      // the job whose explanation helps to understand a failure; may be empty
  bool of_refusal = false;  // looks at the last refused command
};
struct AdvanceTo {
  Instant t;
};
struct SetWorld {
  WorldOptions options;
};
struct AskDryRun {
  Job job;
};
struct Submit {
  ScriptedJob scripted;
};
// A report about a GPU names only what changed.
struct Report {
  std::string node;
  int gpu = 0;
  GpuReport report;
};
// Ends tasks of a job: one, or all that run.
struct EndTasks {
  std::string job;
  int group = -1, rank = -1;
  Outcome outcome = Outcome::Failed;
};
struct Settle {};

struct Step {
  int line = 0;
  std::string text;
  std::variant<Command, Submit, Report, EndTasks, AskDryRun, AdvanceTo, SetWorld, Settle, Expect>
      what;
};

struct ScenarioCase {
  std::string title;
  int line = 1;
  std::vector<Step> steps;  // the common beginning included
};

struct Scenario {
  std::string file;
  std::vector<ScenarioCase> cases;
};

// Errors read `file:line: what is wrong`.
Result<Scenario> read_scenario(const std::string& file, const std::string& text);
Result<Scenario> load_scenario(const std::string& file);
// The part of an `expect` line after that word.
Result<Expect> read_expect(const Line& line);

struct Failure {
  int line = 0;
  std::string expected;
  std::string actual;
  std::string why;  // the engine's own sentence about the job, if there is one
};

struct CaseOutcome {
  int expectations = 0;
  std::vector<Failure> failures;
  bool passed() const { return failures.empty(); }
};

// What happened to a job, seen from outside.
struct JobHistory {
  struct Stop {
    Instant at;
    StopReason reason;
    std::string for_job;
    int tasks = 0;
  };
  std::string state;
  std::optional<Why> why;  // that came with the state
  std::optional<Instant> started, ended;
  std::size_t start_order = 0;  // among the starts of all jobs; 0: never started
  std::vector<Stop> stops;
};

// A case being played: the world, and what an observer remembers of it.
class Play {
 public:
  Play();
  Play(const Play&) = delete;
  Play& operator=(const Play&) = delete;

  void step(const Step& step);
  // Checks that hold at the end of every case: sound books, and the log plays again the same way.
  void finish(int line);

  World& world() { return world_; }
  const CaseOutcome& outcome() const { return outcome_; }
  const std::map<std::string, JobHistory>& jobs() const { return jobs_; }
  // Running tasks; of a job that has none, those that are nominated. By group and rank.
  std::vector<TaskPlace> places(const std::string& job);
  // State, places, and why it waits, in one line.
  std::string describe_job(const std::string& job);
  std::string sentence(const std::string& job);

  struct Refusal {
    int line = 0;
    std::string text;  // the line
    std::string job;   // of a submission
    Error error;
    std::optional<Why> why;
  };
  const std::optional<Refusal>& refusal() const { return refusal_; }
  const std::optional<DryRun>& dry_run() const { return dry_run_; }
  const std::vector<std::pair<Job, DryRun>>& dry_runs() const { return dry_runs_; }

 private:
  void tell(const Step& step, const Command& command, const std::string& job = {});
  void report(const Step& step, const Report& report);
  void end_tasks(const Step& step, const EndTasks& ends);
  void ask_dry_run(const Step& step, const Job& job);
  void expect(const Step& step, const Expect& expect);
  void rest(int line, bool rested);
  void fail_unexpected_refusal();
  void remember(const LogEntry& entry);

  World world_;
  CaseOutcome outcome_;
  std::map<std::string, JobHistory> jobs_;
  std::size_t starts_ = 0;
  std::optional<Refusal> refusal_;
  bool refusal_seen_ = true;
  std::optional<DryRun> dry_run_;
  std::vector<std::pair<Job, DryRun>> dry_runs_;
};

// Plays a case to its end. `observe`, if given, sees every command and tick.
CaseOutcome play_case(const ScenarioCase& c, const World::Observer& observe = {});

}  // namespace gs::scenario
