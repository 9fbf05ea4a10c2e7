#include "wire/secret_file.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gs {
namespace {

Error cannot(const std::string& path, int error) {
  return {error == ENOENT ? ErrorCode::NotFound : ErrorCode::InvalidArgument,
          fmt::format("{}: {}", path, std::strerror(error))};
}

Result<std::string> read_all(int file, const std::string& path, std::size_t limit) {
  std::string text;
  char buffer[65536];
  while (true) {
    const ssize_t count = ::read(file, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot(path, errno);
    if (count == 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
    if (text.size() > limit) return invalid(fmt::format("{}: longer than {} bytes", path, limit));
  }
}

}  // namespace

Result<std::string> read_text_file(const std::string& path, std::size_t limit) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return cannot(path, errno);
  struct stat about {};
  Result<std::string> text = invalid(path + ": not a plain file");
  if (::fstat(file, &about) == 0 && S_ISREG(about.st_mode)) text = read_all(file, path, limit);
  ::close(file);
  return text;
}

Result<std::string> read_secret(const std::string& path) {
  Result<std::string> text = read_text_file(path, 65536);
  if (!text.ok()) return text;
  if (text->ends_with("\r\n"))
    text->resize(text->size() - 2);
  else if (text->ends_with('\n'))
    text->pop_back();
  if (text->empty()) return invalid(path + ": the secret is empty");
  return text;
}

}  // namespace gs
