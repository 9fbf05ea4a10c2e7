// The cluster that a command works for: that of a kubeconfig, or the one that it runs in.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "drivers/kubernetes/api.hpp"
#include "net/event_loop.hpp"
#include "net/metrics.hpp"

namespace gs {

struct ClusterFlags {
  std::string kubeconfig, context;  // empty: as kubectl finds it, then the pod's service account
};

// Its client, on the loop, which is started; logs which cluster it is.
Result<std::unique_ptr<kube::Api>> connect_own_cluster(const ClusterFlags& flags, EventLoop& loop,
                                                       Metrics& metrics,
                                                       kube::ApiOptions options = {});

}  // namespace gs
