#include "apps/gpu_scheduler/local_agent.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.hpp"

extern char** environ;

namespace gs {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kFirstPause{100};
constexpr seconds kLongestPause{10};
constexpr seconds kHealthy{30};  // after so long the next fault is a new one
constexpr std::chrono::hours kNever{24};

std::string how_it_ended(int status) {
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                             : "exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

void LocalAgent::start(std::vector<std::string> arguments) {
  arguments_ = std::move(arguments);
  again_ = Clock::now();
  (void)look();
}

LocalAgent::Clock::duration LocalAgent::look() {
  if (arguments_.empty()) return kNever;
  int status = 0;
  if (pid_ > 0 && waitpid(pid_, &status, WNOHANG) == pid_) {
    pid_ = -1;
    const auto now = Clock::now();
    pause_ = now - started_ > kHealthy
                 ? kFirstPause
                 : std::clamp<Clock::duration>(2 * pause_, kFirstPause, kLongestPause);
    again_ = now + pause_;
    log_warn("the local agent has ended; it is started again", {{"how", how_it_ended(status)}});
  }
  if (pid_ > 0) return kNever;
  if (const auto left = again_ - Clock::now(); left > Clock::duration::zero()) return left;
  if (Status spawned = spawn(); !spawned) {
    log_error("no local agent", {{"error", spawned.error().message}});
    again_ = Clock::now() + kLongestPause;
    return kLongestPause;
  }
  started_ = Clock::now();
  return kNever;
}

Status LocalAgent::spawn() {
  std::vector<char*> argv;
  for (const std::string& argument : arguments_)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);  // the service blocks signals for its own use
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  // Sockets of the service must not live on in the agent: their ports would stay taken.
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addclosefrom_np(&files, 3);
  const int error = posix_spawn(&pid_, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return ok_status();
  pid_ = -1;
  return Error{ErrorCode::Unavailable, std::string("can't start the agent: ") + strerror(error)};
}

void LocalAgent::stop() {
  arguments_.clear();
  if (pid_ <= 0) return;
  kill(pid_, SIGTERM);
  for (int i = 0; i < 300; ++i) {
    if (waitpid(pid_, nullptr, WNOHANG) != 0) {
      pid_ = -1;
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace gs
