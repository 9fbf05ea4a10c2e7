// World: what a driver is to the engine, with a virtual clock. It carries out the engine's effects,
// and tells the engine what comes of them: tasks that start, end, or have gone.
//
// Invariants: time never runs backwards; what happens at one instant happens in the order in which
// it was scheduled (time, then sequence); a task ends once. Same calls, same log.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "engine/engine.hpp"
#include "model/command.hpp"
#include "model/effect.hpp"

namespace gs {

struct WorldOptions {
  Duration start_delay;   // from StartTasks until the task runs
  Duration stop_delay;    // from StopTasks until the task is gone
  Duration tick_every;    // ticks at least so often while jobs wait; 0: only when the engine asks
  int max_rounds = 1000;  // ticks at one instant before the world gives up and says so
  bool keep_log = true;
};

// What was told to the engine and what it answered. Without a command: a tick.
struct LogEntry {
  Instant now;
  std::optional<Command> command;
  std::optional<Error> error;  // the command was refused
  Effects effects;
};

// A task that the world runs.
struct LiveTask {
  enum class State : std::uint8_t { Starting, Running, Stopping };
  TaskPlace place;
  State state = State::Starting;
  Instant since;            // in this state
  std::uint64_t epoch = 0;  // tells this run from earlier ones of the same task
};

class World {
 public:
  using Observer = std::function<void(World&, const LogEntry&)>;
  using TaskKey = std::pair<std::string, std::pair<int, int>>;  // job, group, rank

  explicit World(WorldOptions options = {});

  Engine& engine() { return engine_; }
  const Engine& engine() const { return engine_; }
  Instant now() const { return now_; }
  WorldOptions& options() { return options_; }

  // How long the job's tasks really run. Without it they run until somebody ends them. Work done
  // before an eviction counts only for checkpointable jobs.
  void set_duration(const std::string& job, Duration duration);

  // Tells the engine now, and carries out what it answers. Facts that drivers report (TaskEnded,
  // RemoveNode) are made true in the world first: those tasks are gone.
  Result<Effects> send(const Command& command);
  // The same at a later instant; a refusal is in the log.
  void schedule(Instant at, Command command);

  // Ticks until nothing changes at this instant. False: it did not come to rest.
  bool settle();
  // Plays everything up to `t`, settling at every instant where something happens.
  bool advance_to(Instant t);
  // The next instant at which something happens by itself.
  std::optional<Instant> next_event() const;

  // Called after each command and each tick, when its effects have been taken note of.
  void watch(Observer observer) { observers_.push_back(std::move(observer)); }

  const std::map<TaskKey, LiveTask>& tasks() const { return tasks_; }
  const std::vector<LogEntry>& log() const { return log_; }
  // Orders that no driver could have carried out: a bug of the engine, in words.
  const std::vector<std::string>& surprises() const { return surprises_; }

 private:
  struct Event {
    Command command;
    std::uint64_t epoch = 0;  // of the task that it is about; 0: about none
  };
  struct JobFacts {
    std::optional<Duration> duration;
    bool checkpointable = false;
  };

  void note(LogEntry entry);
  void make_true(const Command& command);
  void adopt(const AdoptTask& found);
  void carry_out(const Effects& effects);
  void start(const TaskPlace& place);
  void stop(const TaskRef& task);
  void vanish(std::map<TaskKey, LiveTask>::iterator task);
  void deliver(Event event);
  bool deliver_due();
  void tick();
  void push(Instant at, Command command, std::uint64_t epoch);

  WorldOptions options_;
  Engine engine_;
  Instant now_;
  std::map<std::pair<Instant, std::uint64_t>, Event> events_;
  std::uint64_t next_sequence_ = 1;
  std::uint64_t next_epoch_ = 1;
  Instant last_tick_;
  std::map<std::string, JobFacts> jobs_;
  std::map<TaskKey, Duration> done_;  // work that a checkpointable task keeps
  std::map<TaskKey, LiveTask> tasks_;
  std::vector<LogEntry> log_;
  std::vector<std::string> surprises_;
  std::vector<Observer> observers_;
};

// Plays a log through a fresh engine. An error names the first entry that came out differently.
Status replay(const std::vector<LogEntry>& log, std::uint64_t expected_hash);

}  // namespace gs
