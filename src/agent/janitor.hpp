// Directories of tasks that have been forgotten: their logs are kept for a while, the oldest go
// first; and removing is done in the background, for it may be slow and orders must not wait.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace gs::agent {

struct KeptLogs {
  std::int64_t bytes = 0;  // all together; 0: nothing is kept
  std::size_t tasks = 10'000;
};

class Janitor {
 public:
  // `folder` gets `ended`, with what is kept, and `trash`, which is emptied.
  Janitor(const std::string& folder, KeptLogs limits);
  ~Janitor();
  Janitor(const Janitor&) = delete;
  Janitor& operator=(const Janitor&) = delete;

  // Gone from its place when this returns.
  void take(const std::string& directory);
  // Where the directory of this name is kept.
  std::optional<std::string> kept(const std::string& name) const;

 private:
  void work();
  void trim() const;

  std::string ended_, trash_;
  KeptLogs limits_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::size_t fresh_ = 1;  // taken since we looked last; guarded by mutex_
  bool leaving_ = false;   // guarded by mutex_
  std::thread thread_;
};

}  // namespace gs::agent
