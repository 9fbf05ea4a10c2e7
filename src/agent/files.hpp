// Files as the agent needs them: read whole, replaced whole, locked, removed with all below them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace gs::agent {

// A file descriptor that closes itself.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

std::string trim(std::string_view text);
std::string errno_text(int error);

// The name of an id in file systems: every other character as its code, so that no two ids share
// a name.
std::string file_name_for(const std::string& id);

std::optional<std::string> read_file(const std::string& path);
std::optional<std::int64_t> read_number(const std::string& path);
bool file_exists(const std::string& path);
std::vector<std::string> list_directory(const std::string& path);  // sorted; empty if unreadable

enum class Durability { Later, Now };
// Replaces the file in one step: a reader sees the old content or the new, never a part. With
// Durability::Now it has reached the disk when this returns.
Status replace_file(const std::string& path, std::string_view content, Durability durability,
                    unsigned mode = 0600);
// Lets what replace_file(Later) wrote reach the disk.
void flush_file(const std::string& path);
// Writes into an existing kernel file such as those of a cgroup.
Status write_control(const std::string& path, std::string_view content);

Status make_directories(const std::string& path, unsigned mode);
void remove_tree(const std::string& path);

// An exclusive lock that ends with the process; nullopt: somebody else holds it.
std::optional<Fd> try_lock(const std::string& path);

}  // namespace gs::agent
