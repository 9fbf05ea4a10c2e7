// Runs a program to its end and keeps what it wrote.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace gs::kube {

struct ChildCommand {
  std::string program;  // with a slash: a path; without: looked for in PATH
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;  // besides what we have ourselves
  Duration timeout = seconds(60);
  std::size_t max_output = 1U << 20;
};

struct ChildOutput {
  int exit_code = 0;  // 128 + signal where one ended it
  std::string output, errors;
};

// Standard input is empty. A program that can't be started, writes too much or takes too long is
// an error; in the last cases it and what it started are killed.
Result<ChildOutput> run_child(const ChildCommand& command);

}  // namespace gs::kube
