#include "model/tenant.hpp"

#include "model/config.hpp"
#include "model/resources.hpp"

namespace gs {

Status validate(const Tenant& tenant) {
  const std::string of = "tenant " + tenant.id + ": ";
  if (tenant.id.empty()) return invalid("tenant: id must not be empty");
  if (tenant.parent == tenant.id) return invalid(of + "must not be its own parent");
  if (tenant.over_quota_weight < 0 || tenant.over_quota_weight > kMaxWeight)
    return invalid(of + "over_quota_weight must not be negative nor above " +
                   std::to_string(kMaxWeight));
  for (const std::int64_t amount :
       {tenant.guaranteed.gpu_milli, tenant.guaranteed.cpu_milli, tenant.guaranteed.memory_bytes})
    if (amount != kUnlimited && !is_amount(amount))
      return invalid(of + "guaranteed" + kMustBeAmount);
  const Quota& limit = tenant.limit;
  for (const std::int64_t amount : {limit.gpu_milli, limit.gpu_memory_mib, limit.cpu_milli,
                                    limit.memory_bytes, limit.running_jobs, tenant.max_queue})
    if (amount < 0) return invalid(of + "limits must not be negative");
  for (const auto& [model, gpus] : limit.gpus_by_model)
    if (model.empty() || gpus < 0)
      return invalid(of + "limit.gpus_by_model must name a model and not be negative");
  return ok_status();
}

Status validate(const Config& config) {
  const ScoringWeights& w = config.weights;
  for (const double weight : {w.resource_availability, w.topology_alignment, w.domain_utilization,
                              w.historical_performance})
    if (!(weight >= 0.0 && weight <= 1.0)) return invalid("scoringWeights must be 0..1");
  if (!(config.aging_per_hour >= 0.0 && config.aging_per_hour <= 1e6))
    return invalid("aging_per_hour must be 0..1000000");
  if (config.reservations < 0 || config.reservations > 1000)
    return invalid("reservations must be 0..1000");
  if (config.usage_half_life.ms <= 0) return invalid("usage_half_life must be positive");
  if (config.thermal_threshold_c < 0 || config.thermal_hysteresis_c < 0)
    return invalid("thermal limits must not be negative");
  if (config.max_nodes_per_leaf < 0 || config.max_gpus_per_leaf < 0)
    return invalid("leaf limits must not be negative");
  for (const TypicalTask& t : config.typical_tasks)
    if (t.cpu_milli < 0 || t.gpus < 0 || t.milli < 0 || t.milli > kWholeGpu ||
        (t.milli == 0) != (t.gpus == 0) || !(t.share >= 0.0 && t.share <= 1.0))
      return invalid("typical_tasks: amounts must not be negative, milli 1..1000, share 0..1");
  if (config.max_queue < 0 || config.max_moves < 0)
    return invalid("max_queue and max_moves must not be negative");
  return ok_status();
}

}  // namespace gs
