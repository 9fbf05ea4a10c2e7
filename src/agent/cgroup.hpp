// The cgroup of a task: its limits of CPU and memory, and a way to kill all of it at once.
//
// On a machine with cgroup v2 alone there is one directory. Where v1 still holds the controllers
// (hybrid), the v2 directory serves for killing and one more per controller for the limits. What
// the machine does not allow is left out, and said in `missing`: a task runs without limits
// rather than not at all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/files.hpp"

namespace gs::agent {

struct CgroupMounts {
  std::string unified;  // of cgroup v2; empty: none
  std::string cpu_v1;   // of the v1 controller; empty: v1 does not hold it
  std::string memory_v1;
};

CgroupMounts parse_cgroup_mounts(const std::string& proc_mounts);

struct CgroupLimits {
  std::int64_t cpu_milli = 0, memory_mb = 0;  // 0: no limit
};

class Cgroup {
 public:
  // Makes the directories `<mount>/gpu-scheduler/<name>`, or `<root>/<name>` for a given v2 root.
  // root "none": nothing.
  static Cgroup create(const std::string& root, const std::string& name,
                       const CgroupLimits& limits);

  const std::vector<std::string>& paths() const { return paths_; }
  const std::string& missing() const { return missing_; }  // empty: all that was asked for

  // For the child: starting inside the v2 directory costs less than moving there.
  int unified_fd() const { return unified_fd_.get(); }
  // From inside the child, before it becomes the task. Calls nothing but write().
  bool join_from_child(bool already_in_unified) const;

  int out_of_memory_kills() const;

 private:
  void add_unified(const std::string& base, const std::string& name, const CgroupLimits& limits);
  void add_v1(const CgroupMounts& mounts, const std::string& name, const CgroupLimits& limits);
  // `members`: the file in it by which a process joins.
  bool add_directory(const std::string& path, const char* members);
  void limit(const std::string& path, const std::string& value, const char* what);

  std::vector<std::string> paths_;
  std::string missing_;
  std::string memory_path_;  // holds the memory limit
  bool memory_is_v1_ = false;
  Fd unified_fd_;
  std::vector<Fd> procs_;  // the files to join by, in the order of paths_
  bool first_is_unified_ = false;
};

// SIGKILL to all processes in these cgroups; false if none of them could say who is inside.
bool kill_cgroups(const std::vector<std::string>& paths);
std::vector<int> processes_in(const std::vector<std::string>& paths);
void remove_cgroups(const std::vector<std::string>& paths);

}  // namespace gs::agent
