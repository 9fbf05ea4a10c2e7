#include "apps/gpu_cli/spans.hpp"

#include <charconv>
#include <chrono>
#include <ctime>

#include <fmt/format.h>

namespace gs::cli {
namespace {

constexpr std::int64_t kSecond = 1000, kMinute = 60 * kSecond, kHour = 60 * kMinute,
                       kDay = 24 * kHour;
constexpr std::int64_t kLongest = 10LL * 366 * kDay;

std::int64_t unit_ms(char unit) {
  switch (unit) {
    case 's':
      return kSecond;
    case 'm':
      return kMinute;
    case 'h':
      return kHour;
    case 'd':
      return kDay;
    default:
      return 0;
  }
}

std::tm local_time(Instant time) {
  const std::time_t whole = time.ms / 1000;
  std::tm out{};
  localtime_r(&whole, &out);
  return out;
}

std::string formatted(const std::tm& time, const char* format) {
  char space[64];
  return {space, std::strftime(space, sizeof space, format, &time)};
}

// The two largest units that matter.
std::string two_units(Duration span, const char* between, const char* const names[4]) {
  const std::int64_t ms = std::max<std::int64_t>(span.ms, 0);
  const auto both = [&](std::int64_t large, const char* large_name, std::int64_t small,
                        const char* small_name) {
    return small == 0 ? fmt::format("{}{}", large, large_name)
                      : fmt::format("{}{}{}{}{}", large, large_name, between, small, small_name);
  };
  if (ms >= kDay) return both(ms / kDay, names[3], ms % kDay / kHour, names[2]);
  if (ms >= kHour) return both(ms / kHour, names[2], ms % kHour / kMinute, names[1]);
  if (ms >= kMinute) return fmt::format("{}{}", ms / kMinute, names[1]);
  return fmt::format("{}{}", ms / kSecond, names[0]);
}

}  // namespace

Result<Duration> parse_span(std::string_view text) {
  const Error wrong =
      invalid(fmt::format("'{}' is not a span of time such as 90m, 2h, 1h30m or 1d", text));
  std::int64_t total = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc{} || number < 0 || number > kLongest / kSecond) return wrong;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const bool is_bare = rest.empty() && total == 0;
    const std::int64_t unit = is_bare ? kMinute : rest.empty() ? 0 : unit_ms(rest.front());
    if (unit == 0 || number > kLongest / unit) return wrong;
    total += number * unit;
    if (!rest.empty()) rest.remove_prefix(1);
  }
  if (total <= 0 || total > kLongest) return wrong;
  return milliseconds(total);
}

Result<int> parse_minutes(std::string_view text) {
  const Result<Duration> span = parse_span(text);
  if (!span) return span.error();
  return static_cast<int>((span->ms + kMinute - 1) / kMinute);
}

std::string short_span(Duration span) {
  static constexpr const char* kNames[] = {"s", "m", "h", "d"};
  return two_units(span, "", kNames);
}

std::string long_span(Duration span) {
  static constexpr const char* kNames[] = {" s", " min", " h", " d"};
  return two_units(span, " ", kNames);
}

std::string ago(Instant time, Instant now) { return short_span(now - time) + " ago"; }

std::string from_now(Instant time, Instant now) {
  Duration span = time - now;
  if (span.ms < kSecond) return "any moment";
  if (span.ms > 2 * kMinute) span.ms += kMinute / 2;  // to the nearest minute
  return "in " + long_span(span);
}

std::string clock_text(Instant time, Instant now) {
  const std::tm then = local_time(time);
  const std::tm today = local_time(now);
  const bool same_day = then.tm_yday == today.tm_yday && then.tm_year == today.tm_year;
  return formatted(then, same_day ? "%H:%M" : "%a %d %b %H:%M");
}

std::string date_text(Instant time) { return formatted(local_time(time), "%Y-%m-%d %H:%M:%S"); }

Instant wall_clock() {
  return Instant{std::chrono::duration_cast<std::chrono::milliseconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count()};
}

}  // namespace gs::cli
