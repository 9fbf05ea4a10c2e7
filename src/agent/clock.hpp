// The clocks of the agent and the supervisor.
//
// The lease is measured on CLOCK_BOOTTIME: it counts while the machine sleeps, nobody can set it,
// and all processes of one boot agree on it.
#pragma once

#include <cstdint>
#include <string>

namespace gs::agent {

std::int64_t boottime_ms();
std::int64_t wall_ms();          // since 1970, for people
const std::string& boot_id();    // of this boot of the machine; empty where the system has none
void sleep_ms(std::int64_t ms);  // interrupted by signals

}  // namespace gs::agent
