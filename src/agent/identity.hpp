// As whom a task runs. Never as root, unless the machine's owner allowed it.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "agent/task_files.hpp"
#include "base/result.hpp"

namespace gs::agent {

struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
  std::string name, home, shell;
  bool change = false;  // we are somebody else and have to become this user
};

Result<Identity> identity_for(const TaskOrder& order);

}  // namespace gs::agent
