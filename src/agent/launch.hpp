// Starts one program with everything a task needs around it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/cgroup.hpp"
#include "agent/identity.hpp"
#include "base/result.hpp"

namespace gs::agent {

struct Launch {
  std::vector<std::string> command;  // the program is looked for in the environment's PATH
  std::map<std::string, std::string> environment;
  std::string working_dir;
  Identity identity;
  int output = -1;  // becomes stdout and stderr
  const Cgroup* cgroup = nullptr;
};

struct Launched {
  int pid = 0;  // also of its process group
  bool in_cgroup = true;
};

// The program dies when the calling thread does. An error says which step failed and why; then
// nothing runs.
Result<Launched> launch(const Launch& what);

// Runs a command to its end, its output thrown away; returns the exit code, -1 if it could not run.
int run_and_wait(const std::vector<std::string>& command);

}  // namespace gs::agent
