#include "agent/cgroup.hpp"

#include <algorithm>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

namespace gs::agent {
namespace {

constexpr const char* kFolder = "gpu-scheduler";
constexpr std::int64_t kPeriodUs = 100'000;
// A thread that moves itself by this file does not wait, up to 10 ms, for all others to stand
// still, as it would with cgroup.procs; our child has one thread.
constexpr const char* kTasksV1 = "tasks";

std::int64_t quota_us(std::int64_t cpu_milli) {
  return std::max<std::int64_t>(1000, cpu_milli * kPeriodUs / 1000);
}

bool has_option(const std::string& options, const std::string& wanted) {
  std::istringstream list(options);
  for (std::string option; std::getline(list, option, ',');)
    if (option == wanted) return true;
  return false;
}

// A number after its name, in files with one pair to a line.
int counter_in(const std::string& path, const std::string& name) {
  std::istringstream lines(read_file(path).value_or(""));
  std::string key;
  for (int value = 0; lines >> key >> value;)
    if (key == name) return value;
  return 0;
}

}  // namespace

CgroupMounts parse_cgroup_mounts(const std::string& proc_mounts) {
  CgroupMounts mounts;
  std::istringstream lines(proc_mounts);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string device, point, type, options;
    fields >> device >> point >> type >> options;
    if (type == "cgroup2" && mounts.unified.empty()) mounts.unified = point;
    if (type != "cgroup") continue;
    if (has_option(options, "cpu")) mounts.cpu_v1 = point;
    if (has_option(options, "memory")) mounts.memory_v1 = point;
  }
  return mounts;
}

Cgroup Cgroup::create(const std::string& root, const std::string& name,
                      const CgroupLimits& limits) {
  Cgroup cgroup;
  if (root == "none") return cgroup;
  if (!root.empty()) {
    cgroup.add_unified(root, name, limits);
    return cgroup;
  }
  const CgroupMounts mounts = parse_cgroup_mounts(read_file("/proc/mounts").value_or(""));
  if (mounts.unified.empty() && mounts.memory_v1.empty() && mounts.cpu_v1.empty()) {
    cgroup.missing_ = "this machine has no cgroups";
    return cgroup;
  }
  const bool held_by_v1 = !mounts.memory_v1.empty() || !mounts.cpu_v1.empty();
  if (!mounts.unified.empty())
    cgroup.add_unified(mounts.unified + "/" + kFolder, name, held_by_v1 ? CgroupLimits{} : limits);
  if (held_by_v1) cgroup.add_v1(mounts, name, limits);
  return cgroup;
}

void Cgroup::add_unified(const std::string& base, const std::string& name,
                         const CgroupLimits& limits) {
  if (limits.cpu_milli > 0 || limits.memory_mb > 0) {
    // A controller works in a directory if all above hand it down. Those that do already say so
    // without harm; one that can't shows up below, when the limit is set.
    const std::string above = base.substr(0, base.rfind('/'));
    (void)write_control(above + "/cgroup.subtree_control", "+cpu +memory").ok();
    if (!file_exists(base) && !make_directories(base, 0755).ok())
      missing_ = "cannot create " + base;
    (void)write_control(base + "/cgroup.subtree_control", "+cpu +memory").ok();
  }
  const std::string path = base + "/" + name;
  if (!add_directory(path, "cgroup.procs")) return;
  first_is_unified_ = true;
  unified_fd_.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (limits.cpu_milli > 0)
    limit(path + "/cpu.max", fmt::format("{} {}", quota_us(limits.cpu_milli), kPeriodUs), "CPU");
  if (limits.memory_mb > 0) {
    limit(path + "/memory.max", fmt::format("{}M", limits.memory_mb), "memory");
    (void)write_control(path + "/memory.swap.max", "0").ok();
    (void)write_control(path + "/memory.oom.group", "1").ok();
    memory_path_ = path;
  }
}

void Cgroup::add_v1(const CgroupMounts& mounts, const std::string& name,
                    const CgroupLimits& limits) {
  if (limits.memory_mb > 0 && !mounts.memory_v1.empty()) {
    const std::string path = fmt::format("{}/{}/{}", mounts.memory_v1, kFolder, name);
    if (add_directory(path, kTasksV1)) {
      limit(path + "/memory.limit_in_bytes", fmt::format("{}M", limits.memory_mb), "memory");
      memory_path_ = path;
      memory_is_v1_ = true;
    }
  }
  if (limits.cpu_milli > 0 && !mounts.cpu_v1.empty()) {
    const std::string path = fmt::format("{}/{}/{}", mounts.cpu_v1, kFolder, name);
    if (add_directory(path, kTasksV1))
      limit(path + "/cpu.cfs_quota_us", std::to_string(quota_us(limits.cpu_milli)), "CPU");
  }
}

bool Cgroup::add_directory(const std::string& path, const char* members) {
  if (Status made = make_directories(path, 0755); !made.ok()) {
    missing_ = made.error().message;
    return false;
  }
  Fd procs(::open((path + "/" + members).c_str(), O_WRONLY | O_CLOEXEC));
  if (!procs.valid()) {
    missing_ = fmt::format("{} is not a cgroup that we may use", path);
    remove_cgroups({path});
    return false;
  }
  paths_.push_back(path);
  procs_.push_back(std::move(procs));
  return true;
}

void Cgroup::limit(const std::string& path, const std::string& value, const char* what) {
  if (Status set = write_control(path, value); !set.ok())
    missing_ = fmt::format("the {} limit is not enforced: {}", what, set.error().message);
}

bool Cgroup::join_from_child(bool already_in_unified) const {
  bool joined = true;
  for (std::size_t i = 0; i < procs_.size(); ++i) {
    if (i == 0 && first_is_unified_ && already_in_unified) continue;
    joined = ::write(procs_[i].get(), "0", 1) == 1 && joined;
  }
  return joined;
}

int Cgroup::out_of_memory_kills() const {
  if (memory_path_.empty()) return 0;
  return counter_in(memory_path_ + (memory_is_v1_ ? "/memory.oom_control" : "/memory.events"),
                    "oom_kill");
}

std::vector<int> processes_in(const std::vector<std::string>& paths) {
  std::vector<int> pids;
  for (const std::string& path : paths) {
    std::istringstream list(read_file(path + "/cgroup.procs").value_or(""));
    for (int pid = 0; list >> pid;)
      if (pid > 1) pids.push_back(pid);
  }
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  return pids;
}

bool kill_cgroups(const std::vector<std::string>& paths) {
  bool could = false;
  for (const std::string& path : paths)
    could = write_control(path + "/cgroup.kill", "1").ok() || could;
  for (const int pid : processes_in(paths)) {
    ::kill(pid, SIGKILL);
    could = true;
  }
  return could;
}

void remove_cgroups(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) ::rmdir(path.c_str());
}

}  // namespace gs::agent
