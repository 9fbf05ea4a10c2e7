// The version that every binary tells.
#pragma once

namespace gs {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace gs
