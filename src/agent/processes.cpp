#include "agent/processes.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "agent/cgroup.hpp"
#include "agent/clock.hpp"
#include "agent/files.hpp"

namespace gs::agent {
namespace {

struct Stat {
  Process process;
  long long cpu_ticks = 0;
  long long resident_pages = 0;
};

std::optional<Stat> stat_of(int pid) {
  const auto content = read_file(fmt::format("/proc/{}/stat", pid));
  if (!content) return std::nullopt;
  const std::size_t name_end = content->rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  Stat stat;
  stat.process.pid = pid;
  long long user = 0;
  long long system = 0;
  const int fields = std::sscanf(
      content->c_str() + name_end + 1,
      " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %lld %lld %*d %*d %*d %*d %*d %*d %*u %*u %lld",
      &stat.process.state, &stat.process.parent, &stat.process.group, &stat.process.session, &user,
      &system, &stat.resident_pages);
  if (fields < 7) return std::nullopt;
  stat.cpu_ticks = user + system;
  return stat;
}

std::vector<Stat> all_stats() {
  std::vector<Stat> stats;
  for (const std::string& name : list_directory("/proc")) {
    int pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc{} || parsed.ptr != name.data() + name.size()) continue;
    if (const auto stat = stat_of(pid)) stats.push_back(*stat);
  }
  return stats;
}

std::set<int> below(const std::vector<Stat>& stats, int root) {
  std::multimap<int, int> children;
  for (const Stat& stat : stats) children.emplace(stat.process.parent, stat.process.pid);
  std::set<int> found;
  std::vector<int> open{root};
  while (!open.empty()) {
    const int parent = open.back();
    open.pop_back();
    const auto [first, last] = children.equal_range(parent);
    for (auto child = first; child != last; ++child)
      if (found.insert(child->second).second) open.push_back(child->second);
  }
  return found;
}

bool carries_marker(int pid, const std::string& marker) {
  const auto environment = read_file(fmt::format("/proc/{}/environ", pid));
  if (!environment) return false;
  std::string_view rest = *environment;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    if (rest.substr(0, end) == marker) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

}  // namespace

std::vector<Process> all_processes() {
  std::vector<Process> processes;
  for (const Stat& stat : all_stats()) processes.push_back(stat.process);
  return processes;
}

std::vector<int> descendants(int root) {
  const std::set<int> found = below(all_stats(), root);
  return {found.begin(), found.end()};
}

bool kill_leftovers(const TaskOrder& order, const TaskStatus& status, std::int64_t supervisor_pid,
                    std::int64_t patience_ms) {
  const std::string marker = std::string(kMarker) + "=" + order.allocation_id;
  const std::int64_t give_up = boottime_ms() + patience_ms;
  for (int quiet_rounds = 0; quiet_rounds < 2;) {
    kill_cgroups(status.cgroups);
    std::set<int> left;
    for (const int pid : processes_in(status.cgroups)) left.insert(pid);
    const std::vector<Process> processes = all_processes();
    // The session is named after the supervisor. Where its pid is in use again it is another's.
    const bool pid_reused = std::any_of(processes.begin(), processes.end(), [&](const Process& p) {
      return p.pid == supervisor_pid && p.state != 'Z';
    });
    for (const Process& process : processes) {
      if (process.state == 'Z' || process.pid == ::getpid() || process.pid <= 1) continue;
      const bool in_session =
          supervisor_pid > 1 && !pid_reused && process.session == supervisor_pid;
      if (in_session || carries_marker(process.pid, marker)) left.insert(process.pid);
    }
    for (const int pid : left) ::kill(pid, SIGKILL);
    quiet_rounds = left.empty() ? quiet_rounds + 1 : 0;
    if (boottime_ms() > give_up) return left.empty();
    if (!left.empty()) sleep_ms(5);
  }
  return true;
}

std::vector<Usage> usage_below(const std::vector<int>& roots) {
  const std::vector<Stat> stats = all_stats();
  const long long ticks_per_second = std::max(1L, ::sysconf(_SC_CLK_TCK));
  const long long page = ::sysconf(_SC_PAGESIZE);
  std::vector<Usage> usages;
  for (const int root : roots) {
    Usage usage;
    usage.pids = below(stats, root);
    for (const Stat& stat : stats) {
      if (!usage.pids.contains(stat.process.pid)) continue;
      usage.cpu_ms += stat.cpu_ticks * 1000 / ticks_per_second;
      usage.memory_mb += stat.resident_pages * page / (1024 * 1024);
    }
    usages.push_back(std::move(usage));
  }
  return usages;
}

}  // namespace gs::agent
