#include "sim/conformance_skips.hpp"

#include <vector>

namespace gs {

std::span<const ConformanceSkip> conformance_skips() {
  static const std::vector<ConformanceSkip> skips;
  return skips;
}

}  // namespace gs
