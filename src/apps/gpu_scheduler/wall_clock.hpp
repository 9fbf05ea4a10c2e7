// The time of day when the process began, and what has passed since then: leases are counted by it,
// so it must not jump when somebody sets the clock.
#pragma once

#include "base/time.hpp"

namespace gs {

Instant wall_clock();

}  // namespace gs
