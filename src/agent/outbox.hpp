// What waits to be sent up the stream of orders: reports of tasks, and pieces of logs.
//
// A report is kept as the task's id; what is sent is how the task is at that moment. So reports
// are never out of order, and a task that changes quickly costs one message.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include <agent.pb.h>

namespace gs::agent {

class Outbox {
 public:
  using Item = std::variant<std::string, ::agent::LogChunk>;  // a task's id, or a piece

  void open();   // for a new connection: empty
  void close();  // wakes everybody who waits

  void report(const std::string& allocation_id);
  // Waits while too many pieces are under way; false: closed.
  bool send_log(::agent::LogChunk chunk);
  // Reports come before pieces of logs. nullopt: closed.
  std::optional<Item> next();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> reports_;
  std::set<std::string> waiting_;  // the same ids
  std::deque<::agent::LogChunk> chunks_;
  bool open_ = false;
};

}  // namespace gs::agent
