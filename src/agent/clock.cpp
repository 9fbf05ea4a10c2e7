#include "agent/clock.hpp"

#include <ctime>

#include "agent/files.hpp"

namespace gs::agent {
namespace {

std::int64_t read_clock_ms(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

std::int64_t boottime_ms() { return read_clock_ms(CLOCK_BOOTTIME); }
std::int64_t wall_ms() { return read_clock_ms(CLOCK_REALTIME); }

const std::string& boot_id() {
  static const std::string id = trim(read_file("/proc/sys/kernel/random/boot_id").value_or(""));
  return id;
}

void sleep_ms(std::int64_t ms) {
  const timespec pause{ms / 1000, (ms % 1000) * 1'000'000};
  ::nanosleep(&pause, nullptr);
}

}  // namespace gs::agent
