// The agent's own log: one line to stderr for each thing that a person may want to know.
#pragma once

#include <string_view>

#include <fmt/format.h>

namespace gs::agent {

void write_log(std::string_view level, std::string_view message);

template <typename... Arguments>
void log_info(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write_log("info", fmt::format(format, std::forward<Arguments>(arguments)...));
}
template <typename... Arguments>
void log_warning(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write_log("warning", fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace gs::agent
