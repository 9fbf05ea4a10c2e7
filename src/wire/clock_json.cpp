#include "wire/clock_json.hpp"

#include <charconv>
#include <chrono>

#include <fmt/format.h>

namespace gs {
namespace {

// Reads exactly `digits` digits.
bool number(std::string_view& text, std::size_t digits, int& out) {
  if (text.size() < digits) return false;
  for (std::size_t i = 0; i < digits; ++i)
    if (text[i] < '0' || text[i] > '9') return false;
  std::from_chars(text.data(), text.data() + digits, out);
  text.remove_prefix(digits);
  return true;
}

bool letter(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

// ".25": at most milliseconds are kept.
int milliseconds_of(std::string_view& text) {
  int ms = 0;
  int weight = 100;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    ms += (text.front() - '0') * weight;
    weight /= 10;
    text.remove_prefix(1);
  }
  return ms;
}

}  // namespace

std::string time_text(Instant time) {
  const std::chrono::sys_time<std::chrono::milliseconds> at{std::chrono::milliseconds(time.ms)};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{at - day};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

std::optional<Instant> parse_time(std::string_view text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (!number(text, 4, year) || !letter(text, '-') || !number(text, 2, month) ||
      !letter(text, '-') || !number(text, 2, day))
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  if (!letter(text, 'T') || !number(text, 2, hour) || !letter(text, ':') ||
      !number(text, 2, minute) || !letter(text, ':') || !number(text, 2, second) || hour > 23 ||
      minute > 59 || second > 60)
    return std::nullopt;
  const int ms = letter(text, '.') ? milliseconds_of(text) : 0;
  int offset = 0;
  if (!letter(text, 'Z')) {
    const int sign = letter(text, '-') ? -1 : letter(text, '+') ? 1 : 0;
    int hours = 0, minutes = 0;
    if (sign == 0 || !number(text, 2, hours) || !letter(text, ':') || !number(text, 2, minutes))
      return std::nullopt;
    offset = sign * (hours * 60 + minutes);
  }
  if (!text.empty()) return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return Instant{
      (((static_cast<std::int64_t>(days) * 24 + hour) * 60 + minute - offset) * 60 + second) *
          1000 +
      ms};
}

}  // namespace gs
