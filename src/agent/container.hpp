// A task in a container: the command line for podman, docker or nerdctl.
#pragma once

#include <string>
#include <vector>

#include "agent/identity.hpp"
#include "agent/task_files.hpp"

namespace gs::agent {

std::string container_name(const TaskOrder& order);

// `inner`: what runs inside, as seen from there; `script_file` and `env_file` are on this machine,
// empty: none. Values that one line can hold come from env_file, so that no secret of a job shows
// in the list of processes.
std::vector<std::string> container_command(const TaskOrder& order, const Identity& identity,
                                           const std::vector<std::string>& inner,
                                           const std::string& script_file,
                                           const std::string& env_file);
std::vector<std::string> remove_container_command(const TaskOrder& order);
std::string env_file_content(const TaskOrder& order);

inline constexpr const char* kScriptInContainer = "/gpu-scheduler-script";

}  // namespace gs::agent
