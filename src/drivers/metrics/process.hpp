// What the operating system says about this process.
#pragma once

#include <cstdint>

namespace gs {

struct ProcessFigures {
  double cpu_seconds = 0;
  std::int64_t resident_bytes = 0;
  std::int64_t virtual_bytes = 0;
  std::int64_t open_fds = 0;
  std::int64_t max_fds = 0;
  std::int64_t threads = 0;
  double start_time_seconds = 0;  // since 1970
};

ProcessFigures process_figures();

}  // namespace gs
