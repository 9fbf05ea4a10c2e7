// Who calls, and what a caller may do. Every door (REST, gRPC, the event stream) asks here.
//
//   admin    everything
//   tenant   submits, sees and changes the jobs of its tenant; sees that tenant's own record
//   viewer   sees everything, or only one tenant's where it has one; changes nothing
//   agent    nothing but the service for agents
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace gs {

enum class Role : std::uint8_t { Admin, Tenant, Viewer, Agent };
const char* to_string(Role role);
std::optional<Role> role_of(std::string_view text);

struct Caller {
  Role role = Role::Viewer;
  std::string tenant;  // Tenant: always there; Viewer: empty for one that sees all
  std::string name;    // for logs and limits, e.g. the name of an API key
  bool operator==(const Caller&) const = default;
};

// The caller where nobody has to say who they are.
Caller local_admin();

// A role that may have such a tenant: "admin", "tenant:T", "viewer", "viewer:T", "agent".
Status validate(const Caller& caller);

// PermissionDenied, with a sentence, where the caller may not. Jobs, events and usage belong to a
// tenant; to others they should look as if they did not exist.
Status may_see(const Caller& caller, std::string_view tenant);
Status may_submit_for(const Caller& caller, std::string_view tenant);
Status may_change_jobs_of(const Caller& caller, std::string_view tenant);
Status may_see_cluster(const Caller& caller);
Status may_change_cluster(const Caller& caller);  // nodes and what is on them
Status may_change_tenants(const Caller& caller);
Status may_serve_as_agent(const Caller& caller);

// Lists for this caller contain only what belongs to this tenant; none: no such limit.
std::optional<std::string> only_tenant(const Caller& caller);

}  // namespace gs
