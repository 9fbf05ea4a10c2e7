// Quota gates: may this tenant have that much more? Asked before a search (with the least that the
// request can count for) and after it (with what it really counts for).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/cluster.hpp"
#include "model/why.hpp"

namespace gs {

// The resource that a limit on GPUs of one model is called by.
inline std::string gpus_of(const std::string& model) { return "gpus of " + model; }

// The least that a task of this shape counts for, whatever node it lands on.
Usage least_usage(const Cluster& cluster, const Shape& shape);

// The first limit on the way up to the root that `more` would break; only resources that `more`
// asks for count, so a tenant over its CPU limit may still start a job without CPU.
// `new_jobs`: jobs that would count as running on top of those that do.
std::optional<QuotaState> over_limit(const Cluster& cluster, TenantId tenant, const Usage& more,
                                     int new_jobs);
// The first guarantee on the way up that unpreemptible work would exceed: what can't be taken
// away again must not live on borrowed capacity.
std::optional<QuotaState> over_guaranteed(const Cluster& cluster, TenantId tenant,
                                          const Usage& more);
// After placing: a limit that `added`, which the books contain already, exceeds; those per GPU
// model included. `models`: those of the GPUs that were added.
std::optional<QuotaState> exceeded(const Cluster& cluster, TenantId tenant, bool preemptible,
                                   const Usage& added, const std::vector<std::uint32_t>& models);
// Whether the tenant, or one above it, has more than it may: a limit was lowered under what runs.
bool exceeds_now(const Cluster& cluster, TenantId tenant);
// The model of the GPUs that a task has, whole or in parts; nothing if it has none.
std::optional<std::uint32_t> model_of(const Cluster& cluster, const Task& task);
// A limit that the request alone exceeds: it can never run, however long it waits.
std::optional<QuotaState> never_allowed(const Cluster& cluster, TenantId tenant, const Usage& ask,
                                        bool preemptible);
// The same for GPUs that can be of one model only: interned model and milli, as often as need be.
using ModelAsks = std::vector<std::pair<std::uint32_t, std::int64_t>>;
std::optional<QuotaState> never_allowed(const Cluster& cluster, TenantId tenant,
                                        const ModelAsks& asks);

}  // namespace gs
