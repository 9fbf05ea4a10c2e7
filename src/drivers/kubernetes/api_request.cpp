#include "drivers/kubernetes/api_request.hpp"

#include "net/http.hpp"
#include "wire/kube/encode.hpp"

namespace gs::kube {
namespace {

ApiRequest request_of(const char* verb, const char* method, Resource resource,
                      std::string name_space, std::string name) {
  ApiRequest request;
  request.verb = verb;
  request.method = method;
  request.resource = std::move(resource);
  request.name_space = std::move(name_space);
  request.name = std::move(name);
  return request;
}

ApiRequest posted_to(const char* subresource, std::string name_space, std::string pod,
                     std::string body) {
  ApiRequest request = request_of("create", "POST", pods(), std::move(name_space), std::move(pod));
  request.subresource = subresource;
  request.body = std::move(body);
  request.lane = Lane::Urgent;
  return request;
}

void add_selectors(ApiRequest& request, const std::string& labels, const std::string& fields) {
  if (!labels.empty()) request.query.emplace_back("labelSelector", labels);
  if (!fields.empty()) request.query.emplace_back("fieldSelector", fields);
}

}  // namespace

Resource pods() { return {"", "v1", "pods", true}; }
Resource nodes() { return {"", "v1", "nodes", false}; }
Resource events() { return {"events.k8s.io", "v1", "events", true}; }
Resource leases() { return {"coordination.k8s.io", "v1", "leases", true}; }

std::string Resource::path(std::string_view name_space, std::string_view name,
                           std::string_view subresource) const {
  std::string out = group.empty() ? "/api/" + version : "/apis/" + group + "/" + version;
  if (is_namespaced && !name_space.empty()) out += "/namespaces/" + percent_encode(name_space);
  out += "/" + plural;
  if (!name.empty()) out += "/" + percent_encode(name);
  if (!subresource.empty()) out.append("/").append(subresource);
  return out;
}

std::string Resource::text() const { return group.empty() ? plural : plural + "." + group; }

std::string ApiRequest::target() const {
  std::string out = path.empty() ? resource.path(name_space, name, subresource) : path;
  char mark = '?';
  for (const auto& [key, value] : query) {
    out += std::exchange(mark, '&');
    out += key + "=" + percent_encode(value);
  }
  return out;
}

ApiRequest read_object(Resource resource, std::string name_space, std::string name) {
  ApiRequest request =
      request_of("get", "GET", std::move(resource), std::move(name_space), std::move(name));
  request.again = Again::Always;
  return request;
}

ApiRequest read_path(std::string path) {
  ApiRequest request = read_object({"", "", "", false}, "", "");
  request.resource.plural = path;  // of metrics
  request.path = std::move(path);
  return request;
}

ApiRequest list_objects(Resource resource, std::string name_space, const ListOptions& options) {
  ApiRequest request = request_of("list", "GET", std::move(resource), std::move(name_space), "");
  request.again = Again::Always;
  request.timeout = seconds(60);
  add_selectors(request, options.label_selector, options.field_selector);
  if (options.limit > 0) request.query.emplace_back("limit", std::to_string(options.limit));
  if (!options.next.empty()) request.query.emplace_back("continue", options.next);
  if (!options.resource_version.empty())
    request.query.emplace_back("resourceVersion", options.resource_version);
  return request;
}

ApiRequest watch_objects(Resource resource, std::string name_space, const WatchOptions& options) {
  ApiRequest request = request_of("watch", "GET", std::move(resource), std::move(name_space), "");
  request.again = Again::Never;
  request.query = {
      {"watch", "true"},
      {"allowWatchBookmarks", "true"},
      {"timeoutSeconds", std::to_string(std::max<std::int64_t>(1, options.timeout.ms / 1000))},
      {"resourceVersion", options.resource_version}};
  add_selectors(request, options.label_selector, options.field_selector);
  return request;
}

ApiRequest create_object(Resource resource, std::string name_space, std::string body) {
  ApiRequest request = request_of("create", "POST", std::move(resource), std::move(name_space), "");
  request.body = std::move(body);
  return request;
}

ApiRequest update_object(Resource resource, std::string name_space, std::string name,
                         std::string body) {
  ApiRequest request =
      request_of("update", "PUT", std::move(resource), std::move(name_space), std::move(name));
  request.body = std::move(body);
  return request;
}

ApiRequest patch_object(Resource resource, std::string name_space, std::string name, PatchType type,
                        std::string body) {
  ApiRequest request =
      request_of("patch", "PATCH", std::move(resource), std::move(name_space), std::move(name));
  request.body = std::move(body);
  request.content_type = type == PatchType::Merge       ? kMergePatchType
                         : type == PatchType::Strategic ? kStrategicPatchType
                                                        : "application/json-patch+json";
  return request;
}

ApiRequest apply_object(Resource resource, std::string name_space, std::string name,
                        std::string body, std::string_view manager, bool force) {
  ApiRequest request = patch_object(std::move(resource), std::move(name_space), std::move(name),
                                    PatchType::Merge, std::move(body));
  request.verb = "apply";
  request.content_type = kApplyType;  // JSON is YAML
  request.query = {{"fieldManager", std::string(manager)}, {"force", force ? "true" : "false"}};
  request.again = Again::Always;
  return request;
}

ApiRequest delete_object(Resource resource, std::string name_space, std::string name,
                         std::string body) {
  ApiRequest request =
      request_of("delete", "DELETE", std::move(resource), std::move(name_space), std::move(name));
  request.body = std::move(body);
  return request;
}

ApiRequest bind_pod(std::string name_space, std::string pod, std::string body) {
  return posted_to("binding", std::move(name_space), std::move(pod), std::move(body));
}

ApiRequest evict_pod(std::string name_space, std::string pod, std::string body) {
  return posted_to("eviction", std::move(name_space), std::move(pod), std::move(body));
}

ApiRequest of_subresource(ApiRequest request, std::string subresource) {
  request.subresource = std::move(subresource);
  return request;
}

}  // namespace gs::kube
