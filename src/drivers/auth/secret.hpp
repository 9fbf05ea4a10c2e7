// Secrets that the service makes for itself.
#pragma once

#include <string>

#include "base/result.hpp"

namespace gs {

// The path of a file with a secret that only its owner may read; made when it is not there yet.
Result<std::string> secret_in(const std::string& path);

}  // namespace gs
