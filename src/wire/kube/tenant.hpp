// GpuTenant (gpu.scheduling/v1): quota and weight of the namespaces that belong to it.
#pragma once

#include "base/result.hpp"
#include "model/tenant.hpp"
#include "wire/json_reader.hpp"
#include "wire/kube/policy.hpp"

namespace gs::kube {

struct TenantStatus {
  bool accepted = false;
  std::string message;
  std::int64_t used_gpu_milli = 0;  // of it and all below it
  std::int64_t waiting_jobs = 0;    // gangs, and pods without one
  bool operator==(const TenantStatus&) const = default;
};

struct GpuTenant {
  Meta meta;
  TenantStatus status;
  std::string spec_text;  // as it was read: whether it is the same
  Tenant tenant;          // its id is the object's name
  std::vector<std::string> namespaces;
  LabelTerms namespace_terms;  // namespaceSelector; empty: none
};

Result<GpuTenant> decode_tenant(std::string_view text);
Status read_tenant_spec(const Json& spec, GpuTenant& tenant);

// Whether pods of the namespace may count as this tenant's.
bool takes(const GpuTenant& tenant, const Meta& ns);

// The tenant of a namespace, in this order: the label gpu.scheduling/tenant of the namespace, the
// first tenant by name that lists it, the first by name whose selector takes it, the tenant of the
// same name; else the one that all such namespaces share, so that among their pods priorities
// decide, as people expect who have asked for no shares. `tenants` is sorted by name.
inline constexpr const char* kUnassignedTenant = ":unassigned";
std::string tenant_of(const Meta& ns, const std::vector<GpuTenant>& tenants);

}  // namespace gs::kube
