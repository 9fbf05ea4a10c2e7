// An instant as people write it, in UTC.
#pragma once

#include <string>

#include "base/time.hpp"

namespace gs {

std::string clock_text(Instant t);  // "2026-11-15 14:05:00Z"

}  // namespace gs
