#include "agent/log.hpp"

#include <ctime>

#include <unistd.h>

#include "agent/clock.hpp"

namespace gs::agent {

void write_log(std::string_view level, std::string_view message) {
  const std::int64_t now = wall_ms();
  const std::time_t second = now / 1000;
  std::tm parts{};
  ::gmtime_r(&second, &parts);
  char when[32];
  std::strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &parts);
  const std::string line =
      fmt::format("{}.{:03}Z {:<7} agent: {}\n", when, now % 1000, level, message);
  // One write a line: lines of several threads don't mix.
  [[maybe_unused]] const ssize_t written = ::write(2, line.data(), line.size());
}

}  // namespace gs::agent
