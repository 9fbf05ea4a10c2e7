// Moves what commits have left in the write-ahead log of a SQLite database into its file, on a
// thread of its own: a commit costs its own sync and little more.
//
// The log begins anew only when all of it has been moved, which nobody else can do while the writer
// adds to it. So when little is left the writer moves that itself. A log that stays short is
// written over again and again; one that grows costs every sync the file's new length too, about
// half as much again. Only one that outgrows kMostPages, because somebody reads without pause, is
// waited for.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "drivers/store/sqlite.hpp"

namespace gs::store {

class Checkpointer {
 public:
  // Watches the commits of `writer` and uses a connection of its own.
  Checkpointer(SqliteSession& writer, std::unique_ptr<SqliteSession> own);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

 private:
  static constexpr int kPages = 4'000;
  static constexpr int kFewPages = 1'000;
  static constexpr int kMostPages = 64'000;

  static int on_commit(void* self, sqlite3* db, const char* name, int pages);
  void run();
  // True: so little is left that the writer may move it. False: the thread is at it.
  bool nearly_done(int pages);

  SqliteSession& writer_;
  std::unique_ptr<SqliteSession> own_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool wanted_ = false;
  int moved_ = 0;  // pages of the log that were in the file after the last round
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace gs::store
