// Answers requests for the output of tasks, piece by piece, some of them as it is written.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <agent.pb.h>

#include "agent/outbox.hpp"
#include "agent/tasks.hpp"

namespace gs::agent {

class LogService {
 public:
  LogService(const Tasks& tasks, Outbox& outbox);
  ~LogService();  // the outbox must be closed before
  LogService(const LogService&) = delete;
  LogService& operator=(const LogService&) = delete;

  void take(const std::string& allocation_id, const ::agent::LogRequest& request);

 private:
  struct Reading {
    std::string request_id, allocation_id, directory;
    std::int64_t offset = 0;
    bool follow = false;
    bool cancelled = false;
    bool begun = false;
  };
  enum class Progress { Sent, Nothing, Done };

  void work();
  Progress go_on(Reading& reading);

  const Tasks& tasks_;
  Outbox& outbox_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Reading> arrived_;        // guarded by mutex_
  std::vector<std::string> cancelled_;  // guarded by mutex_
  bool leaving_ = false;                // guarded by mutex_
  std::vector<Reading> readings_;       // of the thread alone
  std::thread thread_;
};

}  // namespace gs::agent
