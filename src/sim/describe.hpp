// Commands, effects and instants as one line of text each: for people, and to compare two runs.
#pragma once

#include <string>
#include <vector>

#include "base/time.hpp"
#include "model/command.hpp"
#include "model/effect.hpp"
#include "model/job.hpp"

namespace gs {

std::string describe(const Command& command);
std::string describe(const Effect& effect);
std::string describe(const Effects& effects);  // one line each
std::string describe(const TaskPlace& place);  // "n1:0-3", "n1:2/1g.10gb@0"
std::string describe(const TaskRef& task);     // "job/rank", or "job/group/rank"
std::string describe(Instant t);               // "1h05m", "0s", "never"
std::string describe(Duration d);
std::string describe_gpus(std::vector<int> gpus);  // "0-3,6"
std::string plural(long long count, const std::string& noun);

}  // namespace gs
