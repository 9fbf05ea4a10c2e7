// RateLimiter: how many requests a caller may make. A token bucket for each caller: `burst` at
// once, `per_second` in the long run.
//
// Safe to use from many threads. Memory is bounded: a caller whose bucket is full again is
// forgotten, which changes nothing for it, and when there are more active callers than can be
// remembered the new ones share one bucket.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/time.hpp"

namespace gs {

class RateLimiter {
 public:
  // per_second 0: no limit.
  RateLimiter(double per_second, double burst, std::size_t max_callers = 100'000);

  // Zero: go ahead, it is counted. Else: not now, and how long to wait until it would be; nothing
  // is counted. `now` should be of a clock that does not jump.
  Duration take(std::string_view caller, Instant now);

  void set_limit(double per_second, double burst);
  std::size_t callers() const;  // that are remembered

 private:
  static constexpr std::size_t kShards = 16;

  // A bucket is the instant (in microseconds) at which it would be full again.
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<std::string, std::int64_t> full_at;
    std::int64_t others_full_at = 0;
    std::int64_t swept_us = 0;
    std::int64_t step_us = 0;  // what one request takes out of a bucket; 0: no limit
    std::int64_t room_us = 0;  // what a whole bucket holds
  };

  std::int64_t& bucket(Shard& shard, std::string_view caller, std::int64_t now_us);

  std::size_t max_per_shard_;
  std::array<Shard, kShards> shards_;
};

}  // namespace gs
