#include "net/rate_limit.hpp"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace gs {
namespace {

constexpr Instant kStart{1'000'000};

int passes(RateLimiter& limiter, const std::string& caller, Instant now, int tries) {
  int count = 0;
  for (int i = 0; i < tries; ++i) count += limiter.take(caller, now).ms == 0 ? 1 : 0;
  return count;
}

TEST(RateLimiter, a_burst_then_the_rate) {
  RateLimiter limiter(10, 5);
  EXPECT_EQ(passes(limiter, "a", kStart, 20), 5);
  EXPECT_EQ(limiter.take("a", kStart), milliseconds(100));
  EXPECT_EQ(limiter.take("a", kStart + milliseconds(99)), milliseconds(1));
  EXPECT_EQ(limiter.take("a", kStart + milliseconds(100)), milliseconds(0));
  EXPECT_EQ(limiter.take("a", kStart + milliseconds(100)), milliseconds(100));
  EXPECT_EQ(passes(limiter, "a", kStart + hours(1), 20), 5);  // never more than a burst
}

TEST(RateLimiter, the_rate_holds_over_time) {
  RateLimiter limiter(100, 10);
  int count = 0;
  for (int ms = 0; ms < 10'000; ++ms) count += passes(limiter, "a", kStart + milliseconds(ms), 3);
  EXPECT_GE(count, 1000);
  EXPECT_LE(count, 1010);
}

TEST(RateLimiter, callers_do_not_take_from_each_other) {
  RateLimiter limiter(1, 3);
  EXPECT_EQ(passes(limiter, "a", kStart, 10), 3);
  EXPECT_EQ(passes(limiter, "b", kStart, 10), 3);
}

TEST(RateLimiter, zero_is_no_limit) {
  RateLimiter limiter(0, 1);
  EXPECT_EQ(passes(limiter, "a", kStart, 1000), 1000);
  EXPECT_EQ(limiter.callers(), 0U);
}

TEST(RateLimiter, memory_is_bounded_and_idle_callers_are_forgotten) {
  RateLimiter limiter(1, 2, 160);
  for (int i = 0; i < 10'000; ++i) (void)limiter.take(std::to_string(i), kStart);
  EXPECT_LE(limiter.callers(), 160U);
  const Instant later = kStart + seconds(10);
  for (int i = 0; i < 50; ++i) (void)limiter.take("late-" + std::to_string(i), later);
  EXPECT_LE(limiter.callers(), 160U);
  // Whoever is remembered again has a bucket of its own.
  EXPECT_EQ(passes(limiter, "late-0", later, 5), 1);
}

TEST(RateLimiter, strangers_beyond_the_bound_share_one_bucket) {
  RateLimiter limiter(1, 2, 16);  // one of each shard is remembered
  int passed = 0;
  for (int i = 0; i < 1000; ++i) passed += passes(limiter, std::to_string(i), kStart, 2);
  EXPECT_LE(passed, 2 * 16 + 2 * 16);
}

TEST(RateLimiter, a_clock_set_back_locks_nobody_out) {
  RateLimiter limiter(1, 2);
  EXPECT_EQ(passes(limiter, "a", kStart + hours(1), 5), 2);
  EXPECT_LE(limiter.take("a", kStart), seconds(1));
  EXPECT_EQ(limiter.take("a", kStart + seconds(1)), milliseconds(0));
}

TEST(RateLimiter, a_new_limit_holds_at_once) {
  RateLimiter limiter(1, 1);
  EXPECT_EQ(passes(limiter, "a", kStart, 5), 1);
  limiter.set_limit(1000, 10);
  EXPECT_EQ(passes(limiter, "a", kStart + seconds(1), 50), 10);
}

TEST(RateLimiter, threads_together_get_no_more_than_one) {
  RateLimiter limiter(1, 1000);
  std::vector<int> counts(4);
  std::vector<std::thread> threads;
  for (int& count : counts)
    threads.emplace_back([&] { count = passes(limiter, "a", kStart, 1000); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counts[0] + counts[1] + counts[2] + counts[3], 1000);
}

}  // namespace
}  // namespace gs
