// All tasks of this machine that the scheduler may still ask about, each with its directory and
// its supervisor. What the table says survives the agent: it is read again from the directories.
//
// Orders are idempotent: an allocation's id names one try of one task, and doing an order twice is
// doing it once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "agent/files.hpp"
#include "agent/janitor.hpp"
#include "agent/nursery.hpp"
#include "agent/task_files.hpp"

namespace gs::agent {

struct TaskView {
  std::string allocation_id, job_id;
  TaskStatus status;
  std::vector<int> gpus;
};

class Tasks {
 public:
  // `folder`: gets `tasks`, with one directory each, and `logs` for
  // the output of those that are forgotten.
  // `binary`: the program whose `run-task` is the supervisor. `changed`: called from any thread
  // when there is something new to report of a task.
  Tasks(const std::string& folder, const std::string& binary,
        std::function<void(const std::string&)> changed);
  ~Tasks();  // tasks go on
  Tasks(const Tasks&) = delete;
  Tasks& operator=(const Tasks&) = delete;

  void start(TaskOrder order);
  // A task that could not even be tried.
  void refuse(const TaskOrder& order, const std::string& why);
  void stop(const std::string& allocation_id, const std::string& job_id, std::int64_t grace_ms);
  void forget(const std::string& allocation_id);
  void stop_all(std::int64_t grace_ms);

  std::optional<TaskView> view(const std::string& allocation_id) const;
  std::vector<TaskView> all() const;  // in the order of their ids
  std::optional<std::string> directory(const std::string& allocation_id) const;
  int running() const;

 private:
  struct Task {
    TaskOrder order;
    std::string directory;  // empty: it has none, for nothing was started
    TaskStatus status;
    int supervisor_pid = 0;
    int watch = -1;  // of its directory
  };

  struct Supervisor {
    Fd pidfd;
    int pid = 0;
    std::string allocation_id;  // of its task, which may have been forgotten since
  };

  void adopt_all();
  void adopt(const std::string& directory);
  Status spawn(Task& task);
  void watch_supervisor(const Task& task, Fd pidfd);
  void watch_loop();
  void take_folder_events();
  void read_again(const std::string& allocation_id);
  void supervisor_ended(int pidfd);
  // Ends what a dead supervisor has left and writes the task's end in its place. False: not yet.
  bool bury(const std::string& allocation_id);
  void wake();

  std::string folder_;
  std::function<void(const std::string&)> changed_;
  mutable std::mutex mutex_;
  std::map<std::string, Task> tasks_;      // guarded by mutex_
  std::map<int, std::string> by_watch_;    // guarded by mutex_
  std::map<int, Supervisor> supervisors_;  // those that live, by pidfd; guarded by mutex_
  std::vector<std::string> to_bury_;       // guarded by mutex_
  bool leaving_ = false;                   // guarded by mutex_
  Fd folders_, events_, wake_;
  std::string logs_;  // output of tasks that are forgotten
  Janitor janitor_;
  Nursery nursery_;
  std::thread watcher_;
};

}  // namespace gs::agent
