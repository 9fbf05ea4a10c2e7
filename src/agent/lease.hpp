// The lease: how long tasks may run on without word from the scheduler.
//
// The agent writes the moment of the last contact into one file; every supervisor reads it by
// itself, so the promise "out of touch for longer than the lease means stopped" needs no agent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"

namespace gs::agent {

struct Lease {
  std::int64_t contact_ms = 0;   // boottime_ms() at which the acknowledged heartbeat was sent
  std::int64_t duration_ms = 0;  // 0: there is none, tasks run on for ever
};

// How long a task may still clean up once its lease is over, whatever its own grace says: the
// scheduler waits for the lease and a margin, and the margin must be longer than this.
inline constexpr std::int64_t kLeaseGraceMs = 5000;

Status write_lease(const std::string& path, const Lease& lease);
std::optional<Lease> read_lease(const std::string& path);

// How long it still holds; nullopt: for ever. The file belongs to one boot of the machine, as the
// tasks do.
std::optional<std::int64_t> lease_left_ms(const Lease& lease, std::int64_t now_ms);

}  // namespace gs::agent
