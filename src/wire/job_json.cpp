#include "wire/job_json.hpp"

#include <cmath>

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
  const Json* list = in.value("depends_on");
  if (list == nullptr) return;
  if (!list->is_array()) return in.fail("depends_on", "must be an array");
  for (const Json& element : *list) {
    Dependency dependency;
    if (element.is_string()) {
      dependency.job = element.get<std::string>();
    } else {
      ObjectReader one(element, "depends_on[" + std::to_string(spec.depends_on.size()) + "]");
      one.required("job_id", dependency.job);
      constexpr std::pair<const char*, bool> kConditions[] = {{"ok", false}, {"any", true}};
      one.one_of("condition", dependency.any_end, kConditions);
      if (Status s = one.finish(); !s) return in.fail("depends_on", ": " + s.error().message);
    }
    spec.depends_on.push_back(std::move(dependency));
  }
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
void put(Json& json, const char* field, const T& value, const T& usual) {
  if (!(value == usual)) json[field] = value;
}

Json object_of(const Labels& pairs) {
  Json out = Json::object();
  for (const auto& [key, value] : pairs) out[key] = value;
  return out;
}

Json dependencies_json(const JobSpec& spec) {
  Json list = Json::array();
  for (const Dependency& dependency : spec.depends_on)
    list.push_back(dependency.any_end ? Json{{"job_id", dependency.job}, {"condition", "any"}}
                                      : Json(dependency.job));
  return list;
}

void put_run(Json& json, const JobSpec& spec, const JobSpec& usual) {
  put(json, "command", spec.command, usual.command);
  put(json, "args", spec.args, usual.args);
  put(json, "script", spec.script, usual.script);
  put(json, "image", spec.image, usual.image);
  if (!spec.environment.empty()) json["environment"] = object_of(spec.environment);
  put(json, "working_dir", spec.working_dir, usual.working_dir);
  put(json, "user", spec.user, usual.user);
  if (!spec.checkpoint_path.empty())
    json["checkpoint"] = {{"enabled", spec.checkpoint}, {"path", spec.checkpoint_path}};
  else
    put(json, "checkpoint", spec.checkpoint, false);
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

Json job_json(const JobSpec& spec) {
  static const JobSpec usual;
  Json json = Json::object();
  json["tenant_id"] = spec.tenant_id;
  json["name"] = spec.name;
  json["priority"] = spec.priority;
  json["gpu_count"] = spec.gpu_count;
  put(json, "gpu_memory_mb", spec.gpu_memory_mb, usual.gpu_memory_mb);
  put(json, "gpu_milli", spec.gpu_milli, usual.gpu_milli);
  put(json, "gpu_model", spec.gpu_model, usual.gpu_model);
  put(json, "mig_profile", spec.mig_profile, usual.mig_profile);
  if (spec.cpu_milli % 1000 != 0)
    json["cpu_cores"] = static_cast<double>(spec.cpu_milli) / 1000.0;
  else if (spec.cpu_milli > 0)
    json["cpu_cores"] = spec.cpu_milli / 1000;
  put(json, "memory_mb", spec.memory_mb, usual.memory_mb);
  put(json, "gang_scheduling", spec.gang_scheduling, usual.gang_scheduling);
  put(json, "nodes", spec.nodes, usual.nodes);
  put(json, "gpus_per_node", spec.gpus_per_node, usual.gpus_per_node);
  put_run(json, spec, usual);
  put(json, "max_runtime_minutes", spec.max_runtime_minutes, usual.max_runtime_minutes);
  put(json, "expected_runtime_minutes", spec.expected_runtime_minutes,
      usual.expected_runtime_minutes);
  put(json, "allow_preemption", spec.allow_preemption, usual.allow_preemption);
  put(json, "held", spec.held, usual.held);
  if (!spec.depends_on.empty()) json["depends_on"] = dependencies_json(spec);
  put(json, "array", spec.array_size, usual.array_size);
  put(json, "array_index", spec.array_index, usual.array_index);
  put(json, "array_id", spec.array_id, usual.array_id);
  if (!spec.labels.empty()) json["labels"] = object_of(spec.labels);
  if (!spec.node_selector.empty()) json["node_selector"] = object_of(spec.node_selector);
  return json;
}

std::string encode_job(const JobSpec& spec) { return job_json(spec).dump(); }

}  // namespace gs
