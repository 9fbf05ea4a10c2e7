// Tenants: create, change, remove.
#include "engine/state.hpp"
#include "queue/fair_share.hpp"

namespace gs {

Status Engine::Impl::apply(const PutTenant& command) {
  const Tenant& tenant = command.tenant;
  if (Status s = validate(tenant); !s) return s;
  if (!tenant.parent.empty()) {
    const TenantId parent = cluster.find_tenant(tenant.parent);
    if (!parent.valid() || cluster.tenant(parent).gone)
      return not_found("tenant " + tenant.id + ": parent " + tenant.parent + " does not exist");
  }
  const TenantId known = cluster.find_tenant(tenant.id);
  if (known.valid() && !cluster.tenant(known).gone &&
      cluster.tenant(known).spec.parent != tenant.parent)
    return invalid("tenant " + tenant.id + ": parent can't change");
  decay_usage(cluster, config.usage_half_life, now);
  const TenantId id = cluster.put_tenant(tenant);
  if (!known.valid()) cluster.tenant(id).decayed_at = now;
  return ok_status();
}

Status Engine::Impl::apply(const RemoveTenant& command) {
  const TenantId id = cluster.find_tenant(command.id);
  if (!id.valid() || cluster.tenant(id).gone)
    return not_found("tenant " + command.id + " does not exist");
  if (!cluster.tenant(id).children.empty())
    return Error{ErrorCode::Conflict,
                 "tenant " + command.id + " has tenants below it; remove those first"};
  if (cluster.tenant(id).jobs > 0)
    return Error{ErrorCode::Conflict, "tenant " + command.id + " has " +
                                          std::to_string(cluster.tenant(id).jobs) +
                                          " jobs; cancel them first"};
  cluster.remove_tenant(id);
  return ok_status();
}

}  // namespace gs
