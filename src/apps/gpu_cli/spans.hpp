// Times and spans of time as people write and read them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace gs::cli {

// "90m", "2h", "1h30m", "1d", "45s"; a bare number is minutes. Above zero.
Result<Duration> parse_span(std::string_view text);
// The same in whole minutes, rounded up, as the API takes runtimes.
Result<int> parse_minutes(std::string_view text);

std::string short_span(Duration span);            // "42s", "3m", "2h5m", "3d4h"
std::string long_span(Duration span);             // "42 s", "3 min", "2 h 5 min", "3 d 4 h"
std::string ago(Instant time, Instant now);       // "3m ago"
std::string from_now(Instant time, Instant now);  // "in 12 min", "any moment"
std::string clock_text(Instant time,
                       Instant now);  // local: "15:21", or with the day if it is another
std::string date_text(Instant time);  // local: "2026-01-31 15:21:19"

Instant wall_clock();

}  // namespace gs::cli
