// Where supervisors come from.
//
// Starting our program anew for each takes milliseconds: a large binary, relocated and
// initialised. So one process is started in advance (`run-task -`) which forks a supervisor for
// every directory it is sent; it has one thread and little memory, so a fork is cheap. It ends
// with the agent; the supervisors that it has made don't.
#pragma once

#include <mutex>
#include <string>

#include "agent/files.hpp"
#include "base/result.hpp"

namespace gs::agent {

class Nursery {
 public:
  explicit Nursery(std::string binary);
  ~Nursery();
  Nursery(const Nursery&) = delete;
  Nursery& operator=(const Nursery&) = delete;

  // A supervisor for the task in this directory: its pid, valid until the next call at least.
  Result<int> supervisor_for(const std::string& directory);

 private:
  Status open();
  void close();

  std::string binary_;
  std::mutex mutex_;
  Fd socket_;    // guarded by mutex_
  int pid_ = 0;  // guarded by mutex_
};

// The other end: serves the socket that is its standard input until that closes.
int run_nursery();

}  // namespace gs::agent
