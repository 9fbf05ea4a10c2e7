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
  } else if (pages >= kPages && checkpointer.nearly_done(pages)) {
    (void)sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  }
  return SQLITE_OK;
}

bool Checkpointer::nearly_done(int pages) {
  {
    const std::lock_guard lock(mutex_);
    if (wanted_) return false;  // it is being moved
    if (moved_ > 0 && moved_ <= pages && pages - moved_ <= kFewPages) {
      moved_ = 0;
      return true;
    }
    wanted_ = true;
  }
  changed_.notify_one();
  return false;
}

void Checkpointer::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return wanted_ || stopping_; });
    if (stopping_) return;
    lock.unlock();
    int moved = 0;
    (void)sqlite3_wal_checkpoint_v2(own_->raw(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr,
                                    &moved);
    lock.lock();
    moved_ = moved;
    wanted_ = false;
  }
}

}  // namespace gs::store
