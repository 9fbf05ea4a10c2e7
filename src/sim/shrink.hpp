// Shrinking: from a script that fails to a small one that fails in the same way.
//
// Delta debugging over the actions (ddmin), then each action that is left is made as plain as it
// can be. Every attempt is played in a process of its own, since the failure may be that it dies.
#pragma once

#include <functional>
#include <string>

#include "sim/faults_run.hpp"

namespace gs {

// How a script fails: the checker that speaks up, or where the engine stopped itself. Empty: it
// does not fail.
std::string failure_of(const Script& script);

struct Shrunk {
  Script script;
  std::string failure;  // of both
  int attempts = 0;
  bool done = true;  // false: it was told to stop, and a smaller one may do
};

struct ShrinkLimits {
  int max_attempts = 3000;
  std::function<bool()> stop = {};  // asked before each attempt
};

using FailureOf = std::function<std::string(const Script&)>;
Shrunk shrink(Script script, const FailureOf& failure, const ShrinkLimits& limits = {},
              const std::function<void(std::size_t actions, int attempts)>& progress = {});

// One line per action with everything about it that is not as usual.
std::string describe_fully(const Action& action);

}  // namespace gs
