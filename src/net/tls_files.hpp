// A certificate and its key as files: looked at before anything listens with them, because the
// libraries that use them say little or nothing about what is wrong.
#pragma once

#include <string>

#include "base/result.hpp"

namespace gs {

// The error names the file and what is the matter with it.
Status check_tls_files(const std::string& certificate_file, const std::string& key_file);

}  // namespace gs
