#include "model/spec.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/gpu_mask.hpp"
#include "model/mig.hpp"

namespace gs {
namespace {

constexpr int kMaxGpus = 10'000;
constexpr int kMaxArray = 10'000;
constexpr int kMaxDependencies = 100;
constexpr int kMaxMinutes = 10 * 366 * 24 * 60;  // ten years
constexpr std::size_t kMaxName = 253;

Status between(const char* field, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return ok_status();
  return invalid(std::string(field) + " must be " + std::to_string(low) + ".." +
                 std::to_string(high) + ", got " + std::to_string(value));
}

Status validate_name(const std::string& name) {
  if (name.empty()) return invalid("name must not be empty");
  if (name.size() > kMaxName)
    return invalid("name must not be longer than " + std::to_string(kMaxName) + " bytes");
  if (std::any_of(name.begin(), name.end(),
                  [](char c) { return static_cast<unsigned char>(c) < 0x20; }))
    return invalid("name must not contain control characters");
  return ok_status();
}

// What has no zero byte can be handed to a process; names of variables have no '=' either.
bool has_zero(const std::string& text) { return text.find('\0') != std::string::npos; }

Status validate_run(const JobSpec& spec) {
  if (!spec.script.empty() && !spec.command.empty())
    return invalid("script and command exclude each other");
  if (spec.command.empty() && spec.script.empty() && spec.image.empty())
    return invalid("command is required (or script, or an image with a command of its own)");
  if (!spec.command.empty() && spec.command.front().empty())
    return invalid("command[0] must not be empty");
  for (const auto* words : {&spec.command, &spec.args})
    for (const std::string& word : *words)
      if (has_zero(word)) return invalid("command and args must not contain zero bytes");
  for (const std::string* text :
       {&spec.script, &spec.image, &spec.working_dir, &spec.user, &spec.checkpoint_path})
    if (has_zero(*text)) return invalid("script, image and paths must not contain zero bytes");
  for (const auto& [name, value] : spec.environment)
    if (name.empty() || name.find('=') != std::string::npos || has_zero(name) || has_zero(value))
      return invalid("environment: '" + name +
                     "' is not a name (not empty, no '=', no zero bytes)");
  if (!spec.working_dir.empty() && spec.working_dir.front() != '/')
    return invalid("working_dir must be an absolute path");
  return ok_status();
}

Status validate_gpus(const JobSpec& spec) {
  if (Status s = between("gpu_count", spec.gpu_count, 0, kMaxGpus); !s) return s;
  if (Status s = between("gpu_memory_mb", spec.gpu_memory_mb, 0, kMaxAmount); !s) return s;
  if (Status s = between("gpu_milli", spec.gpu_milli, 0, kWholeGpu); !s) return s;
  const bool part = spec.gpu_milli > 0 && spec.gpu_milli < kWholeGpu;
  if (spec.gpu_count == 0 && (spec.gpu_memory_mb > 0 || spec.gpu_milli > 0 ||
                              !spec.gpu_model.empty() || !spec.mig_profile.empty()))
    return invalid(
        "gpu_count must be at least 1 where gpu_memory_mb, gpu_milli, gpu_model or "
        "mig_profile is given");
  if (!spec.mig_profile.empty() && mig_compute_slices(spec.mig_profile) == 0)
    return invalid("mig_profile '" + spec.mig_profile + "' is no profile; they look like 1g.10gb");
  if (!spec.mig_profile.empty() && part)
    return invalid("mig_profile and gpu_milli exclude each other");
  if (!spec.mig_profile.empty() && spec.gang_scheduling)
    return invalid("mig_profile and gang_scheduling exclude each other");
  return ok_status();
}

Status validate_gang(const JobSpec& spec) {
  if (Status s = between("nodes", spec.nodes, 0, kMaxGpus); !s) return s;
  if (Status s = between("gpus_per_node", spec.gpus_per_node, 0, kMaxGpus); !s) return s;
  if (spec.nodes > 1 && !spec.gang_scheduling) return invalid("nodes needs gang_scheduling: true");
  if (spec.nodes > 0 && spec.gpu_count % spec.nodes != 0)
    return invalid("nodes must divide gpu_count, got " + std::to_string(spec.nodes) + " and " +
                   std::to_string(spec.gpu_count));
  if (spec.gpus_per_node > 0 && spec.nodes == 0) return invalid("gpus_per_node needs nodes");
  if (spec.gpus_per_node > 0 && spec.gpus_per_node * spec.nodes != spec.gpu_count)
    return invalid("gpu_count must be nodes * gpus_per_node (" +
                   std::to_string(std::int64_t{spec.nodes} * spec.gpus_per_node) + "), got " +
                   std::to_string(spec.gpu_count));
  const bool spread = spec.gang_scheduling && spec.nodes == 0;
  if (!spread && spec.mig_profile.empty() &&
      spec.gpu_count / std::max(1, spec.nodes) > kMaxGpusPerNode)
    return invalid("gpu_count must be at most " + std::to_string(kMaxGpusPerNode) +
                   " per node, got " + std::to_string(spec.gpu_count) +
                   (spec.gang_scheduling ? " on " + std::to_string(spec.nodes) + " nodes"
                                         : "; with gang_scheduling: true it may span nodes"));
  if (spread && spec.gpu_count == 0) return invalid("gang_scheduling needs gpu_count or nodes");
  return ok_status();
}

Status validate_times(const JobSpec& spec) {
  if (Status s = between("max_runtime_minutes", spec.max_runtime_minutes, 0, kMaxMinutes); !s)
    return s;
  return between("expected_runtime_minutes", spec.expected_runtime_minutes, 0, kMaxMinutes);
}

// Parts of a total never add up to more than the total: a quota that is just enough stays enough.
std::int64_t share_of(std::int64_t total, int parts) { return total / parts; }

// A wish for ids, as people write it into CUDA_VISIBLE_DEVICES: "0,1,2". Nothing where it is not a
// list of as many small numbers as there are GPUs.
std::vector<int> wished_ids(const JobSpec& spec) {
  const std::string* text = find_label(spec.environment, "CUDA_VISIBLE_DEVICES");
  std::vector<int> ids;
  for (std::size_t at = 0; text != nullptr && at < text->size(); ++at) {
    int id = 0;
    const auto [end, error] = std::from_chars(text->data() + at, text->data() + text->size(), id);
    if (error != std::errc{} || id < 0 || id >= kMaxGpusPerNode) return {};
    ids.push_back(id);
    at = static_cast<std::size_t>(end - text->data());
    if (at < text->size() && (*text)[at] != ',') return {};
  }
  return static_cast<int>(ids.size()) == spec.gpu_count ? ids : std::vector<int>{};
}

GpuRequest gpu_request(const JobSpec& spec, int count) {
  GpuRequest gpu;
  if (!spec.gpu_model.empty()) gpu.models = {spec.gpu_model};
  if (!spec.mig_profile.empty()) {
    gpu.sharing = Sharing::Mig;
    gpu.mig = {{canonical_mig_profile(spec.mig_profile), count}};
    return gpu;
  }
  gpu.count = count;
  if (spec.gpu_count == 0) return gpu;
  const std::int64_t memory = share_of(spec.gpu_memory_mb, spec.gpu_count);
  if (spec.gpu_milli > 0 && spec.gpu_milli < kWholeGpu) {
    gpu.sharing = Sharing::Shared;
    gpu.milli = spec.gpu_milli;
    gpu.memory_mib = memory;
  } else {
    // Rounded up for the size of a GPU; a quota counts what was asked for.
    gpu.min_memory_mib = (spec.gpu_memory_mb + spec.gpu_count - 1) / spec.gpu_count;
    gpu.quota_memory_mib = memory;
    gpu.prefer_ids = wished_ids(spec);
    if (!gpu.prefer_ids.empty() && count == spec.gpu_count)
      gpu.policy = DevicePolicy::PreferIds;
    else
      gpu.prefer_ids.clear();
  }
  return gpu;
}

}  // namespace

Status validate(const JobSpec& spec) {
  if (spec.tenant_id.empty()) return invalid("tenant_id is required");
  if (Status s = validate_name(spec.name); !s) return s;
  if (Status s = between("priority", spec.priority, 0, 1'000'000); !s) return s;
  if (Status s = validate_gpus(spec); !s) return s;
  if (Status s = between("cpu_cores * 1000", spec.cpu_milli, 0, kMaxAmount); !s) return s;
  if (Status s = between("memory_mb", spec.memory_mb, 0, kMaxAmount / kMiB); !s) return s;
  if (Status s = validate_gang(spec); !s) return s;
  if (Status s = validate_run(spec); !s) return s;
  if (Status s = validate_times(spec); !s) return s;
  if (Status s = between("array", spec.array_size, 0, kMaxArray); !s) return s;
  if (spec.depends_on.size() > kMaxDependencies)
    return invalid("depends_on must not name more than " + std::to_string(kMaxDependencies) +
                   " jobs");
  return ok_status();
}

Job to_job(const JobSpec& spec, const std::string& id, Instant submitted) {
  Job job;
  job.id = id;
  job.name = spec.name;
  job.tenant = spec.tenant_id;
  job.priority = spec.priority;
  job.submitted = submitted;
  Group group;
  const bool spread = spec.gang_scheduling && spec.nodes == 0;
  group.count = spread ? std::max(1, spec.gpu_count) : std::max(1, spec.nodes);
  group.request.gpu = gpu_request(spec, spec.gpu_count / group.count);
  group.request.resources.cpu_milli = share_of(spec.cpu_milli, group.count);
  group.request.resources.memory_bytes = share_of(spec.memory_mb * kMiB, group.count);
  group.request.selector = spec.node_selector;
  job.groups.push_back(std::move(group));
  if (spec.max_runtime_minutes > 0) job.max_runtime = minutes(spec.max_runtime_minutes);
  if (spec.expected_runtime_minutes > 0)
    job.expected_runtime = minutes(spec.expected_runtime_minutes);
  job.preemptible = spec.allow_preemption;
  job.checkpointable = spec.checkpoint;
  job.held = spec.held;
  job.labels = spec.labels;
  return job;
}

Status validate(const TenantSpec& spec) {
  if (Status s = validate_name(spec.name); !s) return s;
  if (Status s = between("max_gpus", spec.max_gpus, 0, kMaxAmount / kWholeGpu); !s) return s;
  if (Status s = between("max_gpu_memory_mb", spec.max_gpu_memory_mb, 0, kMaxAmount); !s) return s;
  if (Status s = between("max_cpu_cores", spec.max_cpu_cores, 0, kMaxAmount / 1000); !s) return s;
  if (Status s = between("max_memory_mb", spec.max_memory_mb, 0, kMaxAmount / kMiB); !s) return s;
  if (Status s = between("max_concurrent_jobs", spec.max_concurrent_jobs, 0, kMaxAmount); !s)
    return s;
  if (Status s = between("max_queued_jobs", spec.max_queued_jobs, 0, kMaxAmount); !s) return s;
  if (Status s = between("guaranteed_gpus", spec.guaranteed_gpus, 0, spec.max_gpus); !s) return s;
  if (Status s = between("max_preemptions", spec.max_preemptions, 0, 1'000'000); !s) return s;
  if (!(spec.fair_share_weight > 0) || spec.fair_share_weight > 1e6)
    return invalid("fair_share_weight must be above 0 and at most 1000000");
  if (!(spec.cost_per_gpu_hour >= 0) || spec.cost_per_gpu_hour > 1e9)
    return invalid("cost_per_gpu_hour must be 0..1000000000");
  for (const auto& [model, gpus] : spec.max_gpus_by_model)
    if (model.empty() || gpus < 0 || gpus > kMaxAmount / kWholeGpu)
      return invalid("max_gpus_by_model: '" + model + "' must be a model and a number of GPUs");
  return ok_status();
}

Tenant to_tenant(const TenantSpec& spec, const std::string& id) {
  Tenant tenant;
  tenant.id = id;
  tenant.name = spec.name;
  tenant.tier = spec.priority_tier;
  tenant.guaranteed.gpu_milli = spec.guaranteed_gpus * kWholeGpu;
  tenant.limit.gpu_milli = spec.max_gpus * kWholeGpu;
  tenant.limit.gpu_memory_mib = spec.max_gpu_memory_mb;
  tenant.limit.cpu_milli = spec.max_cpu_cores * 1000;
  tenant.limit.memory_bytes = spec.max_memory_mb * kMiB;
  tenant.limit.running_jobs = spec.max_concurrent_jobs;
  tenant.limit.gpus_by_model = spec.max_gpus_by_model;
  // Only the proportions count: thousandths of the weight that the user wrote.
  tenant.over_quota_weight =
      std::max<std::int64_t>(1, std::llround(spec.fair_share_weight * 1000.0));
  tenant.allow_preemption = spec.allow_preemption;
  tenant.can_preempt_others = spec.can_preempt_others;
  if (spec.max_queued_jobs > 0) tenant.max_queue = spec.max_queued_jobs;
  return tenant;
}

}  // namespace gs
