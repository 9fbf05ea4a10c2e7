// Instants as the APIs write them: RFC 3339 in UTC, with milliseconds.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace gs {

std::string time_text(Instant time);
std::optional<Instant> parse_time(std::string_view text);  // RFC 3339 with Z or an offset

}  // namespace gs
