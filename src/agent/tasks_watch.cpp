// The part of Tasks that deals with supervisors: starting them, finding them again, noticing what
// they write and when they are gone.
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/cgroup.hpp"
#include "agent/clock.hpp"
#include "agent/container.hpp"
#include "agent/launch.hpp"
#include "agent/log.hpp"
#include "agent/processes.hpp"
#include "agent/tasks.hpp"

namespace gs::agent {
namespace {

int open_pidfd(int pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

}  // namespace

Status Tasks::spawn(Task& task) {
  if (Status made = make_directories(task.directory, 0711); !made.ok()) return made;
  if (Status written =
          replace_file(order_path(task.directory), to_json(task.order), Durability::Later);
      !written.ok())
    return written;
  task.watch = ::inotify_add_watch(folders_.get(), task.directory.c_str(), IN_MOVED_TO);
  by_watch_[task.watch] = task.order.allocation_id;
  const Result<int> pid = nursery_.supervisor_for(task.directory);
  if (!pid.ok()) return pid.error();
  task.supervisor_pid = *pid;
  watch_supervisor(task, Fd(open_pidfd(*pid)));
  return ok_status();
}

void Tasks::watch_supervisor(const Task& task, Fd pidfd) {
  const int fd = pidfd.get();
  if (fd < 0) {
    to_bury_.push_back(task.order.allocation_id);
    wake();
    return;
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  supervisors_[fd] = {std::move(pidfd), task.supervisor_pid, task.order.allocation_id};
  ::epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd, &event);
}

void Tasks::adopt_all() {
  if (Status made = make_directories(folder_, 0711); !made.ok())
    log_warning("{}", made.error().message);
  const std::lock_guard lock(mutex_);
  for (const std::string& name : list_directory(folder_)) adopt(folder_ + "/" + name);
}

void Tasks::adopt(const std::string& directory) {
  Result<TaskOrder> order = read_order(directory);
  if (!order.ok()) {  // the agent died before it had written what to run: nothing was started
    log_warning("{} is removed: {}", directory, order.error().message);
    remove_tree(directory);
    return;
  }
  const std::string id = order->allocation_id;
  Task& task = tasks_[id];
  task.order = std::move(*order);
  task.directory = directory;
  task.watch = ::inotify_add_watch(folders_.get(), directory.c_str(), IN_MOVED_TO);
  by_watch_[task.watch] = id;
  task.status = read_status(directory);
  if (task.status.ended()) return;
  // Its pid stands in the lock; a moment may pass between its taking and the writing.
  for (int tries = 0; tries < 200 && !try_lock(lock_path(directory)); ++tries) {
    const int pid = static_cast<int>(read_number(lock_path(directory)).value_or(0));
    Fd pidfd(pid > 1 ? open_pidfd(pid) : -1);
    // Still locked with the pidfd in hand: the pid was not another's by now.
    if (pidfd.valid() && !try_lock(lock_path(directory))) {
      task.supervisor_pid = pid;
      watch_supervisor(task, std::move(pidfd));
      log_info("found {} again, its supervisor has pid {}", id, pid);
      return;
    }
    sleep_ms(5);
  }
  to_bury_.push_back(id);
}

void Tasks::watch_loop() {
  while (true) {
    std::vector<std::string> dead;
    {
      const std::lock_guard lock(mutex_);
      if (leaving_) return;
      dead.swap(to_bury_);
    }
    bool unfinished = false;
    for (const std::string& id : dead) {
      if (bury(id)) continue;
      const std::lock_guard lock(mutex_);
      to_bury_.push_back(id);
      unfinished = true;
    }
    epoll_event events[64];
    const int count = ::epoll_wait(events_.get(), events, 64, unfinished ? 200 : -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == wake_.get()) {
        std::uint64_t ignored = 0;
        [[maybe_unused]] const ssize_t got = ::read(fd, &ignored, sizeof ignored);
      } else if (fd == folders_.get()) {
        take_folder_events();
      } else {
        supervisor_ended(fd);
      }
    }
  }
}

void Tasks::take_folder_events() {
  alignas(inotify_event) char buffer[16 * 1024];
  while (true) {
    const ssize_t size = ::read(folders_.get(), buffer, sizeof buffer);
    if (size <= 0) return;
    for (ssize_t at = 0; at < size;) {
      inotify_event event{};
      std::memcpy(&event, buffer + at, sizeof event);
      const char* name = buffer + at + sizeof event;
      at += static_cast<ssize_t>(sizeof event + event.len);
      std::string id;
      {
        const std::lock_guard lock(mutex_);
        const auto found = by_watch_.find(event.wd);
        if (event.len > 0 && found != by_watch_.end() && std::string_view(name) == "status.json")
          id = found->second;
      }
      if (!id.empty()) read_again(id);
    }
  }
}

void Tasks::read_again(const std::string& allocation_id) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = tasks_.find(allocation_id);
    if (found == tasks_.end() || found->second.directory.empty()) return;
    Task& task = found->second;
    if (task.status.ended()) return;  // an end is final
    TaskStatus now = read_status(task.directory);
    if (now.state.empty() || now.state == task.status.state) return;
    task.status = std::move(now);
  }
  changed_(allocation_id);
}

void Tasks::supervisor_ended(int pidfd) {
  std::string id;
  {
    const std::lock_guard lock(mutex_);
    const auto found = supervisors_.find(pidfd);
    if (found == supervisors_.end()) return;
    id = found->second.allocation_id;
    ::epoll_ctl(events_.get(), EPOLL_CTL_DEL, pidfd, nullptr);
    supervisors_.erase(found);
  }
  read_again(id);
  const std::lock_guard lock(mutex_);
  const auto task = tasks_.find(id);
  if (task != tasks_.end() && !task->second.status.ended()) to_bury_.push_back(id);
}

bool Tasks::bury(const std::string& allocation_id) {
  TaskOrder order;
  std::string directory;
  std::int64_t supervisor_pid = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = tasks_.find(allocation_id);
    if (found == tasks_.end() || found->second.status.ended()) return true;
    order = found->second.order;
    directory = found->second.directory;
    supervisor_pid = found->second.supervisor_pid;
  }
  // With the lock in our hand no supervisor starts late; one that wants to finds an end written.
  const std::optional<Fd> lock = try_lock(lock_path(directory));
  if (!lock) return false;
  TaskStatus status = read_status(directory);
  if (!status.ended()) {
    const bool same_boot = order.boot_id == boot_id();
    constexpr std::int64_t kPatienceMs = 2000;
    if (supervisor_pid == 0) supervisor_pid = status.supervisor_pid;
    if (same_boot && !order.image.empty() && !order.container_runtime.empty())
      run_and_wait(remove_container_command(order));
    if (same_boot && !kill_leftovers(order, status, supervisor_pid, kPatienceMs)) return false;
    remove_cgroups(status.cgroups);
    // What has not begun, or ended with the machine, is no failure of the task.
    const bool begun = !status.state.empty();
    status.state = "exited";
    status.signal = SIGKILL;
    status.lease_lost = !same_boot || !begun;
    status.finished_at_ms = wall_ms();
    status.message = !same_boot ? "the machine was restarted"
                     : begun    ? "its supervisor was killed"
                                : "the agent was killed before the task began";
    if (Status written = replace_file(status_path(directory), to_json(status), Durability::Now);
        !written.ok()) {
      log_warning("{}", written.error().message);
      return false;
    }
  }
  log_warning("{} has ended: {}", allocation_id, status.message);
  read_again(allocation_id);
  return true;
}

}  // namespace gs::agent
