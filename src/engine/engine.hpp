// Engine: commands in, effects out. It owns the one Cluster.
//
//   handle(command, now)  takes a request or a fact, changes the books, and says what follows at
//   once tick(now)             one scheduling cycle
//
// Deterministic: no clock, thread, chance or I/O in here. The same commands and ticks with the same
// instants give the same effects, byte for byte; a Snapshot taken in between and restored goes on
// the same way. `now` never runs backwards; an earlier instant is taken as the latest one seen.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cluster/cluster.hpp"
#include "engine/snapshot.hpp"
#include "model/command.hpp"
#include "model/effect.hpp"
#include "model/why.hpp"

namespace gs {

// Would it start, where, at whose expense; if not, why and when.
struct DryRun {
  bool starts_now = false;
  std::vector<TaskPlace> places;  // now, or after the evictions
  std::vector<TaskRef> evicts;
  std::optional<Why> why;  // if it does not start now
  std::optional<Instant> expected_start;
};

struct Explanation {
  std::string state;
  std::optional<Why> why;         // of a waiting job
  std::vector<TaskPlace> places;  // of a placed one, each with its
  std::vector<ScoreCard> scores;  // score card
  std::optional<Instant> expected_start;
};

class Engine {
 public:
  Engine();
  ~Engine();

  // An error changes nothing.
  Result<Effects> handle(const Command& command, Instant now);
  Effects tick(Instant now);

  Result<Explanation> explain(const std::string& job, Instant now);
  Result<DryRun> dry_run(const Job& job, Instant now);

  const Cluster& cluster() const;
  const Config& config() const;
  std::size_t waiting() const;
  // Whether a tick could change anything: something happened since the last one, or a deadline
  // passed.
  bool needs_tick(Instant now) const;
  std::optional<Instant> next_deadline() const;

  Snapshot snapshot() const;
  static std::unique_ptr<Engine> restore(const Snapshot& snapshot);
  // Equal for equal states, however they were reached.
  std::uint64_t hash() const;
  void verify() const;  // aborts where an invariant does not hold

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gs
