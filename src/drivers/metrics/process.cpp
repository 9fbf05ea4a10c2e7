#include "drivers/metrics/process.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

namespace gs {
namespace {

// Fields of /proc/self/stat from the third on: what is before may contain blanks.
std::vector<std::int64_t> stat_fields() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t end = text.rfind(')');
  if (end == text.npos) return {};
  std::istringstream rest(text.substr(end + 1));
  std::string state;
  rest >> state;
  std::vector<std::int64_t> fields{0, 0, 0, 0};  // numbered as in proc(5), the state is 3
  for (std::string word; rest >> word;) fields.push_back(std::atoll(word.c_str()));
  return fields;
}

double boot_time_seconds() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("btime ")) return std::atof(line.c_str() + 6);
  return 0;
}

std::int64_t count_open_files() {
  std::error_code error;
  std::int64_t count = 0;
  for (auto it = std::filesystem::directory_iterator("/proc/self/fd", error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error))
    ++count;
  return count > 0 ? count - 1 : 0;  // less the one that we look with
}

}  // namespace

ProcessFigures process_figures() {
  ProcessFigures out;
  const std::vector<std::int64_t> stat = stat_fields();
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  if (stat.size() > 24) {
    out.cpu_seconds = static_cast<double>(stat[14] + stat[15]) / ticks;
    out.threads = stat[20];
    out.start_time_seconds = boot_time_seconds() + static_cast<double>(stat[22]) / ticks;
    out.virtual_bytes = stat[23];
    out.resident_bytes = stat[24] * sysconf(_SC_PAGESIZE);
  }
  out.open_fds = count_open_files();
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
    out.max_fds = static_cast<std::int64_t>(limit.rlim_cur);
  return out;
}

}  // namespace gs
