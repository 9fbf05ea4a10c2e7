#include "drivers/kubernetes/node_pods.hpp"

#include <utility>

#include "base/log.hpp"

namespace gs::kube {
namespace {

ReflectorOptions pods_on(const std::string& node) {
  ReflectorOptions options;
  options.resource = pods();
  options.field_selector = "spec.nodeName=" + node;
  return options;
}

}  // namespace

NodePods::NodePods(Api& api, const std::string& node, std::function<void()> changed)
    : changed_(std::move(changed)),
      reflector_(api, pods_on(node), [this](const ObjectChange& change) { note(change); }) {}

void NodePods::note(const ObjectChange& change) {
  {
    const std::lock_guard lock(mutex_);
    if (change.kind == ObjectChange::Kind::Synced) {
      synced_ = true;
    } else if (change.kind == ObjectChange::Kind::Deleted) {
      pods_.erase(std::string(change.uid));
    } else {
      Result<std::optional<NodePod>> pod = decode_node_pod(change.object);
      if (!pod)
        log_warn("a pod can't be read", {{"pod", change.name}, {"error", pod.error().message}});
      if (pod && *pod)
        pods_[std::string(change.uid)] = std::move(**pod);
      else
        pods_.erase(std::string(change.uid));
    }
  }
  changed_();
}

std::optional<std::vector<NodePod>> NodePods::list() const {
  const std::lock_guard lock(mutex_);
  if (!synced_) return std::nullopt;
  std::vector<NodePod> out;
  for (const auto& [uid, pod] : pods_) out.push_back(pod);
  return out;
}

}  // namespace gs::kube
