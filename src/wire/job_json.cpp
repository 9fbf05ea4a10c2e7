#include "wire/job_json.hpp"

#include <cmath>

#include "wire/json_text.hpp"

namespace gs {
namespace {

constexpr std::int64_t kMaxCores = kMaxAmount / 1000;

// Cores may be given in parts: 0.5.
void read_cores(ObjectReader& in, JobSpec& spec) {
  double cores = 0;
  if (!in.optional("cpu_cores", cores)) return;
  if (!(cores >= 0) || cores > static_cast<double>(kMaxCores))
    in.fail("cpu_cores", "must be 0.." + std::to_string(kMaxCores));
  else
    spec.cpu_milli = std::llround(cores * 1000.0);
}

// "depends_on": ["job-1", {"job_id": "job-2", "condition": "any"}]
void read_dependencies(ObjectReader& in, JobSpec& spec) {
  constexpr std::pair<const char*, bool> kConditions[] = {{"ok", false}, {"any", true}};
  in.array(
      "depends_on",
      [&](ObjectReader& one) {
        Dependency& dependency = spec.depends_on.emplace_back();
        one.required("job_id", dependency.job);
        one.one_of("condition", dependency.any_end, kConditions);
      },
      [&](const std::string& job) {
        spec.depends_on.push_back({job, false});
      });
}

// "checkpoint": true, or {"path": "/shared/run-7"}
void read_checkpoint(ObjectReader& in, JobSpec& spec) {
  const Json* value = in.value("checkpoint");
  if (value == nullptr) return;
  if (value->is_boolean()) {
    spec.checkpoint = value->get<bool>();
    return;
  }
  ObjectReader one(*value, "checkpoint");
  spec.checkpoint = true;
  one.optional("enabled", spec.checkpoint);
  one.optional("path", spec.checkpoint_path);
  if (Status s = one.finish(); !s) in.fail("checkpoint", "is wrong: " + s.error().message);
}

void read_fields(ObjectReader& in, JobSpec& spec) {
  in.required("tenant_id", spec.tenant_id);
  in.required("name", spec.name);
  in.optional("priority", spec.priority);
  in.optional("gpu_count", spec.gpu_count);
  in.optional("gpu_memory_mb", spec.gpu_memory_mb);
  in.optional("gpu_milli", spec.gpu_milli);
  in.optional("gpu_model", spec.gpu_model);
  in.optional("mig_profile", spec.mig_profile);
  read_cores(in, spec);
  in.optional("memory_mb", spec.memory_mb);
  in.optional("gang_scheduling", spec.gang_scheduling);
  in.optional("nodes", spec.nodes);
  in.optional("gpus_per_node", spec.gpus_per_node);
  in.optional("command", spec.command);
  in.optional("args", spec.args);
  in.optional("script", spec.script);
  in.optional("image", spec.image);
  in.optional("environment", spec.environment);
  in.optional("working_dir", spec.working_dir);
  in.optional("user", spec.user);
  read_checkpoint(in, spec);
  in.optional("max_runtime_minutes", spec.max_runtime_minutes);
  in.optional("expected_runtime_minutes", spec.expected_runtime_minutes);
  in.optional("allow_preemption", spec.allow_preemption);
  in.optional("held", spec.held);
  read_dependencies(in, spec);
  in.optional("array", spec.array_size);
  in.optional("labels", spec.labels);
  in.optional("node_selector", spec.node_selector);
  // Written by the service into the jobs of an array.
  in.optional("array_index", spec.array_index);
  in.optional("array_id", spec.array_id);
}

// `nodes` and `gpus_per_node` say how many GPUs there are where gpu_count does not.
void complete(const ObjectReader& in, JobSpec& spec) {
  const bool sane = spec.nodes > 0 && spec.nodes <= 10'000 && spec.gpus_per_node > 0 &&
                    spec.gpus_per_node <= 10'000;
  if (sane && !in.has("gpu_count")) spec.gpu_count = spec.nodes * spec.gpus_per_node;
}

template <typename T>
void put(JsonText& out, const char* field, const T& value, const T& usual) {
  if (!(value == usual)) out.field(field, value);
}

// Cores in parts are written with their thousandths.
void put_cores(JsonText& out, std::int64_t cpu_milli) {
  if (cpu_milli == 0) return;
  std::string cores = std::to_string(cpu_milli / 1000);
  if (const std::int64_t part = cpu_milli % 1000; part != 0)
    cores += "." + std::to_string(1000 + part).substr(1);
  out.key("cpu_cores").raw(cores);
}

void put_dependencies(JsonText& out, const std::vector<Dependency>& list) {
  if (list.empty()) return;
  out.key("depends_on").open('[');
  for (const Dependency& dependency : list)
    if (dependency.any_end)
      out.open('{').field("job_id", dependency.job).field("condition", "any").close('}');
    else
      out.value(dependency.job);
  out.close(']');
}

void put_run(JsonText& out, const JobSpec& spec, const JobSpec& usual) {
  put(out, "command", spec.command, usual.command);
  put(out, "args", spec.args, usual.args);
  put(out, "script", spec.script, usual.script);
  put(out, "image", spec.image, usual.image);
  put(out, "environment", spec.environment, usual.environment);
  put(out, "working_dir", spec.working_dir, usual.working_dir);
  put(out, "user", spec.user, usual.user);
  if (spec.checkpoint_path.empty()) return put(out, "checkpoint", spec.checkpoint, false);
  out.key("checkpoint").open('{').field("enabled", spec.checkpoint);
  out.field("path", spec.checkpoint_path).close('}');
}

}  // namespace

Result<JobSpec> decode_job(const Json& json, int default_priority) {
  JobSpec spec;
  spec.priority = default_priority;
  ObjectReader in(json);
  read_fields(in, spec);
  complete(in, spec);
  if (Status s = in.finish(); !s) return s.error();
  if (Status s = validate(spec); !s) return s.error();
  return spec;
}

Result<JobSpec> parse_job(std::string_view text, int default_priority) {
  Result<Json> json = parse_json(text);
  if (!json) return json.error();
  return decode_job(*json, default_priority);
}

std::string encode_job(const JobSpec& spec) {
  static const JobSpec usual;
  JsonText out(512);
  out.open('{').field("tenant_id", spec.tenant_id).field("name", spec.name);
  out.field("priority", spec.priority).field("gpu_count", spec.gpu_count);
  put(out, "gpu_memory_mb", spec.gpu_memory_mb, usual.gpu_memory_mb);
  put(out, "gpu_milli", spec.gpu_milli, usual.gpu_milli);
  put(out, "gpu_model", spec.gpu_model, usual.gpu_model);
  put(out, "mig_profile", spec.mig_profile, usual.mig_profile);
  put_cores(out, spec.cpu_milli);
  put(out, "memory_mb", spec.memory_mb, usual.memory_mb);
  put(out, "gang_scheduling", spec.gang_scheduling, usual.gang_scheduling);
  put(out, "nodes", spec.nodes, usual.nodes);
  put(out, "gpus_per_node", spec.gpus_per_node, usual.gpus_per_node);
  put_run(out, spec, usual);
  put(out, "max_runtime_minutes", spec.max_runtime_minutes, usual.max_runtime_minutes);
  put(out, "expected_runtime_minutes", spec.expected_runtime_minutes,
      usual.expected_runtime_minutes);
  put(out, "allow_preemption", spec.allow_preemption, usual.allow_preemption);
  put(out, "held", spec.held, usual.held);
  put_dependencies(out, spec.depends_on);
  put(out, "array", spec.array_size, usual.array_size);
  put(out, "array_index", spec.array_index, usual.array_index);
  put(out, "array_id", spec.array_id, usual.array_id);
  put(out, "labels", spec.labels, usual.labels);
  put(out, "node_selector", spec.node_selector, usual.node_selector);
  return out.close('}').take();
}

}  // namespace gs
