#include "base/log.hpp"

#include <atomic>
#include <chrono>
#include <ctime>

#include <fmt/format.h>
#include <unistd.h>

namespace gs {
namespace {

std::atomic<LogLevel> lowest_level{LogLevel::Info};
std::atomic<LogFormat> log_format{LogFormat::Text};

const char* name_of(LogLevel level) {
  switch (level) {
    case LogLevel::Debug:
      return "debug";
    case LogLevel::Info:
      return "info";
    case LogLevel::Warn:
      return "warn";
    default:
      return "error";
  }
}

std::string time_text() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = ms / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     ms % 1000);
}

// Quoted as JSON wants it; control characters would forge lines otherwise.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + '"';
}

bool needs_quotes(std::string_view text) {
  for (const char c : text)
    if (c == ' ' || c == '"' || c == '=' || static_cast<unsigned char>(c) < 0x21) return true;
  return text.empty();
}

std::string json_line(LogLevel level, std::string_view sentence, LogFields fields) {
  std::string line = fmt::format(R"({{"time":"{}","level":"{}","message":{})", time_text(),
                                 name_of(level), quoted(sentence));
  for (const LogField& field : fields)
    line +=
        fmt::format(",{}:{}", quoted(field.name), field.plain ? field.text : quoted(field.text));
  return line + "}\n";
}

std::string text_line(LogLevel level, std::string_view sentence, LogFields fields) {
  std::string line = fmt::format("{} {:<5} {}", time_text(), name_of(level), sentence);
  for (const LogField& field : fields)
    line += fmt::format("  {}={}", field.name,
                        needs_quotes(field.text) ? quoted(field.text) : field.text);
  return line + "\n";
}

}  // namespace

LogField::LogField(std::string_view key, double value)
    : name(key), text(fmt::format("{:.6g}", value)), plain(true) {}

void set_log(LogLevel lowest, LogFormat format) {
  lowest_level = lowest;
  log_format = format;
}

bool log_enabled(LogLevel level) { return level >= lowest_level.load(std::memory_order_relaxed); }

void log(LogLevel level, std::string_view sentence, LogFields fields) {
  if (!log_enabled(level)) return;
  const std::string line = log_format.load(std::memory_order_relaxed) == LogFormat::Json
                               ? json_line(level, sentence, fields)
                               : text_line(level, sentence, fields);
  // One write a line: lines of several threads don't mix.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace gs
