// --log-level and --log-format of commands that have no configuration file for them.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace gs {

struct LogFlags {
  std::string level = "info";
  std::string format = "text";
};

void add_log_flags(CLI::App& command, LogFlags& flags);
void set_log(const LogFlags& flags);

}  // namespace gs
