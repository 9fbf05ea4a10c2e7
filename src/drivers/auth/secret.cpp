#include "drivers/auth/secret.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "drivers/auth/crypto.hpp"

namespace gs {
namespace {

Error cant(const std::string& path) {
  return {ErrorCode::Unavailable, "can't write " + path + ": " + std::strerror(errno)};
}

}  // namespace

Result<std::string> secret_in(const std::string& path) {
  if (::access(path.c_str(), F_OK) == 0) return path;
  const std::string draft = path + ".new";  // never half a secret under its name
  const int file = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return cant(draft);
  const std::string text = base64url_encode(random_bytes(32)) + "\n";
  const bool written =
      ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fsync(file) == 0;
  ::close(file);
  if (!written || ::rename(draft.c_str(), path.c_str()) != 0) return cant(path);
  return path;
}

}  // namespace gs
