// Instant and Duration in milliseconds. The engine never reads a clock: `now` is an argument.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace gs {

struct Duration {
  std::int64_t ms = 0;
  constexpr auto operator<=>(const Duration&) const = default;
  constexpr double seconds() const { return static_cast<double>(ms) / 1000.0; }
};
constexpr Duration milliseconds(std::int64_t n) { return {n}; }
constexpr Duration seconds(std::int64_t n) { return {n * 1000}; }
constexpr Duration minutes(std::int64_t n) { return {n * 60'000}; }
constexpr Duration hours(std::int64_t n) { return {n * 3'600'000}; }
constexpr Duration operator+(Duration a, Duration b) { return {a.ms + b.ms}; }
constexpr Duration operator-(Duration a, Duration b) { return {a.ms - b.ms}; }

struct Instant {
  std::int64_t ms = 0;
  constexpr auto operator<=>(const Instant&) const = default;
  // "At no time that we know of": the end of a job without any runtime estimate.
  static constexpr Instant never() { return {std::numeric_limits<std::int64_t>::max() / 4}; }
  constexpr bool is_never() const { return *this >= never(); }
};
constexpr Instant operator+(Instant t, Duration d) {
  return t.is_never() ? Instant::never() : Instant{t.ms + d.ms};
}
constexpr Instant operator-(Instant t, Duration d) { return {t.ms - d.ms}; }
constexpr Duration operator-(Instant a, Instant b) { return {a.ms - b.ms}; }

}  // namespace gs
