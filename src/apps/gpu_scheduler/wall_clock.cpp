#include "apps/gpu_scheduler/wall_clock.hpp"

#include <chrono>

namespace gs {

Instant wall_clock() {
  using std::chrono::duration_cast;
  static const auto began = std::chrono::steady_clock::now();
  static const auto day = std::chrono::system_clock::now();
  const auto passed = std::chrono::steady_clock::now() - began;
  return Instant{duration_cast<std::chrono::milliseconds>(day.time_since_epoch() + passed).count()};
}

}  // namespace gs
