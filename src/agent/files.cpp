#include "agent/files.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gs::agent {
namespace {

Error failed(const char* verb, const std::string& path) {
  return {ErrorCode::Internal, fmt::format("cannot {} {}: {}", verb, path, errno_text(errno))};
}

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void flush_directory_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const Fd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.valid()) ::fsync(directory.get());
}

}  // namespace

void Fd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

std::string trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(kBlanks) - first + 1));
}

std::string errno_text(int error) { return std::generic_category().message(error); }

std::string file_name_for(const std::string& id) {
  std::string name;
  for (const char c : id) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || (c == '.' && !name.empty()))
      name += c;
    else
      name += fmt::format("_{:02x}", byte);
  }
  return name;
}

std::optional<std::string> read_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  std::string content;
  char buffer[4096];
  while (true) {
    const ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) return content;
    content.append(buffer, static_cast<std::size_t>(count));
  }
}

std::optional<std::int64_t> read_number(const std::string& path) {
  const auto content = read_file(path);
  if (!content) return std::nullopt;
  const std::string text = trim(*content);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return number;
}

bool file_exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::vector<std::string> list_directory(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(path, error);
  while (!error && entry != std::filesystem::directory_iterator{}) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status replace_file(const std::string& path, std::string_view content, Durability durability,
                    unsigned mode) {
  const std::string fresh = path + ".new";
  {
    const Fd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
    if (!fd.valid()) return failed("create", fresh);
    if (!write_all(fd.get(), content)) return failed("write", fresh);
    if (durability == Durability::Now && ::fsync(fd.get()) != 0) return failed("flush", fresh);
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) return failed("rename", fresh);
  if (durability == Durability::Now) flush_directory_of(path);
  return ok_status();
}

void flush_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.valid()) ::fsync(fd.get());
  flush_directory_of(path);
}

Status write_control(const std::string& path, std::string_view content) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return failed("open", path);
  if (!write_all(fd.get(), content)) return failed("write", path);
  return ok_status();
}

Status make_directories(const std::string& path, unsigned mode) {
  if (::mkdir(path.c_str(), mode) == 0) return ok_status();
  const std::filesystem::path whole(path);
  std::filesystem::path part;
  for (const auto& piece : whole) {
    part /= piece;
    if (::mkdir(part.c_str(), mode) != 0 && errno != EEXIST && errno != EISDIR)
      return failed("create", part.string());
  }
  std::error_code error;
  if (!std::filesystem::is_directory(whole, error))
    return Error{ErrorCode::Internal, path + " is not a directory"};
  return ok_status();
}

void remove_tree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
}

std::optional<Fd> try_lock(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid() || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return std::nullopt;
  return fd;
}

}  // namespace gs::agent
