#include "net/rate_limit.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace gs {

RateLimiter::RateLimiter(double per_second, double burst, std::size_t max_callers)
    : max_per_shard_(std::max<std::size_t>(1, max_callers / kShards)) {
  set_limit(per_second, burst);
}

void RateLimiter::set_limit(double per_second, double burst) {
  const double step = per_second > 0 ? std::max(1.0, 1e6 / per_second) : 0;
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    shard.step_us = std::llround(std::min(step, 1e12));
    shard.room_us = std::llround(static_cast<double>(shard.step_us) * std::clamp(burst, 1.0, 1e6));
  }
}

std::int64_t& RateLimiter::bucket(Shard& shard, std::string_view caller, std::int64_t now_us) {
  const std::string name(caller);
  if (const auto found = shard.full_at.find(name); found != shard.full_at.end())
    return found->second;
  // At most once a second: with as many active callers as fit, sweeping finds nothing each time.
  if (shard.full_at.size() >= max_per_shard_ && now_us >= shard.swept_us + 1'000'000) {
    std::erase_if(shard.full_at, [&](const auto& entry) { return entry.second <= now_us; });
    shard.swept_us = now_us;
  }
  if (shard.full_at.size() >= max_per_shard_) return shard.others_full_at;
  return shard.full_at[name];
}

Duration RateLimiter::take(std::string_view caller, Instant now) {
  Shard& shard = shards_[std::hash<std::string_view>{}(caller) % kShards];
  const std::lock_guard lock(shard.mutex);
  if (shard.step_us == 0) return {};
  const std::int64_t now_us = now.ms * 1000;
  std::int64_t& full_at = bucket(shard, caller, now_us);
  // Not before now: a bucket holds no more than all of it. Not later than an empty one would be: a
  // clock that was set back must not lock anybody out.
  full_at = std::clamp(full_at, now_us, now_us + shard.room_us);
  const std::int64_t missing_us = full_at + shard.step_us - (now_us + shard.room_us);
  if (missing_us > 0) return milliseconds((missing_us + 999) / 1000);
  full_at += shard.step_us;
  return {};
}

std::size_t RateLimiter::callers() const {
  std::size_t count = 0;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    count += shard.full_at.size();
  }
  return count;
}

}  // namespace gs
