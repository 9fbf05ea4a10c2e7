#include "agent/tasks.hpp"

#include <utility>

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "agent/clock.hpp"
#include "agent/log.hpp"

namespace gs::agent {

Tasks::Tasks(const std::string& folder, const std::string& binary,
             std::function<void(const std::string&)> changed)
    : folder_(folder + "/tasks"),
      changed_(std::move(changed)),
      logs_(folder + "/logs"),
      janitor_(logs_),
      nursery_(binary) {
  folders_.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  events_.reset(::epoll_create1(EPOLL_CLOEXEC));
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  for (const int fd : {folders_.get(), wake_.get()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    ::epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd, &event);
  }
  adopt_all();
  watcher_ = std::thread([this] { watch_loop(); });
}

Tasks::~Tasks() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  wake();
  watcher_.join();
}

void Tasks::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void Tasks::start(TaskOrder order) {
  const std::string id = order.allocation_id;
  bool tell = true;  // known already, or failed at once
  {
    const std::lock_guard lock(mutex_);
    if (!tasks_.contains(id)) {
      Task task;
      task.order = std::move(order);
      task.directory = folder_ + "/" + file_name_for(id);
      Status spawned = spawn(task);
      tell = !spawned.ok();
      if (tell) {
        task.status.state = "refused";
        task.status.finished_at_ms = wall_ms();
        task.status.message = spawned.error().message;
      }
      tasks_.emplace(id, std::move(task));
    }
  }
  if (tell) changed_(id);
  read_again(id);  // the watcher may have seen its status before the table knew the task
}

void Tasks::refuse(const TaskOrder& order, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    Task task;
    task.order = order;
    task.status.state = "refused";
    task.status.finished_at_ms = wall_ms();
    task.status.message = why;
    tasks_.emplace(order.allocation_id, std::move(task));  // unless it is known already
  }
  changed_(order.allocation_id);
}

void Tasks::stop(const std::string& allocation_id, const std::string& job_id,
                 std::int64_t grace_ms) {
  bool known = true;
  {
    const std::lock_guard lock(mutex_);
    const auto found = tasks_.find(allocation_id);
    known = found != tasks_.end();
    if (!known) {
      Task task;
      task.order.allocation_id = allocation_id;
      task.order.job_id = job_id;
      task.status.state = "exited";
      task.status.stopped = true;
      task.status.finished_at_ms = wall_ms();
      task.status.message = "this machine knows of no such task";
      tasks_.emplace(allocation_id, std::move(task));
    } else if (!found->second.status.ended()) {
      const Status written = replace_file(stop_path(found->second.directory),
                                          std::to_string(grace_ms), Durability::Later);
      if (!written.ok()) log_warning("{}", written.error().message);
      return;
    }
  }
  changed_(allocation_id);
}

void Tasks::stop_all(std::int64_t grace_ms) {
  for (const TaskView& task : all())
    if (!task.status.ended()) stop(task.allocation_id, task.job_id, grace_ms);
}

void Tasks::forget(const std::string& allocation_id) {
  std::string directory;
  {
    const std::lock_guard lock(mutex_);
    const auto found = tasks_.find(allocation_id);
    if (found == tasks_.end()) return;
    if (!found->second.status.ended()) {
      log_warning("told to forget {}, which has not ended: it stays", allocation_id);
      return;
    }
    directory = found->second.directory;
    if (found->second.watch >= 0) {
      ::inotify_rm_watch(folders_.get(), found->second.watch);
      by_watch_.erase(found->second.watch);
    }
    tasks_.erase(found);
  }
  if (!directory.empty()) janitor_.put_away(directory);
}

std::optional<TaskView> Tasks::view(const std::string& allocation_id) const {
  const std::lock_guard lock(mutex_);
  const auto found = tasks_.find(allocation_id);
  if (found == tasks_.end()) return std::nullopt;
  const Task& task = found->second;
  return TaskView{allocation_id, task.order.job_id, task.status, task.order.gpus};
}

std::vector<TaskView> Tasks::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<TaskView> views;
  for (const auto& [id, task] : tasks_)
    views.push_back({id, task.order.job_id, task.status, task.order.gpus});
  return views;
}

std::optional<std::string> Tasks::directory(const std::string& allocation_id) const {
  const std::lock_guard lock(mutex_);
  const auto found = tasks_.find(allocation_id);
  if (found != tasks_.end() && !found->second.directory.empty()) return found->second.directory;
  std::string kept = logs_ + "/" + file_name_for(allocation_id);
  if (file_exists(kept)) return kept;
  return std::nullopt;
}

int Tasks::running() const {
  const std::lock_guard lock(mutex_);
  int count = 0;
  for (const auto& [id, task] : tasks_) count += task.status.ended() ? 0 : 1;
  return count;
}

}  // namespace gs::agent
