// The agent of this machine as a child of the service: started anew when it dies, and it ends when
// the service does, however that ends. Its tasks go on in both cases.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.hpp"

namespace gs {

class LocalAgent {
 public:
  using Clock = std::chrono::steady_clock;

  LocalAgent() = default;
  ~LocalAgent() { stop(); }
  LocalAgent(const LocalAgent&) = delete;
  LocalAgent& operator=(const LocalAgent&) = delete;

  // By the thread that lives as long as the process: the agent ends with it.
  void start(std::vector<std::string> arguments);
  // Looks whether it still runs, and starts it again when it is time. When to look again; a child
  // that dies is a reason too.
  Clock::duration look();
  void stop();

 private:
  Status spawn();

  std::vector<std::string> arguments_;  // empty: none is wanted
  pid_t pid_ = -1;
  Clock::time_point started_, again_;
  Clock::duration pause_{};
};

}  // namespace gs
