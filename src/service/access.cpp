#include "service/access.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

namespace gs {
namespace {

constexpr std::array<std::pair<Role, const char*>, 4> kRoles{{{Role::Admin, "admin"},
                                                              {Role::Tenant, "tenant"},
                                                              {Role::Viewer, "viewer"},
                                                              {Role::Agent, "agent"}}};

Status denied(const Caller& caller, std::string_view what) {
  return Error{ErrorCode::PermissionDenied,
               fmt::format("{} ({}) may not {}", caller.name, to_string(caller.role), what)};
}

bool owns(const Caller& caller, std::string_view tenant) {
  return caller.role == Role::Tenant && !tenant.empty() && caller.tenant == tenant;
}

Status admin_only(const Caller& caller, std::string_view what) {
  return caller.role == Role::Admin ? ok_status() : denied(caller, what);
}

}  // namespace

const char* to_string(Role role) {
  for (const auto& [value, text] : kRoles)
    if (value == role) return text;
  return "?";
}

std::optional<Role> role_of(std::string_view text) {
  for (const auto& [value, name] : kRoles)
    if (name == text) return value;
  return std::nullopt;
}

Caller local_admin() { return {.role = Role::Admin, .tenant = "", .name = "local"}; }

Status validate(const Caller& caller) {
  if (caller.role == Role::Tenant && caller.tenant.empty())
    return invalid("the role tenant needs a tenant");
  if ((caller.role == Role::Admin || caller.role == Role::Agent) && !caller.tenant.empty())
    return invalid(fmt::format("the role {} has no tenant", to_string(caller.role)));
  return ok_status();
}

Status may_see(const Caller& caller, std::string_view tenant) {
  if (caller.role == Role::Admin || owns(caller, tenant)) return ok_status();
  if (caller.role == Role::Viewer && (caller.tenant.empty() || caller.tenant == tenant))
    return ok_status();
  return denied(caller, fmt::format("see what belongs to tenant `{}`", tenant));
}

Status may_submit_for(const Caller& caller, std::string_view tenant) {
  if (caller.role == Role::Admin || owns(caller, tenant)) return ok_status();
  return denied(caller, fmt::format("submit jobs for tenant `{}`", tenant));
}

Status may_change_jobs_of(const Caller& caller, std::string_view tenant) {
  if (caller.role == Role::Admin || owns(caller, tenant)) return ok_status();
  return denied(caller, fmt::format("change jobs of tenant `{}`", tenant));
}

Status may_see_cluster(const Caller& caller) {
  return caller.role != Role::Agent ? ok_status() : denied(caller, "see the cluster");
}

Status may_change_cluster(const Caller& caller) { return admin_only(caller, "change the cluster"); }

Status may_change_tenants(const Caller& caller) { return admin_only(caller, "change tenants"); }

Status may_serve_as_agent(const Caller& caller) {
  if (caller.role == Role::Agent) return ok_status();
  return admin_only(caller, "serve as an agent");
}

std::optional<std::string> only_tenant(const Caller& caller) {
  if (caller.role == Role::Admin || (caller.role == Role::Viewer && caller.tenant.empty()))
    return std::nullopt;
  return caller.tenant;
}

}  // namespace gs
