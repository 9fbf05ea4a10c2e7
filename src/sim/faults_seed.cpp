#include "sim/faults.hpp"

namespace gs {
namespace {

Script script_of(const FaultsSource& source) {
  Script script;
  script.calm = source.calm();
  script.tick_every = source.tick_every();
  return script;
}

}  // namespace

SeedResult run_seed(std::uint64_t seed, std::uint64_t steps, volatile std::uint64_t* playing) {
  FaultsSource source(seed);
  const std::vector<Action> beginning = source.beginning();
  Script script = script_of(source);
  FaultsRun run(script);
  const std::uint64_t actions = beginning.size() + steps;
  std::uint64_t number = 0;
  for (; number < actions && !run.failed(); ++number) {
    if (playing != nullptr) *playing = number;
    run.play(number < beginning.size() ? beginning[number] : source.next(run.world()));
  }
  if (playing != nullptr) *playing = number;
  run.drain();
  return {seed, run.finding(), number, run.starts(), run.evictions(), run.effects_hash()};
}

Script record_seed(std::uint64_t seed, std::uint64_t steps, std::uint64_t last) {
  FaultsSource source(seed);
  const std::vector<Action> beginning = source.beginning();
  Script script = script_of(source);
  FaultsRun run(script);
  const std::uint64_t actions = beginning.size() + steps;
  for (std::uint64_t number = 0; number < actions && number <= last; ++number) {
    script.actions.push_back(number < beginning.size() ? beginning[number]
                                                       : source.next(run.world()));
    if (number < last) run.play(script.actions.back());  // the last one may be the end of it
  }
  script.drains = last >= actions;
  script.verify_every = 1;  // as soon as it goes wrong
  return script;
}

}  // namespace gs
