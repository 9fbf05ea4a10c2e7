// Tenants: create, change, remove; and what they use.
#include "service/desk.hpp"

namespace gs {

const TenantRow* Desk::tenant(std::int64_t seq) const {
  const auto it = tenants_.find(tenant_id(seq));
  return it == tenants_.end() ? nullptr : &it->second;
}

Result<TenantRow> Desk::create_tenant(const TenantSpec& spec) {
  TenantRow row;
  row.seq = next_seq();
  row.spec = spec;
  row.created = row.updated = now_;
  const std::string id = tenant_id(row.seq);
  if (Status s = tell(PutTenant{to_tenant(spec, id)}); !s) return s.error();
  tenants_.emplace(id, row);
  touched_tenants_.insert(id);
  settle();
  return row;
}

Result<TenantRow> Desk::update_tenant(std::int64_t tenant, const TenantSpec& spec) {
  const std::string id = tenant_id(tenant);
  const auto it = tenants_.find(id);
  if (it == tenants_.end()) return not_found("tenant " + id + " does not exist");
  if (Status s = tell(PutTenant{to_tenant(spec, id)}); !s) return s.error();
  it->second.spec = spec;
  it->second.updated = now_;
  touched_tenants_.insert(id);
  settle();
  return it->second;
}

Status Desk::remove_tenant(std::int64_t tenant) {
  const std::string id = tenant_id(tenant);
  const auto it = tenants_.find(id);
  if (it == tenants_.end()) return not_found("tenant " + id + " does not exist");
  if (Status s = tell(RemoveTenant{id}); !s) return s;
  it->second.active = false;
  it->second.updated = now_;
  batch_.tenants.push_back(it->second);
  touched_tenants_.erase(id);
  tenants_.erase(it);
  settle();
  return ok_status();
}

void Desk::touch_tenant(const std::string& id) {
  const Cluster& cluster = engine_->cluster();
  const TenantId known = cluster.find_tenant(id);
  if (!known.valid()) return;
  const auto& record = cluster.tenant(known);
  TenantRow& row = tenants_.at(id);
  row.current_gpu_milli = record.used.gpu_milli;
  row.current_gpu_memory_mb = record.used.gpu_memory_mib;
  row.current_cpu_milli = record.used.cpu_milli;
  row.current_memory_mb = record.used.memory_bytes / kMiB;
  row.current_jobs = record.running_jobs;
}

}  // namespace gs
