// What exactly is to be run for an order: as a process, or in a container.
#pragma once

#include <string>

#include "agent/launch.hpp"
#include "agent/task_files.hpp"

namespace gs::agent {

// Also writes the files that this needs (script, working directory) into the task's directory.
Result<Launch> task_launch(const std::string& directory, const TaskOrder& order, bool in_container);

}  // namespace gs::agent
