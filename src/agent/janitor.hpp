// Removes directories in the background: they may be large, and orders must not wait for that.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace gs::agent {

class Janitor {
 public:
  explicit Janitor(std::string trash);  // what is left in there from before is removed too
  ~Janitor();
  Janitor(const Janitor&) = delete;
  Janitor& operator=(const Janitor&) = delete;

  // Gone from its place when this returns.
  void remove(const std::string& directory);

 private:
  void work();

  std::string trash_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool waiting_ = true;   // there is something in the trash; guarded by mutex_
  bool leaving_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace gs::agent
