#include "agent/nursery.hpp"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/log.hpp"
#include "agent/supervisor.hpp"

namespace gs::agent {

Nursery::Nursery(std::string binary) : binary_(std::move(binary)) {
  const std::lock_guard lock(mutex_);
  if (Status opened = open(); !opened.ok()) log_warning("{}", opened.error().message);
}

Nursery::~Nursery() {
  const std::lock_guard lock(mutex_);
  close();
}

void Nursery::close() {
  socket_.reset();
  if (pid_ > 0) ::waitpid(pid_, nullptr, 0);  // it ends when the socket closes
  pid_ = 0;
}

// By spawn, not fork: the agent has threads, and much memory that a fork would have to map.
Status Nursery::open() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return Error{ErrorCode::Internal, "cannot make a socket: " + errno_text(errno)};
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, theirs.get(), 0);
  std::string arguments[] = {"gpu-scheduler", "run-task", "-"};
  char* pointers[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(), nullptr};
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, binary_.c_str(), &files, &attributes, pointers, ::environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0)
    return Error{ErrorCode::Internal,
                 fmt::format("cannot start {} run-task: {}", binary_, errno_text(error))};
  socket_ = std::move(ours);
  pid_ = pid;
  return ok_status();
}

Result<int> Nursery::supervisor_for(const std::string& directory) {
  const std::lock_guard lock(mutex_);
  for (int tries = 0; tries < 2; ++tries) {
    if (!socket_.valid())
      if (Status opened = open(); !opened.ok()) return opened.error();
    int pid = 0;
    const auto sent = ::send(socket_.get(), directory.data(), directory.size(), MSG_NOSIGNAL);
    if (sent == static_cast<ssize_t>(directory.size())) {
      ssize_t got = 0;
      while ((got = ::recv(socket_.get(), &pid, sizeof pid, 0)) < 0 && errno == EINTR) {
      }
      if (got == sizeof pid && pid > 0) return pid;
      if (got == sizeof pid)
        return Error{ErrorCode::Internal, "cannot make a process: " + errno_text(-pid)};
    }
    // It was killed. If it had made a supervisor before, that one holds the task's lock, and a
    // second finds it held and leaves.
    close();
  }
  return Error{ErrorCode::Internal, "the process that makes supervisors does not answer"};
}

namespace {

[[noreturn]] void be_supervisor(const std::string& directory) {
  const int nothing = ::open("/dev/null", O_RDONLY);
  const std::string output = directory + "/supervisor.log";
  const int log = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(nothing, 0);
  ::dup2(log, 1);
  ::dup2(log, 2);
  ::_exit(run_task(directory));
}

}  // namespace

int run_nursery() {
  // Looking a user up loads modules of the C library: once here, not in each supervisor.
  (void)::getpwnam("nobody");  // NOLINT(concurrency-mt-unsafe): one thread
  constexpr timeval kPause{1, 0};
  ::setsockopt(0, SOL_SOCKET, SO_RCVTIMEO, &kPause, sizeof kPause);
  char buffer[4096];
  while (true) {
    const ssize_t size = ::recv(0, buffer, sizeof buffer, 0);
    const int error = errno;
    // Those that have ended: the agent has taken hold of each by now, or has seen its end.
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (size < 0 && (error == EINTR || error == EAGAIN)) continue;
    if (size <= 0) return 0;
    const std::string directory(buffer, static_cast<std::size_t>(size));
    int pid = ::fork();
    if (pid == 0) be_supervisor(directory);
    if (pid < 0) pid = -errno;
    if (::send(0, &pid, sizeof pid, MSG_NOSIGNAL) != sizeof pid) return 1;
  }
}

}  // namespace gs::agent
