#include "agent/lease.hpp"

#include <cstdio>

#include <fmt/format.h>

#include "agent/files.hpp"

namespace gs::agent {

Status write_lease(const std::string& path, const Lease& lease) {
  return replace_file(path, fmt::format("{} {}\n", lease.contact_ms, lease.duration_ms),
                      Durability::Later, 0644);
}

std::optional<Lease> read_lease(const std::string& path) {
  const auto content = read_file(path);
  if (!content) return std::nullopt;
  long long contact = 0;
  long long duration = 0;
  if (std::sscanf(content->c_str(), "%lld %lld", &contact, &duration) != 2) return std::nullopt;
  return Lease{contact, duration};
}

std::optional<std::int64_t> lease_left_ms(const Lease& lease, std::int64_t now_ms) {
  if (lease.duration_ms <= 0) return std::nullopt;
  return lease.contact_ms + lease.duration_ms - now_ms;
}

}  // namespace gs::agent
