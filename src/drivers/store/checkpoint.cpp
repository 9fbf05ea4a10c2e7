#include "drivers/store/checkpoint.hpp"

#include <utility>

namespace gs::store {

Checkpointer::Checkpointer(SqliteSession& writer, std::unique_ptr<SqliteSession> own)
    : writer_(writer), own_(std::move(own)), thread_([this] { run(); }) {
  sqlite3_wal_hook(writer_.raw(), on_commit, this);
}

Checkpointer::~Checkpointer() {
  sqlite3_wal_hook(writer_.raw(), nullptr, nullptr);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

int Checkpointer::on_commit(void* self, sqlite3* db, const char* name, int pages) {
  auto& checkpointer = *static_cast<Checkpointer*>(self);
  if (pages >= kMostPages) {
    // Fails while somebody is busy with the log; the next commit tries again.
    (void)sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_RESTART, nullptr, nullptr);
  } else if (pages >= kPages) {
    {
      const std::lock_guard lock(checkpointer.mutex_);
      checkpointer.wanted_ = true;
    }
    checkpointer.changed_.notify_one();
  }
  return SQLITE_OK;
}

void Checkpointer::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return wanted_ || stopping_; });
    if (stopping_) return;
    wanted_ = false;
    lock.unlock();
    (void)sqlite3_wal_checkpoint_v2(own_->raw(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr,
                                    nullptr);
    lock.lock();
  }
}

}  // namespace gs::store
