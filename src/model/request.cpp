#include "model/request.hpp"

#include <algorithm>
#include <charconv>

#include "base/gpu_mask.hpp"
#include "model/mig.hpp"

namespace gs {

bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
  return std::any_of(tolerations.begin(), tolerations.end(), [&](const Toleration& t) {
    if (!t.any_effect && t.effect != taint.effect) return false;
    if (t.key.empty()) return t.exists;
    return t.key == taint.key && (t.exists || t.value == taint.value);
  });
}

namespace {

bool as_number(const std::string& text, long long& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

bool compare(const LabelTerm& term, const std::string* value) {
  long long have = 0;
  long long want = 0;
  if (value == nullptr || term.values.size() != 1) return false;
  if (!as_number(*value, have) || !as_number(term.values[0], want)) return false;
  return term.op == LabelOp::Gt ? have > want : have < want;
}

bool holds(const LabelTerm& term, const Labels& labels) {
  const std::string* value = find_label(labels, term.key);
  const bool listed = value != nullptr && std::find(term.values.begin(), term.values.end(),
                                                    *value) != term.values.end();
  switch (term.op) {
    case LabelOp::In:
      return listed;
    case LabelOp::NotIn:
      return !listed;
    case LabelOp::Exists:
      return value != nullptr;
    case LabelOp::NotExists:
      return value == nullptr;
    case LabelOp::Gt:
    case LabelOp::Lt:
      return compare(term, value);
  }
  return false;
}

Status validate_gpu(const GpuRequest& gpu) {
  if (gpu.count < 0 || gpu.count > kMaxGpusPerNode)
    return invalid("gpu.count must be 0.." + std::to_string(kMaxGpusPerNode) + ", got " +
                   std::to_string(gpu.count));
  if (gpu.milli < 0 || gpu.milli > kWholeGpu)
    return invalid("gpu.milli must be 0..1000, got " + std::to_string(gpu.milli));
  if (!is_amount(gpu.memory_mib) || !is_amount(gpu.min_memory_mib))
    return invalid(std::string("gpu memory") + kMustBeAmount);
  if (gpu.min_bandwidth_gbps < 0) return invalid("gpu.min_bandwidth_gbps must not be negative");
  if (gpu.sharing == Sharing::Shared && (gpu.count == 0 || (gpu.milli == 0 && gpu.memory_mib == 0)))
    return invalid("a shared GPU request needs gpu.count and one of gpu.milli, gpu.memory_mib");
  if (gpu.sharing != Sharing::Shared && gpu.milli != 0)
    return invalid("gpu.milli is for shared GPUs only");
  if ((gpu.sharing == Sharing::Mig) != !gpu.mig.empty())
    return invalid("gpu.mig and sharing MIG go together");
  for (const auto& ask : gpu.mig) {
    if (mig_compute_slices(ask.profile) == 0)
      return invalid("gpu.mig: '" + ask.profile + "' is not a profile such as 1g.10gb");
    if (ask.count < 1) return invalid("gpu.mig: count must be at least 1");
  }
  for (const int id : gpu.prefer_ids)
    if (id < 0 || id >= kMaxGpusPerNode)
      return invalid("gpu.prefer_ids: " + std::to_string(id) + " is not a GPU index");
  for (const int id : gpu.pinned_ids)
    if (id < 0 || id >= kMaxGpusPerNode)
      return invalid("gpu.pinned_ids: " + std::to_string(id) + " is not a GPU index");
  if (!gpu.pinned_ids.empty() && static_cast<int>(gpu.pinned_ids.size()) != gpu.count)
    return invalid("gpu.pinned_ids must list gpu.count ids");
  if (gpu.pinned_ids.empty() && !gpu.pin_group.empty())
    return invalid("gpu.pin_group needs gpu.pinned_ids");
  return ok_status();
}

}  // namespace

bool matches(const LabelTerms& terms, const Labels& labels) {
  return std::all_of(terms.begin(), terms.end(),
                     [&](const LabelTerm& term) { return holds(term, labels); });
}

Status validate(const TaskRequest& request) {
  if (!is_amount(request.resources.cpu_milli))
    return invalid(std::string("cpu_milli") + kMustBeAmount);
  if (!is_amount(request.resources.memory_bytes))
    return invalid(std::string("memory_bytes") + kMustBeAmount);
  for (const auto& [name, amount] : request.resources.named)
    if (name.empty() || !is_amount(amount))
      return invalid("resource '" + name + "' needs a name and" + kMustBeAmount);
  for (const auto& preferred : request.preferred_affinity)
    if (preferred.weight < 1 || preferred.weight > 100)
      return invalid("preferred affinity: weight must be 1..100");
  if (!request.gpu.pinned_ids.empty() && request.only_nodes.size() != 1)
    return invalid("pinned devices need exactly one node");
  return validate_gpu(request.gpu);
}

}  // namespace gs
