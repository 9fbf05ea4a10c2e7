// Secrets that lie in files of their own: tokens, passwords, keys.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.hpp"

namespace gs {

// The whole file. Refuses what can't be read, is no plain file, or is longer than `limit`.
Result<std::string> read_text_file(const std::string& path, std::size_t limit = 1U << 20);

// The file without one newline at its end. Refuses an empty secret: it would let everybody in.
Result<std::string> read_secret(const std::string& path);

}  // namespace gs
