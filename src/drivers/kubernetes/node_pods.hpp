// NodePods: the pods of one node that have not ended, kept true by a watch of that node only.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "drivers/kubernetes/reflector.hpp"
#include "wire/kube/node_pod.hpp"

namespace gs::kube {

class NodePods {
 public:
  // `changed` is called on the Api's loop.
  NodePods(Api& api, const std::string& node, std::function<void()> changed);

  void start() { reflector_.start(); }
  void stop() { reflector_.stop(); }

  // By UID; none: not all of them are known yet.
  std::optional<std::vector<NodePod>> list() const;

 private:
  void note(const ObjectChange& change);

  mutable std::mutex mutex_;
  std::map<std::string, NodePod> pods_;  // by UID; guarded by mutex_
  bool synced_ = false;                  // guarded by mutex_
  std::function<void()> changed_;
  Reflector reflector_;  // last: it calls note()
};

}  // namespace gs::kube
