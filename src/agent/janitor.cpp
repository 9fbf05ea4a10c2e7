#include "agent/janitor.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <tuple>
#include <utility>
#include <vector>

#include "agent/files.hpp"
#include "agent/log.hpp"

namespace gs::agent {
namespace {

namespace fs = std::filesystem;

// Looking through all that is kept costs something: not after each task.
constexpr std::size_t kManyFresh = 500;
constexpr std::chrono::seconds kLook{30};

struct Ended {
  fs::file_time_type time;
  std::string path;
  std::int64_t bytes = 0;
};

std::int64_t size_of(const std::string& directory) {
  std::int64_t bytes = 0;
  for (const std::string& name : list_directory(directory)) {
    std::error_code error;
    const auto size = fs::file_size(directory + "/" + name, error);
    if (!error) bytes += static_cast<std::int64_t>(size);
  }
  return bytes;
}

}  // namespace

Janitor::Janitor(const std::string& folder, KeptLogs limits)
    : ended_(folder + "/ended"), trash_(folder + "/trash"), limits_(limits) {
  for (const std::string& one : {ended_, trash_})
    if (Status made = make_directories(one, 0700); !made.ok())
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

void Janitor::take(const std::string& directory) {
  const std::string& where = limits_.bytes > 0 ? ended_ : trash_;
  const std::string target = where + "/" + fs::path(directory).filename().string();
  if (std::rename(directory.c_str(), target.c_str()) != 0) {
    remove_tree(directory);
    return;
  }
  const std::lock_guard lock(mutex_);
  ++fresh_;
  if (where == trash_ || fresh_ >= kManyFresh) wake_.notify_all();
}

std::optional<std::string> Janitor::kept(const std::string& name) const {
  std::string path = ended_ + "/" + name;
  if (!file_exists(path)) return std::nullopt;
  return path;
}

void Janitor::trim() const {
  std::vector<Ended> all;
  std::int64_t bytes = 0;
  for (const std::string& name : list_directory(ended_)) {
    Ended one{{}, ended_ + "/" + name, 0};
    std::error_code error;
    one.time = fs::last_write_time(one.path, error);
    if (error) continue;
    one.bytes = size_of(one.path);
    bytes += one.bytes;
    all.push_back(std::move(one));
  }
  std::sort(all.begin(), all.end(), [](const Ended& a, const Ended& b) {
    return std::tie(a.time, a.path) < std::tie(b.time, b.path);
  });
  std::size_t left = all.size();
  for (const Ended& one : all) {
    if (bytes <= limits_.bytes && left <= limits_.tasks) break;
    remove_tree(one.path);
    bytes -= one.bytes;
    --left;
  }
}

void Janitor::work() {
  std::unique_lock lock(mutex_);
  while (!leaving_) {
    if (fresh_ > 0) {
      fresh_ = 0;
      lock.unlock();
      for (const std::string& name : list_directory(trash_)) remove_tree(trash_ + "/" + name);
      trim();
      lock.lock();
    }
    const auto soon = [this] {
      return leaving_ || fresh_ >= kManyFresh || (fresh_ > 0 && limits_.bytes == 0);
    };
    wake_.wait_for(lock, kLook, soon);
  }
}

}  // namespace gs::agent
