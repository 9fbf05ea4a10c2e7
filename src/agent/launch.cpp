#include "agent/launch.hpp"

#include <cerrno>
#include <cstdint>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gs::agent {
namespace {

enum class Step : int { Cgroup, Group, User, Directory, Parent, Output, Program };

// What the child tells, each in one write; all but Step::Cgroup end it.
struct Failure {
  Step step = Step::Program;
  int error = 0;
};

// What the child uses, made before it exists: between fork and exec nothing is allocated.
struct Prepared {
  std::vector<char*> arguments, environment;
  std::vector<std::string> assignments;
};

Prepared prepare(const Launch& what) {
  Prepared prepared;
  for (const auto& [name, value] : what.environment)
    prepared.assignments.push_back(name + "=" + value);
  for (std::string& assignment : prepared.assignments)
    prepared.environment.push_back(assignment.data());
  prepared.environment.push_back(nullptr);
  for (const std::string& argument : what.command)
    prepared.arguments.push_back(const_cast<char*>(argument.c_str()));
  prepared.arguments.push_back(nullptr);
  return prepared;
}

void default_signals() {
  sigset_t none;
  sigemptyset(&none);
  for (const int number : {SIGPIPE, SIGTERM, SIGINT, SIGHUP, SIGCHLD}) ::signal(number, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void tell(int report, Step step) {
  const Failure failure{step, errno};
  [[maybe_unused]] const ssize_t told = ::write(report, &failure, sizeof failure);
}

[[noreturn]] void fail(int report, Step step) {
  tell(report, step);
  ::_exit(127);
}

// The agent may be protected from running out of memory; a task is not.
void stop_being_spared() {
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(fd, "0", 1);
  ::close(fd);
}

[[noreturn]] void become(const Launch& what, const Prepared& prepared, int report, int parent,
                         bool in_unified) {
  if (what.cgroup != nullptr && !what.cgroup->join_from_child(in_unified))
    tell(report, Step::Cgroup);
  stop_being_spared();
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (::dup2(nothing, 0) < 0 || ::dup2(what.output, 1) < 0 || ::dup2(what.output, 2) < 0)
    fail(report, Step::Output);
  if (what.identity.change) {
    // Straight to the kernel: the C library would wait for threads that were not forked with us.
    const Identity& who = what.identity;
    if (::syscall(SYS_setgroups, who.groups.size(), who.groups.data()) != 0 ||
        ::syscall(SYS_setgid, who.gid) != 0)
      fail(report, Step::Group);
    if (::syscall(SYS_setuid, who.uid) != 0) fail(report, Step::User);
  }
  // After the change of user, which would clear it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) fail(report, Step::Parent);
  if (::chdir(what.working_dir.c_str()) != 0) fail(report, Step::Directory);
  default_signals();
  ::environ = const_cast<char**>(prepared.environment.data());
  ::execvp(prepared.arguments[0], prepared.arguments.data());
  fail(report, Step::Program);
}

// fork(), or where the kernel can: a fork that begins inside the cgroup, which takes microseconds
// where moving there takes up to ten milliseconds.
int fork_into(int cgroup_fd, bool& in_unified) {
  in_unified = false;
  if (cgroup_fd >= 0) {
    clone_args arguments{};
    arguments.flags = CLONE_INTO_CGROUP;
    arguments.exit_signal = SIGCHLD;
    arguments.cgroup = static_cast<std::uint64_t>(cgroup_fd);
    in_unified = true;
    const long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
    if (pid >= 0) return static_cast<int>(pid);
    in_unified = false;
  }
  return ::fork();
}

std::string describe(const Failure& failure, const Launch& what) {
  const std::string why = errno_text(failure.error);
  switch (failure.step) {
    case Step::Group:
    case Step::User:
      return fmt::format("cannot become user {}: {}", what.identity.name, why);
    case Step::Directory:
      return fmt::format("cannot enter the working directory {}: {}", what.working_dir, why);
    case Step::Parent:
      return "the supervisor ended while the task was starting";
    case Step::Output:
      return fmt::format("cannot connect the output: {}", why);
    case Step::Cgroup:
    case Step::Program:
      break;
  }
  return fmt::format("cannot run {}: {}", what.command[0], why);
}

}  // namespace

Result<Launched> launch(const Launch& what) {
  if (what.command.empty()) return invalid("the task has neither a command nor a script");
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return Error{ErrorCode::Internal, "cannot make a pipe: " + errno_text(errno)};
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  const Prepared prepared = prepare(what);
  const int parent = ::getpid();
  bool in_unified = false;
  const int pid = fork_into(what.cgroup == nullptr ? -1 : what.cgroup->unified_fd(), in_unified);
  if (pid < 0) return Error{ErrorCode::Internal, "cannot start a process: " + errno_text(errno)};
  if (pid == 0) become(what, prepared, writing.get(), parent, in_unified);

  writing.reset();
  Launched launched{pid, true};
  while (true) {  // its end closes at exec
    Failure failure;
    const ssize_t count = ::read(reading.get(), &failure, sizeof failure);
    if (count < 0 && errno == EINTR) continue;
    if (count < static_cast<ssize_t>(sizeof failure)) return launched;
    if (failure.step == Step::Cgroup) {
      launched.in_cgroup = false;
      continue;
    }
    ::waitpid(pid, nullptr, 0);
    return Error{ErrorCode::InvalidArgument, describe(failure, what)};
  }
}

int run_and_wait(const std::vector<std::string>& command) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int fd : {0, 1, 2})
    posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error =
      ::posix_spawnp(&pid, arguments[0], &files, &attributes, arguments.data(), ::environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return -1;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace gs::agent
