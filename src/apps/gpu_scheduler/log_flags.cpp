#include "apps/gpu_scheduler/log_flags.hpp"

#include <CLI/CLI.hpp>

#include "base/log.hpp"
#include "model/settings.hpp"

namespace gs {

void add_log_flags(CLI::App& command, LogFlags& flags) {
  command.add_option("--log-level", flags.level, "debug, info, warn, error or off")
      ->check(CLI::IsMember({"debug", "info", "warn", "error", "off"}))
      ->capture_default_str();
  command.add_option("--log-format", flags.format, "text for people, json for programs")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
}

void set_log(const LogFlags& flags) {
  Settings settings;
  settings.log.level = flags.level;
  settings.log.format = flags.format;
  set_log(log_level(settings), log_format(settings));
}

}  // namespace gs
