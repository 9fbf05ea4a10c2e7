// `completion bash|zsh|fish`: a script for the shell, made from the commands that there are.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace gs {

std::string version_line(const std::string& program);
std::string completion_script(const CLI::App& app, const std::string& shell);
void add_completion(CLI::App& app, int& exit_code);

}  // namespace gs
