// The cluster that a command works for: that of a kubeconfig, or the one that it runs in.
#pragma once

#include <string>

#include "base/result.hpp"
#include "drivers/kubernetes/credentials.hpp"

namespace gs {

// Empty: as kubectl finds it, then the pod's service account. Logs which one it is.
Result<kube::ClusterAccess> find_own_cluster(const std::string& kubeconfig,
                                             const std::string& context);

}  // namespace gs
