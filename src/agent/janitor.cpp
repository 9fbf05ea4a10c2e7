#include "agent/janitor.hpp"

#include <cstdio>
#include <filesystem>
#include <utility>

#include "agent/files.hpp"
#include "agent/log.hpp"

namespace gs::agent {

Janitor::Janitor(std::string trash) : trash_(std::move(trash)) {
  if (Status made = make_directories(trash_, 0700); !made.ok())
    log_warning("{}", made.error().message);
  thread_ = std::thread([this] { work(); });
}

Janitor::~Janitor() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Janitor::remove(const std::string& directory) {
  const std::string target = trash_ + "/" + std::filesystem::path(directory).filename().string();
  if (std::rename(directory.c_str(), target.c_str()) != 0) {
    remove_tree(directory);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    waiting_ = true;
  }
  wake_.notify_all();
}

void Janitor::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return waiting_ || leaving_; });
    if (!waiting_) return;
    waiting_ = false;
    lock.unlock();
    for (const std::string& name : list_directory(trash_)) remove_tree(trash_ + "/" + name);
    lock.lock();
  }
}

}  // namespace gs::agent
