// FaultsRun: plays actions in a World under the eyes of the checkers; at the end it heals
// everything, stops the load, and expects the queue to drain.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "sim/checkers.hpp"
#include "sim/faults_source.hpp"
#include "sim/world.hpp"

namespace gs {

// What makes up a run: played again, it comes out the same.
struct Script {
  bool calm = false;
  Duration tick_every;
  std::vector<Action> actions;
  std::size_t verify_every = 64;  // actions between two recounts of all books
  bool drains = true;             // at the end everything is healed, and the queue has to drain
};

class FaultsRun {
 public:
  explicit FaultsRun(const Script& script);
  FaultsRun(const FaultsRun&) = delete;
  FaultsRun& operator=(const FaultsRun&) = delete;

  void play(const Action& action);  // the clock goes to its instant, then to rest
  void drain();
  void watch(World::Observer observer) { world_.watch(std::move(observer)); }
  bool failed() const { return checkers_.finding().has_value(); }
  const std::optional<Finding>& finding() const { return checkers_.finding(); }

  const World& world() const { return world_; }
  std::size_t played() const { return played_; }
  std::uint64_t effects_hash() const { return effects_.value(); }
  std::uint64_t starts() const { return checkers_.starts(); }
  std::uint64_t evictions() const { return checkers_.evictions(); }

 private:
  void observe(const LogEntry& entry);
  void follow(const LogEntry& entry);  // the twin does the same
  void begin_twin();
  void advance(Instant t);
  void rest(bool rested);
  void note_promises();
  bool starts_sooner_without(const MirrorJob& job);  // without its overtakers
  void heal();
  void judge_waiting();

  const Script& script_;
  World world_;
  Checkers checkers_;
  std::unique_ptr<Engine> twin_;
  std::size_t twin_age_ = 0;
  std::size_t played_ = 0;
  std::map<std::string, Node> well_;  // nodes as they first reported themselves
  Hash effects_;
};

// Plays a whole script.
std::optional<Finding> play(const Script& script, World::Observer observer = {});
// Equal for equal effects.
void add_effects(Hash& hash, const Effects& effects);

}  // namespace gs
