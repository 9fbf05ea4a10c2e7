#include "agent/task_log.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gs::agent {
namespace {

constexpr std::string_view kPrefix = "log.";

struct LogFile {
  std::int64_t start = 0;
  std::string path;
};

// Oldest first.
std::vector<LogFile> log_files(const std::string& directory) {
  std::vector<LogFile> files;
  for (const std::string& name : list_directory(directory)) {
    if (!name.starts_with(kPrefix)) continue;
    std::int64_t start = 0;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + kPrefix.size(), end, start);
    if (parsed.ec == std::errc{} && parsed.ptr == end)
      files.push_back({start, directory + "/" + name});
  }
  std::sort(files.begin(), files.end(),
            [](const LogFile& a, const LogFile& b) { return a.start < b.start; });
  return files;
}

std::int64_t size_of(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_size : 0;
}

std::string read_at(const std::string& path, std::int64_t offset, std::size_t limit) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string data(limit, '\0');
  const ssize_t count = fd.valid() ? ::pread(fd.get(), data.data(), limit, offset) : 0;
  data.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return data;
}

}  // namespace

TaskLogWriter::TaskLogWriter(std::string directory, std::int64_t file_bytes, int files)
    : directory_(std::move(directory)),
      file_bytes_(std::max<std::int64_t>(file_bytes, 4096)),
      files_(std::max(files, 1)) {
  rotate();
}

void TaskLogWriter::rotate() {
  file_start_ = position_;
  const std::string path = fmt::format("{}/{}{}", directory_, kPrefix, file_start_);
  file_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640));
  std::vector<LogFile> kept = log_files(directory_);
  while (kept.size() > static_cast<std::size_t>(files_)) {
    ::unlink(kept.front().path.c_str());
    kept.erase(kept.begin());
  }
}

void TaskLogWriter::append(std::string_view data) {
  while (!data.empty()) {
    if (position_ - file_start_ >= file_bytes_) rotate();
    const auto room = static_cast<std::size_t>(file_bytes_ - (position_ - file_start_));
    const ssize_t written = ::write(file_.get(), data.data(), std::min(room, data.size()));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    position_ += written;
    data.remove_prefix(static_cast<std::size_t>(written));
  }
}

LogPiece read_task_log(const std::string& directory, std::int64_t offset, std::size_t limit) {
  const std::vector<LogFile> files = log_files(directory);
  if (files.empty()) return {std::max<std::int64_t>(offset, 0), {}};
  offset = std::max(offset, files.front().start);
  // The last file that begins at or before the offset; the writer goes on to the next one only
  // when a file is full, so its end is the beginning of the next.
  auto file = std::upper_bound(files.begin(), files.end(), offset,
                               [](std::int64_t at, const LogFile& f) { return at < f.start; });
  --file;
  return {offset, read_at(file->path, offset - file->start, limit)};
}

std::int64_t tail_offset(const std::string& directory, std::int64_t lines) {
  const std::vector<LogFile> files = log_files(directory);
  if (files.empty()) return 0;
  const std::int64_t last = files.back().start + size_of(files.back().path) - 1;
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    constexpr std::int64_t kStep = 64 * 1024;
    for (std::int64_t to = size_of(file->path); to > 0;) {
      const std::int64_t from = std::max<std::int64_t>(0, to - kStep);
      const std::string data = read_at(file->path, from, static_cast<std::size_t>(to - from));
      for (std::size_t i = data.size(); i-- > 0;) {
        const std::int64_t at = file->start + from + static_cast<std::int64_t>(i);
        if (data[i] != '\n' || at == last) continue;  // the last byte ends the last line
        if (--lines <= 0) return at + 1;
      }
      to = from;
    }
  }
  return files.front().start;
}

}  // namespace gs::agent
