#include "agent/supervisor.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/cgroup.hpp"
#include "agent/clock.hpp"
#include "agent/container.hpp"
#include "agent/files.hpp"
#include "agent/launch.hpp"
#include "agent/lease.hpp"
#include "agent/nursery.hpp"
#include "agent/processes.hpp"
#include "agent/task_command.hpp"
#include "agent/task_files.hpp"
#include "agent/task_log.hpp"

namespace gs::agent {
namespace {

// How often we look at the lease again while it holds: its duration may have been changed.
constexpr std::int64_t kLeaseLookMs = 2000;
// How long a container's own helpers have for tidying up after its end.
constexpr std::int64_t kContainerTidyMs = 3000;

class Supervisor {
 public:
  Supervisor(std::string directory, TaskOrder order)
      : directory_(std::move(directory)),
        order_(std::move(order)),
        in_container_(!order_.image.empty() && !order_.container_runtime.empty()),
        log_(directory_, order_.log_bytes, order_.log_files) {}

  int run() {
    listen();
    if (Status started = start(); !started.ok()) {
      refuse(started.error().message);
      return 0;
    }
    write_status();
    look_for_stop();
    while (!task_ended_) wait_once();
    kill_what_is_left();
    finish();
    return 0;
  }

 private:
  void listen() {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // whoever the task leaves behind becomes our child
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, number);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    signals_.reset(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    folder_.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    ::inotify_add_watch(folder_.get(), directory_.c_str(), IN_MOVED_TO);
  }

  Status start() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) return Error{ErrorCode::Internal, errno_text(errno)};
    output_.reset(ends[0]);
    const Fd writing(ends[1]);
    ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
    if (!in_container_) {
      const CgroupLimits limits{order_.cpu_milli, order_.memory_mb};
      cgroup_ = Cgroup::create(order_.cgroup_root, file_name_for(order_.allocation_id), limits);
    }
    Result<Launch> what = task_launch(directory_, order_, in_container_);
    if (!what.ok()) return what.error();
    what->output = writing.get();
    what->cgroup = &cgroup_;
    const Result<Launched> launched = launch(*what);
    if (!launched.ok()) return launched.error();
    status_.state = "running";
    status_.pid = launched->pid;
    status_.supervisor_pid = ::getpid();
    status_.started_at_ms = wall_ms();
    status_.cgroups = cgroup_.paths();
    status_.message = order_.note;
    if (!cgroup_.missing().empty()) add_message("without cgroup: " + cgroup_.missing());
    if (!launched->in_cgroup) add_message("the task could not be moved into its cgroup");
    started_ms_ = boottime_ms();
    return ok_status();
  }

  void wait_once() {
    std::array<pollfd, 3> fds{pollfd{signals_.get(), POLLIN, 0}, pollfd{folder_.get(), POLLIN, 0},
                              pollfd{output_.get(), POLLIN, 0}};
    const int timeout = static_cast<int>(std::clamp<std::int64_t>(next_wake_ms(), 0, 60'000));
    ::poll(fds.data(), output_.valid() ? 3 : 2, timeout);
    if (output_.valid() && fds[2].revents != 0) copy_output();
    if (fds[1].revents != 0) {
      drain(folder_.get());
      look_for_stop();
    }
    take_signals();
    look_at_the_clock();
  }

  std::int64_t next_wake_ms() const {
    const std::int64_t now = boottime_ms();
    std::int64_t wake = 60'000;
    if (order_.max_runtime_ms > 0 && !stopping_)
      wake = std::min(wake, started_ms_ + order_.max_runtime_ms - now);
    if (const auto left = lease_left()) wake = std::min(wake, std::min(*left, kLeaseLookMs));
    if (kill_at_ms_) wake = std::min(wake, *kill_at_ms_ - now);
    return wake;
  }

  std::optional<std::int64_t> lease_left() const {
    if (order_.lease_file.empty() || lease_over_) return std::nullopt;
    const auto lease = read_lease(order_.lease_file);
    if (!lease) return std::nullopt;
    return lease_left_ms(*lease, boottime_ms());
  }

  void look_at_the_clock() {
    const std::int64_t now = boottime_ms();
    if (order_.max_runtime_ms > 0 && !stopping_ && now >= started_ms_ + order_.max_runtime_ms) {
      status_.timed_out = true;
      stop(order_.grace_ms);
    }
    if (const auto left = lease_left(); left && *left <= 0) {
      lease_over_ = true;
      if (!stopping_) status_.lease_lost = true;
      stop(std::min(order_.grace_ms, kLeaseGraceMs));
    }
    if (kill_at_ms_ && now >= *kill_at_ms_) {
      kill_everything();
      kill_at_ms_ = now + 1000;  // once more, should anything have been born meanwhile
    }
  }

  void look_for_stop() {
    if (!file_exists(stop_path(directory_))) return;
    if (!stopping_) status_.stopped = true;
    stop(read_number(stop_path(directory_)).value_or(order_.grace_ms));
  }

  // Asks the task to end; a second request can only make the end come sooner.
  void stop(std::int64_t grace_ms) {
    const std::int64_t kill_at = boottime_ms() + std::max<std::int64_t>(grace_ms, 0);
    kill_at_ms_ = kill_at_ms_ ? std::min(*kill_at_ms_, kill_at) : kill_at;
    if (!stopping_) signal_group(SIGTERM);
    stopping_ = true;
  }

  // Of the task. A number that is no process would mean other groups, or everybody.
  void signal_group(int signal) const {
    if (status_.pid > 1) ::kill(static_cast<pid_t>(-status_.pid), signal);
  }

  void kill_everything() {
    if (in_container_) run_and_wait(remove_container_command(order_));
    kill_cgroups(cgroup_.paths());
    signal_group(SIGKILL);
    for (const int pid : descendants(::getpid())) ::kill(pid, SIGKILL);
  }

  void take_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      if (info.ssi_signo == SIGCHLD) continue;
      if (!stopping_) status_.stopped = true;
      stop(order_.grace_ms);
    }
    reap();
  }

  // True as long as there are children.
  bool reap() {
    while (true) {
      int how = 0;
      const pid_t pid = ::waitpid(-1, &how, WNOHANG);
      if (pid < 0) return errno != ECHILD;
      if (pid == 0) return true;
      if (pid == status_.pid) {
        task_ended_ = true;
        if (WIFEXITED(how)) status_.exit_code = WEXITSTATUS(how);
        if (WIFSIGNALED(how)) status_.signal = WTERMSIG(how);
      }
    }
  }

  void copy_output() {
    char buffer[64 * 1024];
    // A bounded number of pieces: a task that writes without end must not keep us from its stop.
    for (int piece = 0; piece < 16; ++piece) {
      const ssize_t count = ::read(output_.get(), buffer, sizeof buffer);
      if (count == 0) output_.reset();
      if (count <= 0) return;
      log_.append({buffer, static_cast<std::size_t>(count)});
    }
  }

  static void drain(int fd) {
    char buffer[4096];
    while (::read(fd, buffer, sizeof buffer) > 0) {
    }
  }

  // The main process has ended. Nobody it has started may go on, and we don't say that the task
  // has ended before that is so, however long it takes.
  void kill_what_is_left() {
    const std::int64_t patience_end = boottime_ms() + (in_container_ ? kContainerTidyMs : 0);
    std::int64_t pause_ms = 1;
    while (reap() || !processes_in(cgroup_.paths()).empty()) {
      if (boottime_ms() >= patience_end) kill_everything();
      if (output_.valid()) copy_output();
      sleep_ms(pause_ms);
      pause_ms = std::min<std::int64_t>(pause_ms * 2, 100);
    }
    if (in_container_ && stopping_) run_and_wait(remove_container_command(order_));
  }

  void finish() {
    if (output_.valid()) copy_output();
    const bool failed = status_.signal != 0 || status_.exit_code != 0;
    if (failed && cgroup_.out_of_memory_kills() > 0) {
      status_.out_of_memory = true;
      add_message(
          fmt::format("killed: it needed more than its {} MiB of memory", order_.memory_mb));
    }
    if (in_container_ && status_.exit_code == 125)
      add_message(order_.container_runtime + " could not start the container; see the log");
    remove_cgroups(cgroup_.paths());
    status_.state = "exited";
    status_.finished_at_ms = wall_ms();
    write_status();
  }

  void refuse(const std::string& why) {
    remove_cgroups(cgroup_.paths());
    status_.state = "refused";
    status_.finished_at_ms = wall_ms();
    add_message(why);
    write_status();
  }

  void add_message(const std::string& text) {
    if (!status_.message.empty()) status_.message += "; ";
    status_.message += text;
  }

  // The agent sees it at once; an end then reaches the disk. (That a task runs need not: when the
  // machine goes down it runs no more.) An end that can't be written down, for the disk is full,
  // is tried again for ever: our silence must not be taken for one. Where the folder itself is
  // gone, nobody can ask any more.
  void write_status() {
    while (!replace_file(status_path(directory_), to_json(status_), Durability::Later).ok() &&
           status_.ended() && file_exists(directory_))
      sleep_ms(1000);
    if (status_.ended()) flush_file(status_path(directory_));
  }

  std::string directory_;
  TaskOrder order_;
  bool in_container_;
  TaskLogWriter log_;
  Cgroup cgroup_;
  TaskStatus status_;
  Fd signals_, folder_, output_;
  std::int64_t started_ms_ = 0;
  bool task_ended_ = false, stopping_ = false, lease_over_ = false;
  std::optional<std::int64_t> kill_at_ms_;
};

// A session of our own: signals for the terminal or the service of the agent don't reach us.
void leave_session() {
  if (::getsid(0) == ::getpid() || ::setsid() >= 0) return;
  if (::fork() != 0) ::_exit(0);
  ::setsid();
}

}  // namespace

int run_task(const std::string& directory) {
  ::close_range(3, ~0U, 0);
  leave_session();
  ::umask(022);
  const std::optional<Fd> lock = try_lock(lock_path(directory));
  if (!lock) {
    fmt::print(stderr, "run-task: {} is supervised already, or cannot be locked\n", directory);
    return 4;
  }
  // Whoever had the lock before us and wrote an end down has spoken for this task.
  if (read_status(directory).ended()) return 0;
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(lock->get(), 0) != 0 ||
      ::pwrite(lock->get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()))
    fmt::print(stderr, "run-task: cannot write {}\n", lock_path(directory));
  Result<TaskOrder> order = read_order(directory);
  if (!order.ok()) {
    fmt::print(stderr, "run-task: {}\n", order.error().message);
    return 2;
  }
  return Supervisor(directory, std::move(*order)).run();
}

}  // namespace gs::agent

namespace gs {

void add_run_task(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("run-task", "Supervise one task (started by the agent)");
  command->group("");  // not shown: it is no command for people
  auto directory = std::make_shared<std::string>();
  command
      ->add_option("DIR", *directory,
                   "The directory of the task; -: many, from a socket that is stdin")
      ->required();
  command->callback([directory, &exit_code] {
    exit_code = *directory == "-" ? agent::run_nursery() : agent::run_task(*directory);
  });
}

}  // namespace gs
