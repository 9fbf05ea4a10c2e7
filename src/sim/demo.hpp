// `gpu-scheduler sim demo`: a small simulated cluster, told as a story in a terminal.
//
// The story is a scenario (docs/scenarios.md) played by the real engine; what is printed is what
// the engine decided, nothing is written down in advance but the arrivals and the accidents.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace gs {

// The whole story as text; `colour`: with terminal colours.
std::string tell_demo(bool colour);

void add_demo(CLI::App& sim, int& exit_code);

}  // namespace gs
