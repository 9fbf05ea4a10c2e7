#include "agent/janitor.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

#include "agent/files.hpp"
#include "agent/log.hpp"

namespace gs::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOutput = "log.";  // what the output's files are called begins so

struct Kept {
  fs::file_time_type time;
  std::int64_t bytes = 0;
  std::string path;
};

Kept look_at(const std::string& directory) {
  Kept kept;
  kept.path = directory;
  std::error_code ignored;
  kept.time = fs::last_write_time(directory, ignored);
  for (const std::string& name : list_directory(directory)) {
    const auto size = fs::file_size(directory + "/" + name, ignored);
    if (!ignored) kept.bytes += static_cast<std::int64_t>(size);
  }
  return kept;
}

}  // namespace

Janitor::Janitor(std::string kept, KeptLogs bounds) : kept_(std::move(kept)), bounds_(bounds) {
  if (Status made = make_directories(kept_, 0700); !made.ok())
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

void Janitor::put_away(const std::string& directory) {
  const std::string target = kept_ + "/" + fs::path(directory).filename().string();
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

void Janitor::strip(const std::string& directory) const {
  for (const std::string& name : list_directory(directory))
    if (!name.starts_with(kOutput)) remove_tree(directory + "/" + name);
}

void Janitor::forget_oldest() const {
  std::vector<Kept> all;
  std::int64_t bytes = 0;
  for (const std::string& name : list_directory(kept_)) {
    strip(kept_ + "/" + name);
    all.push_back(look_at(kept_ + "/" + name));
    bytes += all.back().bytes;
  }
  std::sort(all.begin(), all.end(), [](const Kept& a, const Kept& b) {
    return std::pair(a.time, a.path) < std::pair(b.time, b.path);
  });
  const auto oldest = fs::file_time_type::clock::now() - std::chrono::hours(24 * bounds_.days);
  std::size_t left = all.size();
  for (const Kept& kept : all) {
    if (left <= bounds_.tasks && bytes <= bounds_.bytes && kept.time >= oldest) break;
    remove_tree(kept.path);
    bytes -= kept.bytes;
    --left;
  }
}

void Janitor::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return waiting_ || leaving_; });
    if (!waiting_) return;
    waiting_ = false;
    lock.unlock();
    forget_oldest();
    lock.lock();
    // Once a second is often enough for many tasks that end together.
    wake_.wait_for(lock, std::chrono::seconds(1), [this] { return leaving_; });
  }
}

}  // namespace gs::agent
