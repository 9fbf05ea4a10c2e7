#include "queue/quota.hpp"

#include <array>
#include <bit>
#include <numeric>

namespace gs {
namespace {

struct Row {
  const char* resource;
  std::int64_t limit, current, more;
};

std::optional<QuotaState> first_broken(const Tenant& tenant, std::initializer_list<Row> rows) {
  for (const Row& row : rows)
    if (row.more > 0 && row.limit < kUnlimited && row.current + row.more > row.limit)
      return QuotaState{tenant.id, row.resource, row.more, row.limit, row.current};
  return std::nullopt;
}

std::optional<QuotaState> limit_broken(const Tenant& tenant, const Usage& used, const Usage& more) {
  const Quota& q = tenant.limit;
  return first_broken(
      tenant, {{"gpu_milli", q.gpu_milli, used.gpu_milli, more.gpu_milli},
               {"gpu_memory_mib", q.gpu_memory_mib, used.gpu_memory_mib, more.gpu_memory_mib},
               {"cpu_milli", q.cpu_milli, used.cpu_milli, more.cpu_milli},
               {"memory_bytes", q.memory_bytes, used.memory_bytes, more.memory_bytes}});
}

std::optional<QuotaState> guarantee_broken(const Tenant& tenant, const Usage& used,
                                           const Usage& more) {
  const Share& g = tenant.guaranteed;
  return first_broken(
      tenant, {{"guaranteed gpu_milli", g.gpu_milli, used.gpu_milli, more.gpu_milli},
               {"guaranteed cpu_milli", g.cpu_milli, used.cpu_milli, more.cpu_milli},
               {"guaranteed memory_bytes", g.memory_bytes, used.memory_bytes, more.memory_bytes}});
}

std::optional<QuotaState> model_exceeded(const Cluster& cluster, const TenantRecord& record,
                                         const std::vector<std::uint32_t>& models) {
  for (const auto& [name, gpus] : record.spec.limit.gpus_by_model) {
    const std::int64_t limit = gpus * kWholeGpu;
    for (const std::uint32_t model : models) {
      const bool used = model < record.milli_by_model.size();
      if (!used || record.milli_by_model[model] <= limit) continue;
      if (cluster.shapes().models().name(model) != name) continue;
      return QuotaState{record.spec.id, gpus_of(name), record.milli_by_model[model], limit, 0};
    }
  }
  return std::nullopt;
}

// What the tenant has of a resource, by the name that the rows above give it.
std::int64_t used_of(const TenantRecord& r, const std::string& resource) {
  const bool fixed = resource.starts_with("guaranteed ");
  const Usage& used = fixed ? r.used_unpreemptible : r.used;
  if (resource.ends_with("gpu_milli")) return used.gpu_milli;
  if (resource.ends_with("gpu_memory_mib")) return used.gpu_memory_mib;
  if (resource.ends_with("cpu_milli")) return used.cpu_milli;
  if (resource.ends_with("memory_bytes")) return used.memory_bytes;
  return r.running_jobs;
}

template <typename Ask>
std::optional<QuotaState> first_on_the_way_up(const Cluster& cluster, TenantId tenant, Ask ask) {
  for (TenantId id = tenant; id.valid(); id = cluster.tenant(id).parent)
    if (auto broken = ask(cluster.tenant(id))) return broken;
  return std::nullopt;
}

}  // namespace

Usage least_usage(const Cluster& cluster, const Shape& shape) {
  // A request in memory is the smallest part of the largest GPU; a whole GPU has least memory on
  // the smallest.
  Usage usage = usage_of(shape, cluster.largest_gpu_memory_mib());
  usage.gpu_memory_mib = usage_of(shape, cluster.smallest_gpu_memory_mib()).gpu_memory_mib;
  return usage;
}

std::optional<QuotaState> over_limit(const Cluster& cluster, TenantId tenant, const Usage& more,
                                     int new_jobs) {
  return first_on_the_way_up(cluster, tenant, [&](const TenantRecord& r) {
    auto broken = limit_broken(r.spec, r.used, more);
    if (!broken)
      broken = first_broken(
          r.spec, {{"running_jobs", r.spec.limit.running_jobs, r.running_jobs, new_jobs}});
    return broken;
  });
}

std::optional<QuotaState> over_guaranteed(const Cluster& cluster, TenantId tenant,
                                          const Usage& more) {
  return first_on_the_way_up(cluster, tenant, [&](const TenantRecord& r) {
    return guarantee_broken(r.spec, r.used_unpreemptible, more);
  });
}

std::optional<QuotaState> exceeded(const Cluster& cluster, TenantId tenant, bool preemptible,
                                   const Usage& added, const std::vector<std::uint32_t>& models) {
  return first_on_the_way_up(cluster, tenant, [&](const TenantRecord& r) {
    Usage before = r.used;
    Usage fixed_before = r.used_unpreemptible;
    before -= added;
    if (!preemptible) fixed_before -= added;
    auto broken = limit_broken(r.spec, before, added);
    if (!broken && !preemptible) broken = guarantee_broken(r.spec, fixed_before, added);
    if (!broken) broken = model_exceeded(cluster, r, models);
    return broken;
  });
}

bool exceeds_now(const Cluster& cluster, TenantId tenant) {
  for (TenantId id = tenant; id.valid(); id = cluster.tenant(id).parent) {
    const TenantRecord& r = cluster.tenant(id);
    const Quota& q = r.spec.limit;
    if (r.used.gpu_milli > q.gpu_milli || r.used.gpu_memory_mib > q.gpu_memory_mib ||
        r.used.cpu_milli > q.cpu_milli || r.used.memory_bytes > q.memory_bytes ||
        r.running_jobs > q.running_jobs)
      return true;
    std::vector<std::uint32_t> models(r.milli_by_model.size());
    std::iota(models.begin(), models.end(), 0U);
    if (model_exceeded(cluster, r, models)) return true;
  }
  return false;
}

std::optional<std::uint32_t> model_of(const Cluster& cluster, const Task& task) {
  GpuMask gpus = task.place.gpus;
  for (const MigPick& pick : task.place.mig) gpus |= gpu_bit(pick.gpu);
  if (gpus == 0) return std::nullopt;
  const Layout& layout = *cluster.node(task.place.node).layout;
  return layout.model[static_cast<std::size_t>(std::countr_zero(gpus))];
}

std::optional<QuotaState> never_allowed(const Cluster& cluster, TenantId tenant, const Usage& ask,
                                        bool preemptible) {
  return first_on_the_way_up(cluster, tenant, [&](const TenantRecord& r) {
    auto broken = limit_broken(r.spec, {}, ask);
    if (!broken && !preemptible) broken = guarantee_broken(r.spec, {}, ask);
    if (!broken) broken = first_broken(r.spec, {{"running_jobs", r.spec.limit.running_jobs, 0, 1}});
    if (broken) broken->current = used_of(r, broken->resource);
    return broken;
  });
}

std::optional<QuotaState> never_allowed(const Cluster& cluster, TenantId tenant,
                                        const ModelAsks& asks) {
  return first_on_the_way_up(
      cluster, tenant, [&](const TenantRecord& r) -> std::optional<QuotaState> {
        for (const auto& [name, gpus] : r.spec.limit.gpus_by_model) {
          std::int64_t milli = 0;
          for (const auto& [model, amount] : asks)
            if (cluster.shapes().models().name(model) == name) milli += amount;
          if (milli > gpus * kWholeGpu)
            return QuotaState{r.spec.id, gpus_of(name), milli, gpus * kWholeGpu, 0};
        }
        return std::nullopt;
      });
}

}  // namespace gs
