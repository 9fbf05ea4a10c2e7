// Moves what commits have left in the write-ahead log of a SQLite database into its file, on a
// thread of its own: a commit costs its own sync and no more. Only a log that outgrows kMostPages,
// because somebody reads or writes without pause, is waited for by the writer.
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
  static constexpr int kMostPages = 64'000;

  static int on_commit(void* self, sqlite3* db, const char* name, int pages);
  void run();

  SqliteSession& writer_;
  std::unique_ptr<SqliteSession> own_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool wanted_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace gs::store
