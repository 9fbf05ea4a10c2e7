// The agent of this machine as a child of `serve`. It runs on its own: if the service is killed it
// goes on and is found again by the next one.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.hpp"

namespace gs {

class LocalAgent {
 public:
  // Starts `arguments[0]` with the arguments.
  Status start(const std::vector<std::string>& arguments);
  void stop();  // asks it to leave, waits for a moment
  ~LocalAgent() { stop(); }

 private:
  pid_t pid_ = -1;
};

}  // namespace gs
