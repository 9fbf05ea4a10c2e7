#include "wire/kube/mutate.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "wire/kube/names.hpp"
#include "wire/kube/pod_resources.hpp"
#include "wire/kube/scheduling_map.hpp"

namespace gs::kube {
namespace {

using Environment = std::vector<Json>;  // entries {"name", "value"} or {"name", "valueFrom"}

Json from_annotation(const char* name, const char* annotation) {
  const std::string path = std::string("metadata.annotations['") + annotation + "']";
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
}

Json literal(const char* name, std::string value) {
  return {{"name", name}, {"value", std::move(value)}};
}

// The devices, where something says them already: the allocation of a pod that is bound, or the
// pod's line of the map. On a pod that is not bound an allocation is a leftover of the pod that it
// was copied from.
Result<std::optional<DeviceNames>> known_devices(const Pod& pod, DeviceNaming naming) {
  using Known = std::optional<DeviceNames>;
  const std::string* allocated = pod.meta.annotation(kAllocatedAnnotation);
  if (allocated != nullptr && !allocated->empty() && !pod.node_name.empty()) {
    const Result<Allocated> read = parse_allocated(*allocated);
    if (!read)
      return invalid(std::string("annotation ") + kAllocatedAnnotation + ": " +
                     read.error().message);
    return Known(names_by_index(read->gpus));
  }
  const std::string* text = pod.meta.annotation(kMapAnnotation);
  const std::optional<int> index = pod_index(pod.meta);
  if (text == nullptr || !index) return Known();
  const Result<SchedulingMap> map = parse_scheduling_map(*text);
  if (!map) return map.error();
  const MapEntry* entry = map->find(*index);
  if (entry == nullptr || naming != DeviceNaming::Index) return Known();
  return Known(names_by_index(entry->gpus));
}

// The text of a field; empty where it is none.
std::string word(const Json& object, const char* field) {
  if (!object.is_object() || !object.contains(field)) return {};
  const auto* text = object[field].get_ptr<const std::string*>();
  return text == nullptr ? std::string() : *text;
}

bool same_value(const Json& a, const Json& b) {
  const bool refers = a.contains("valueFrom");
  if (refers != b.contains("valueFrom")) return false;
  if (!refers) return word(a, "value") == word(b, "value");
  // The API server adds apiVersion to what we wrote.
  const Json::json_pointer path("/fieldRef/fieldPath");
  const Json &from_a = a["valueFrom"], &from_b = b["valueFrom"];
  return from_a.contains(path) && from_b.contains(path) && from_a[path] == from_b[path];
}

const Json* find_entry(const Json& env, const std::string& name) {
  for (const Json& entry : env)
    if (word(entry, "name") == name) return &entry;
  return nullptr;
}

bool has_device_limit(const Json& container) {
  const Json::json_pointer limits("/resources/limits");
  if (!container.contains(limits) || !container[limits].is_object()) return false;
  const Json& names = container[limits];
  return std::any_of(names.items().begin(), names.items().end(), [](const auto& item) {
    return item.key() == kGpuResource || item.key().starts_with(kMigResourcePrefix);
  });
}

Json devices_on_node(const char* name, const std::optional<DeviceNames>& known) {
  return known ? literal(name, known->on_node) : from_annotation(name, kVisibleDevicesAnnotation);
}

Json devices_in_container(const char* name, const std::optional<DeviceNames>& known) {
  return known ? literal(name, known->in_container)
               : from_annotation(name, kContainerDevicesAnnotation);
}

// By what the container sees. A user's own NVIDIA_VISIBLE_DEVICES is kept: then it is not narrowed
// by us.
void add_devices(const Json& container, const Json& env, const MutateOptions& options,
                 const std::optional<DeviceNames>& known, Environment& all) {
  if (has_device_limit(container)) {
    if (!options.kubelet_chooses) all.push_back(devices_on_node("CUDA_VISIBLE_DEVICES", known));
    return;
  }
  if (!options.nvidia_visible_devices)
    return all.push_back(devices_on_node("CUDA_VISIBLE_DEVICES", known));
  const Json narrowing = devices_on_node("NVIDIA_VISIBLE_DEVICES", known);
  const Json* own = find_entry(env, "NVIDIA_VISIBLE_DEVICES");
  const bool is_narrowed = own == nullptr || same_value(*own, narrowing);
  all.push_back(is_narrowed ? devices_in_container("CUDA_VISIBLE_DEVICES", known)
                            : devices_on_node("CUDA_VISIBLE_DEVICES", known));
  all.push_back(narrowing);
}

Environment wanted(const Json& container, const Json& env, const MutateOptions& options,
                   const std::optional<DeviceNames>& known) {
  Environment all;
  add_devices(container, env, options, known, all);
  if (options.claim == nullptr) return all;
  if (options.claim->rdma != Wish::None)
    all.push_back(from_annotation("NCCL_IB_HCA", kHcaAnnotation));
  if (options.claim->cufile != Wish::None)
    all.push_back(literal("CUFILE_ENV_PATH_JSON", options.cufile_path));
  return all;
}

// Entries go to the front: those of the user may refer to them.
void patch_container(const Json& container, const std::string& path, const MutateOptions& options,
                     const std::optional<DeviceNames>& known, Mutation& mutation) {
  const bool has_env = container.contains("env") && container["env"].is_array();
  const Json env = has_env ? container["env"] : Json::array();
  Json missing = Json::array();
  for (const Json& entry : wanted(container, env, options, known)) {
    const std::string name = entry["name"];
    const Json* own = find_entry(env, name);
    if (own == nullptr)
      missing.push_back(entry);
    else if (!same_value(*own, entry))
      mutation.warnings.push_back("container '" + word(container, "name") + "' sets " + name +
                                  " itself: its value is kept, whatever devices the pod is given");
  }
  if (missing.empty()) return;
  if (!has_env)
    return mutation.patch.push_back(
        {{"op", "add"}, {"path", path + "/env"}, {"value", std::move(missing)}});
  for (std::size_t i = 0; i < missing.size(); ++i)
    mutation.patch.push_back(
        {{"op", "add"}, {"path", path + "/env/" + std::to_string(i)}, {"value", missing[i]}});
}

}  // namespace

bool is_ours(const Pod& pod, const std::vector<std::string>& scheduler_names) {
  return std::find(scheduler_names.begin(), scheduler_names.end(), pod.scheduler_name) !=
         scheduler_names.end();
}

Result<Pod> decode_new_pod(std::string_view text) {
  Pod pod;
  Cursor in(text);
  read(in, pod);
  if (const Status status = in.finish(); !status) return status.error();
  return pod;
}

Result<Mutation> mutate_pod(std::string_view text, const MutateOptions& options) {
  Mutation mutation;
  const Result<Pod> pod = decode_new_pod(text);
  if (!pod) return pod.error();
  if (!is_ours(*pod, options.scheduler_names)) return mutation;
  const Result<std::optional<DeviceNames>> known = known_devices(*pod, options.naming);
  if (!known) return known.error();
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  for (const char* list : {"initContainers", "containers"}) {
    const Json::json_pointer at(std::string("/spec/") + list);
    if (!json->contains(at) || !(*json)[at].is_array()) continue;
    const Json& containers = (*json)[at];
    for (std::size_t i = 0; i < containers.size(); ++i)
      patch_container(containers[i], at.to_string() + "/" + std::to_string(i), options, *known,
                      mutation);
  }
  return mutation;
}

AdmissionResponse mutate(const AdmissionRequest& request, const MutateOptions& options) {
  AdmissionResponse response;
  response.uid = request.uid;
  if (request.kind != "Pod" || !request.group.empty() || request.operation != "CREATE")
    return response;
  if (request.object.empty()) return refused(request, 400, "request.object is missing");
  Result<Mutation> mutation = mutate_pod(request.object, options);
  if (!mutation) return refused(request, 422, mutation.error().message);
  response.patch = std::move(mutation->patch);
  response.warnings = std::move(mutation->warnings);
  return response;
}

}  // namespace gs::kube
