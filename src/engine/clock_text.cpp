#include "engine/clock_text.hpp"

#include <chrono>
#include <cstdio>

namespace gs {

std::string clock_text(Instant t) {
  namespace ch = std::chrono;
  const ch::sys_seconds at{ch::seconds{t.ms / 1000}};
  const auto day = ch::floor<ch::days>(at);
  const ch::year_month_day date{day};
  const ch::hh_mm_ss time{at - day};
  char text[48];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u %02d:%02d:%02dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()));
  return text;
}

}  // namespace gs
