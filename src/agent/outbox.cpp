#include "agent/outbox.hpp"

#include <utility>

namespace gs::agent {
namespace {

constexpr std::size_t kMaxChunks = 16;

}  // namespace

void Outbox::open() {
  const std::lock_guard lock(mutex_);
  reports_.clear();
  waiting_.clear();
  chunks_.clear();
  open_ = true;
}

void Outbox::close() {
  const std::lock_guard lock(mutex_);
  open_ = false;
  changed_.notify_all();
}

void Outbox::report(const std::string& allocation_id) {
  const std::lock_guard lock(mutex_);
  if (!open_ || !waiting_.insert(allocation_id).second) return;
  reports_.push_back(allocation_id);
  changed_.notify_all();
}

bool Outbox::send_log(::agent::LogChunk chunk) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !open_ || chunks_.size() < kMaxChunks; });
  if (!open_) return false;
  chunks_.push_back(std::move(chunk));
  changed_.notify_all();
  return true;
}

std::optional<Outbox::Item> Outbox::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !open_ || !reports_.empty() || !chunks_.empty(); });
  if (!open_) return std::nullopt;
  if (!reports_.empty()) {
    std::string id = std::move(reports_.front());
    reports_.pop_front();
    waiting_.erase(id);
    return Item(std::move(id));
  }
  ::agent::LogChunk chunk = std::move(chunks_.front());
  chunks_.pop_front();
  changed_.notify_all();
  return Item(std::move(chunk));
}

}  // namespace gs::agent
