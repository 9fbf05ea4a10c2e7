// Cases where we choose differently on purpose. docs/conformance.md lists the same rows for people;
// a test compares the two.
#pragma once

#include <span>
#include <string_view>

namespace gs {

struct ConformanceSkip {
  std::string_view id;
  std::string_view reason;
};

std::span<const ConformanceSkip> conformance_skips();

}  // namespace gs
