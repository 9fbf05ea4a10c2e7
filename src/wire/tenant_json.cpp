#include "wire/tenant_json.hpp"

#include <cmath>
#include <utility>

#include "model/resources.hpp"

namespace gs {
namespace {

constexpr std::pair<const char*, Tier> kTiers[] = {{"low", Tier::Low},
                                                   {"medium", Tier::Medium},
                                                   {"high", Tier::High},
                                                   {"critical", Tier::Critical}};
constexpr std::size_t kMaxText = 253;

using Amount = std::pair<const char*, std::int64_t TenantSpec::*>;
constexpr Amount kLimits[] = {{"max_gpus", &TenantSpec::max_gpus},
                              {"max_gpu_memory_mb", &TenantSpec::max_gpu_memory_mb},
                              {"max_cpu_cores", &TenantSpec::max_cpu_cores},
                              {"max_memory_mb", &TenantSpec::max_memory_mb},
                              {"max_concurrent_jobs", &TenantSpec::max_concurrent_jobs}};
constexpr Amount kMoreAmounts[] = {{"guaranteed_gpus", &TenantSpec::guaranteed_gpus},
                                   {"max_queued_jobs", &TenantSpec::max_queued_jobs}};
// Further in, quotas are counted in thousandths and bytes; this much still fits there.
constexpr std::int64_t kMostOfOne = 1'000'000'000'000;
static_assert(kMostOfOne * kMiB < kUnlimited);

void check_amount(ObjectReader& in, const char* field, std::int64_t amount) {
  if (amount < 0) in.fail(field, "must not be negative");
  if (amount > kMostOfOne) in.fail(field, "must be at most " + std::to_string(kMostOfOne));
}

void check_text(ObjectReader& in, const char* field, const std::string& text) {
  if (text.size() > kMaxText)
    in.fail(field, "must have at most " + std::to_string(kMaxText) + " bytes");
}

void read_texts(ObjectReader& in, TenantSpec& spec, bool is_new) {
  if (is_new)
    in.required("name", spec.name);
  else
    in.optional("name", spec.name);
  if (spec.name.empty()) in.fail("name", "must not be empty");
  in.optional("email", spec.email);
  in.optional("organization", spec.organization);
  check_text(in, "name", spec.name);
  check_text(in, "email", spec.email);
  check_text(in, "organization", spec.organization);
}

void read_amounts(ObjectReader& in, TenantSpec& spec, bool is_new) {
  for (const auto& [field, member] : kLimits) {
    if (is_new ? in.required(field, spec.*member) : in.optional(field, spec.*member))
      check_amount(in, field, spec.*member);
  }
  for (const auto& [field, member] : kMoreAmounts)
    if (in.optional(field, spec.*member)) check_amount(in, field, spec.*member);
  in.optional("max_gpus_by_model", spec.max_gpus_by_model);
  for (const auto& [model, amount] : spec.max_gpus_by_model)
    check_amount(in, ("max_gpus_by_model." + model).c_str(), amount);
}

void read_rules(ObjectReader& in, TenantSpec& spec) {
  in.one_of("priority_tier", spec.priority_tier, kTiers);
  if (in.optional("fair_share_weight", spec.fair_share_weight) &&
      !(spec.fair_share_weight > 0 && spec.fair_share_weight <= 1e9))
    in.fail("fair_share_weight", "must be above 0 and at most 1000000000");
  in.optional("allow_preemption", spec.allow_preemption);
  in.optional("can_preempt_others", spec.can_preempt_others);
  if (in.optional("max_preemptions", spec.max_preemptions) && spec.max_preemptions < 0)
    in.fail("max_preemptions", "must not be negative");
  if (in.optional("cost_per_gpu_hour", spec.cost_per_gpu_hour) &&
      !(spec.cost_per_gpu_hour >= 0 && spec.cost_per_gpu_hour <= 1e9))
    in.fail("cost_per_gpu_hour", "must not be negative nor above 1000000000");
}

Result<TenantSpec> read_fields(TenantSpec spec, const Json& json, bool is_new) {
  ObjectReader in(json);
  read_texts(in, spec, is_new);
  read_amounts(in, spec, is_new);
  read_rules(in, spec);
  if (const Status status = in.finish(); !status) return status.error();
  return spec;
}

}  // namespace

const char* tier_word(Tier tier) {
  for (const auto& [word, known] : kTiers)
    if (known == tier) return word;
  return "medium";
}

Json tenant_json(const TenantSpec& spec) {
  Json by_model = Json::object();
  for (const auto& [model, amount] : spec.max_gpus_by_model) by_model[model] = amount;
  Json json = {{"name", spec.name},
               {"email", spec.email},
               {"organization", spec.organization},
               {"priority_tier", tier_word(spec.priority_tier)},
               {"fair_share_weight", spec.fair_share_weight},
               {"max_gpus_by_model", std::move(by_model)},
               {"allow_preemption", spec.allow_preemption},
               {"can_preempt_others", spec.can_preempt_others},
               {"max_preemptions", spec.max_preemptions},
               {"cost_per_gpu_hour", spec.cost_per_gpu_hour}};
  for (const auto& [field, member] : kLimits) json[field] = spec.*member;
  for (const auto& [field, member] : kMoreAmounts) json[field] = spec.*member;
  return json;
}

Result<TenantSpec> read_tenant(const Json& json) { return read_fields({}, json, true); }

Result<TenantSpec> update_tenant(TenantSpec spec, const Json& json) {
  return read_fields(std::move(spec), json, false);
}

}  // namespace gs
