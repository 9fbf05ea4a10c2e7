// Structured logs: a sentence and named fields, one line each, to stderr, as text for people or as
// JSON for programs. Safe to use from many threads. Never called by base..engine, which do no I/O.
//
//   log_info("agent registered", {{"node", name}, {"gpus", count}});
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

namespace gs {

enum class LogLevel { Debug, Info, Warn, Error, Off };
enum class LogFormat { Text, Json };

struct LogField {
  LogField(std::string_view key, std::string_view value) : name(key), text(value) {}
  LogField(std::string_view key, const char* value) : name(key), text(value) {}
  LogField(std::string_view key, const std::string& value) : name(key), text(value) {}
  LogField(std::string_view key, bool value)
      : name(key), text(value ? "true" : "false"), plain(true) {}
  template <std::integral T>
  LogField(std::string_view key, T value) : name(key), text(std::to_string(value)), plain(true) {}
  LogField(std::string_view key, double value);

  std::string_view name;
  std::string text;
  bool plain = false;  // a number or a truth value: no quotes
};
using LogFields = std::initializer_list<LogField>;

void set_log(LogLevel lowest, LogFormat format);
bool log_enabled(LogLevel level);
void log(LogLevel level, std::string_view sentence, LogFields fields);

inline void log_debug(std::string_view sentence, LogFields fields = {}) {
  log(LogLevel::Debug, sentence, fields);
}
inline void log_info(std::string_view sentence, LogFields fields = {}) {
  log(LogLevel::Info, sentence, fields);
}
inline void log_warn(std::string_view sentence, LogFields fields = {}) {
  log(LogLevel::Warn, sentence, fields);
}
inline void log_error(std::string_view sentence, LogFields fields = {}) {
  log(LogLevel::Error, sentence, fields);
}

}  // namespace gs
