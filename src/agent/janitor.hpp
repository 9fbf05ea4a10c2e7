// Puts away what is left of tasks that have ended: their output is kept for a while, everything
// else is removed, in the background: it may be large, and orders must not wait for that.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace gs::agent {

struct KeptLogs {
  std::size_t tasks = 2000;
  std::int64_t bytes = 2LL << 30;
  std::int64_t days = 7;
};

class Janitor {
 public:
  // `kept` is where the output goes; what was left half done there is finished first.
  explicit Janitor(std::string kept, KeptLogs bounds = {});
  ~Janitor();
  Janitor(const Janitor&) = delete;
  Janitor& operator=(const Janitor&) = delete;

  // Gone from its place when this returns.
  void put_away(const std::string& directory);

 private:
  void work();
  void strip(const std::string& directory) const;  // leaves the output alone
  void forget_oldest() const;

  std::string kept_;
  KeptLogs bounds_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool waiting_ = true;   // there is something to do; guarded by mutex_
  bool leaving_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace gs::agent
