#include "apps/gpu_cli/spans.hpp"

#include <cstdlib>

#include <gtest/gtest.h>

namespace gs::cli {
namespace {

TEST(Spans, reads_what_people_write) {
  EXPECT_EQ(parse_span("90m")->ms, minutes(90).ms);
  EXPECT_EQ(parse_span("2h")->ms, hours(2).ms);
  EXPECT_EQ(parse_span("1h30m")->ms, minutes(90).ms);
  EXPECT_EQ(parse_span("1d2h")->ms, hours(26).ms);
  EXPECT_EQ(parse_span("45s")->ms, seconds(45).ms);
  EXPECT_EQ(parse_span("15")->ms, minutes(15).ms);  // a bare number is minutes
}

TEST(Spans, refuses_what_is_none) {
  for (const char* text : {"", "h", "-5m", "5x", "1h30", "0", "0m", "1.5h", "99999999999d", "5 m",
                           "18446744073709551616s"})
    EXPECT_FALSE(parse_span(text).ok()) << text;
  EXPECT_NE(parse_span("5x").error().message.find("'5x'"), std::string::npos);
}

TEST(Spans, minutes_are_rounded_up) {
  EXPECT_EQ(*parse_minutes("90s"), 2);
  EXPECT_EQ(*parse_minutes("1s"), 1);
  EXPECT_EQ(*parse_minutes("2h"), 120);
}

TEST(Spans, are_written_in_the_two_units_that_matter) {
  EXPECT_EQ(short_span(seconds(42)), "42s");
  EXPECT_EQ(short_span(seconds(200)), "3m");
  EXPECT_EQ(short_span(minutes(125)), "2h5m");
  EXPECT_EQ(short_span(hours(48)), "2d");
  EXPECT_EQ(short_span(hours(76)), "3d4h");
  EXPECT_EQ(short_span(Duration{-5}), "0s");  // clocks of two machines differ
  EXPECT_EQ(long_span(minutes(125)), "2 h 5 min");
}

TEST(Spans, what_comes_is_told_to_the_nearest_minute) {
  const Instant now{1'000'000'000'000};
  EXPECT_EQ(from_now(now + seconds(12 * 60 - 2), now), "in 12 min");
  EXPECT_EQ(from_now(now + seconds(48), now), "in 48 s");
  EXPECT_EQ(from_now(now, now), "any moment");
  EXPECT_EQ(ago(now, now + minutes(3)), "3m ago");
}

TEST(Spans, the_day_is_told_where_it_is_not_today) {
  setenv("TZ", "UTC", 1);
  tzset();
  const Instant noon{1'800'000'000'000};  // 2027-01-15 08:00 UTC
  EXPECT_EQ(clock_text(noon + minutes(21), noon), "08:21");
  EXPECT_EQ(clock_text(noon + hours(24), noon), "Sat 16 Jan 08:00");
  EXPECT_EQ(date_text(noon), "2027-01-15 08:00:00");
}

}  // namespace
}  // namespace gs::cli
