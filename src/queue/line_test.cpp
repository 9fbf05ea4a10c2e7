#include "queue/line.hpp"

#include <map>
#include <utility>

#include <gtest/gtest.h>

#include "base/rng.hpp"

namespace gs {
namespace {

using Plain = std::map<std::pair<std::int64_t, std::uint64_t>, JobId>;

void expect_same(const Line& line, const Plain& plain) {
  ASSERT_EQ(line.size(), plain.size());
  const Line::Entry* entry = line.front();
  for (const auto& [key, job] : plain) {
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->job, job);
    entry = line.after(entry->submitted, entry->seq);
  }
  EXPECT_EQ(entry, nullptr);
}

TEST(Line, StaysSortedWhoeverJoinsOrLeaves) {
  Rng rng(5);
  Line line;
  Plain plain;
  for (std::uint64_t step = 0; step < 3000; ++step) {
    // Long runs of each, so that the line becomes long and empty again.
    const bool joins = rng.chance(step / 500 % 2 == 0 ? 0.7 : 0.2);
    if (joins) {
      const auto latest = static_cast<std::int64_t>(step);
      const Instant submitted{rng.chance(0.5) ? latest : rng.between(0, latest)};
      line.join({submitted, step, JobId{step}});
      plain[{submitted.ms, step}] = JobId{step};
    } else if (!plain.empty() && rng.chance(0.5)) {
      line.leave_front();
      plain.erase(plain.begin());
    } else if (!plain.empty()) {
      auto it = plain.begin();
      std::advance(it, static_cast<std::ptrdiff_t>(rng.below(plain.size())));
      line.leave(Instant{it->first.first}, it->first.second);
      plain.erase(it);
    }
    ASSERT_NO_FATAL_FAILURE(expect_same(line, plain));
  }
}

TEST(Line, WhoLeftFromTheMiddleMayComeBackToItsPlace) {
  Line line;
  for (std::uint64_t i = 0; i < 3; ++i) line.join({Instant{5}, i, JobId{i}});
  line.leave(Instant{5}, 1);
  EXPECT_EQ(line.after(Instant{5}, 0)->job, JobId{std::size_t{2}});
  line.join({Instant{5}, 1, JobId{std::size_t{1}}});
  EXPECT_EQ(line.after(Instant{5}, 0)->job, JobId{std::size_t{1}});
  EXPECT_EQ(line.size(), 3U);
}

}  // namespace
}  // namespace gs
