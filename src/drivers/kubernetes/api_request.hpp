// What can be asked of a Kubernetes API server, as values: a verb on a resource, with a body and
// how it may be tried again. Nothing is sent here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "net/http_pool.hpp"

namespace gs::kube {

struct Resource {
  std::string group;  // empty: the core group
  std::string version = "v1";
  std::string plural;
  bool is_namespaced = true;

  // Below the server's URL. Without a namespace: of all namespaces.
  std::string path(std::string_view name_space, std::string_view name = {},
                   std::string_view subresource = {}) const;
  // "leases.coordination.k8s.io", as kubectl says it.
  std::string text() const;
};

Resource pods();
Resource nodes();
Resource events();
Resource leases();

// When a request may be sent a second time.
enum class Again {
  Always,    // doing it twice is doing it once: reads, server-side apply
  IfUndone,  // only where the server certainly has not done it
  Never
};

struct ApiRequest {
  std::string verb = "get";  // as the API's audit calls it; of metrics
  std::string method = "GET";
  Resource resource;
  std::string name_space, name, subresource;
  std::string path;  // instead of a resource
  std::vector<std::pair<std::string, std::string>> query;
  std::string body;
  std::string content_type = "application/json";
  Lane lane = Lane::Ordinary;
  Again again = Again::IfUndone;
  Duration timeout = seconds(30);  // of one try

  std::string target() const;
};

struct ListOptions {
  std::string label_selector, field_selector;
  int limit = 500;               // objects of one page; 0: all at once
  std::string next;              // of the page before
  std::string resource_version;  // empty: the newest
};
struct WatchOptions {
  std::string label_selector, field_selector;
  std::string resource_version;
  Duration timeout = minutes(5);  // the server ends the watch then
};

ApiRequest read_object(Resource resource, std::string name_space, std::string name);
// What is no object: "/version", or "/apis/GROUP/VERSION" to see which resources are served.
ApiRequest read_path(std::string path);
ApiRequest list_objects(Resource resource, std::string name_space, const ListOptions& options);
ApiRequest watch_objects(Resource resource, std::string name_space, const WatchOptions& options);
ApiRequest create_object(Resource resource, std::string name_space, std::string body);
// The body's resourceVersion makes it fail with Conflict where somebody else was quicker.
ApiRequest update_object(Resource resource, std::string name_space, std::string name,
                         std::string body);

enum class PatchType { Merge, Strategic, Json };
ApiRequest patch_object(Resource resource, std::string name_space, std::string name, PatchType type,
                        std::string body);
// Server-side apply: the fields of the body are ours; `force` takes them from others.
ApiRequest apply_object(Resource resource, std::string name_space, std::string name,
                        std::string body, std::string_view manager, bool force = true);

// The body says which one is meant (preconditions); empty: whichever has the name.
ApiRequest delete_object(Resource resource, std::string name_space, std::string name,
                         std::string body = {});

// The body is a Binding. Answered with Conflict where the pod is not the one that was meant, was
// changed, or is bound already.
ApiRequest bind_pod(std::string name_space, std::string pod, std::string body);
// The body is an Eviction. Answered with TooManyRequests and the cause DisruptionBudget where a
// budget forbids it now.
ApiRequest evict_pod(std::string name_space, std::string pod, std::string body);

// The same request for the object's status, or another subresource.
ApiRequest of_subresource(ApiRequest request, std::string subresource);

}  // namespace gs::kube
