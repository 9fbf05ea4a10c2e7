#include "wire/kube/tenant.hpp"

#include <algorithm>
#include <utility>

#include "model/resources.hpp"
#include "wire/kube/names.hpp"
#include "wire/kube/quantity.hpp"

namespace gs::kube {
namespace {

constexpr std::pair<const char*, Tier> kTiers[] = {{"low", Tier::Low},
                                                   {"medium", Tier::Medium},
                                                   {"high", Tier::High},
                                                   {"critical", Tier::Critical}};
constexpr std::int64_t kMostGpus = 1'000'000'000;

void read_count(ObjectReader& in, const char* field, std::int64_t& out, std::int64_t unit) {
  std::int64_t count = 0;
  if (!in.optional(field, count)) return;
  if (count < 0 || count > kMostGpus)
    in.fail(field, "must be 0.." + std::to_string(kMostGpus) + ", got " + std::to_string(count));
  out = count * unit;
}

// "64", 64 or "1Ti"; in thousandths for processors.
void read_amount(ObjectReader& in, const char* field, std::int64_t& out, bool milli) {
  const Json* value = in.value(field);
  if (value == nullptr) return;
  const auto* text = value->get_ptr<const std::string*>();
  if (text == nullptr && !value->is_number_integer())
    return in.fail(field, "must be a quantity such as \"64\" or \"1Ti\"");
  const Result<Quantity> amount = parse_quantity(text != nullptr ? *text : value->dump());
  if (!amount) return in.fail(field, amount.error().message);
  out = milli ? amount->milli() : amount->value();
  if (!is_amount(out)) in.fail(field, kMustBeAmount + 1);
}

void read_limits(ObjectReader& in, Tenant& tenant) {
  Quota& limit = tenant.limit;
  read_count(in, "maxGPUs", limit.gpu_milli, kWholeGpu);
  read_count(in, "maxGPUMemoryMiB", limit.gpu_memory_mib, 1);
  read_amount(in, "maxCPU", limit.cpu_milli, true);
  read_amount(in, "maxMemory", limit.memory_bytes, false);
  read_count(in, "maxConcurrentJobs", limit.running_jobs, 1);
  read_count(in, "maxQueuedJobs", tenant.max_queue, 1);
  read_count(in, "guaranteedGPUs", tenant.guaranteed.gpu_milli, kWholeGpu);
  in.optional("maxGPUsByModel", limit.gpus_by_model);
  for (const auto& [model, gpus] : limit.gpus_by_model)
    if (gpus < 0) in.fail("maxGPUsByModel." + model, "must not be negative");
}

void read_rules(ObjectReader& in, Tenant& tenant) {
  in.optional("displayName", tenant.name);
  in.optional("parent", tenant.parent);
  in.optional("priority", tenant.priority);
  in.one_of("tier", tenant.tier, kTiers);
  if (in.optional("weight", tenant.over_quota_weight) &&
      (tenant.over_quota_weight < 0 || tenant.over_quota_weight > kMaxWeight))
    in.fail("weight", "must be 0.." + std::to_string(kMaxWeight));
  in.optional("allowPreemption", tenant.allow_preemption);
  in.optional("canPreemptOthers", tenant.can_preempt_others);
}

void read_selector(ObjectReader& in, LabelTerms& terms) {
  Labels labels;
  in.optional("matchLabels", labels);
  if (labels.empty()) in.fail("matchLabels", "must name at least one label");
  for (auto& [key, value] : labels) terms.push_back({key, LabelOp::In, {value}});
}

// What is no status of ours says nothing.
void read_status(Cursor& in, TenantStatus& status) {
  in.object([&](std::string_view field) {
    if (field == "accepted") in.read(status.accepted);
    if (field == "message") in.read(status.message);
    if (field == "waitingJobs") in.read(status.waiting_jobs);
    if (field != "usedGPUs") return;
    std::string text;
    in.read(text);
    if (const Result<Quantity> used = parse_quantity(text)) status.used_gpu_milli = used->milli();
  });
}

}  // namespace

Status read_tenant_spec(const Json& spec, GpuTenant& tenant) {
  ObjectReader in(spec, "spec");
  read_rules(in, tenant.tenant);
  read_limits(in, tenant.tenant);
  in.optional("namespaces", tenant.namespaces);
  in.object("namespaceSelector",
            [&](ObjectReader& inner) { read_selector(inner, tenant.namespace_terms); });
  return in.finish();
}

Result<GpuTenant> decode_tenant(std::string_view text) {
  GpuTenant tenant;
  std::string_view spec = "{}";
  Cursor in(text);
  in.object([&](std::string_view field) {
    if (field == "metadata") read(in, tenant.meta);
    if (field == "spec") spec = in.raw();
    if (field == "status") read_status(in, tenant.status);
  });
  if (const Status status = in.finish(); !status) return status.error();
  const Result<Json> json = parse_json(spec);
  if (!json) return json.error();
  tenant.spec_text = spec;
  tenant.tenant.id = tenant.tenant.name = tenant.meta.name;
  if (const Status status = read_tenant_spec(*json, tenant); !status) return status.error();
  if (const Status status = validate(tenant.tenant); !status) return status.error();
  return tenant;
}

bool takes(const GpuTenant& tenant, const Meta& ns) {
  if (const std::string* named = ns.label(kTenantLabel)) return *named == tenant.meta.name;
  return tenant.meta.name == ns.name ||
         std::find(tenant.namespaces.begin(), tenant.namespaces.end(), ns.name) !=
             tenant.namespaces.end() ||
         (!tenant.namespace_terms.empty() && gs::matches(tenant.namespace_terms, ns.labels));
}

std::string tenant_of(const Meta& ns, const std::vector<GpuTenant>& tenants) {
  if (const std::string* named = ns.label(kTenantLabel)) return *named;
  for (const GpuTenant& tenant : tenants)
    if (std::find(tenant.namespaces.begin(), tenant.namespaces.end(), ns.name) !=
        tenant.namespaces.end())
      return tenant.meta.name;
  for (const GpuTenant& tenant : tenants)
    if (!tenant.namespace_terms.empty() && gs::matches(tenant.namespace_terms, ns.labels))
      return tenant.meta.name;
  for (const GpuTenant& tenant : tenants)
    if (tenant.meta.name == ns.name) return ns.name;
  return kUnassignedTenant;
}

}  // namespace gs::kube
