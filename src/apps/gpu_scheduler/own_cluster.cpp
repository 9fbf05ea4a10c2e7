#include "apps/gpu_scheduler/own_cluster.hpp"

#include <cstdlib>
#include <utility>

#include "base/log.hpp"

namespace gs {

Result<kube::ClusterAccess> find_own_cluster(const std::string& kubeconfig,
                                             const std::string& context) {
  kube::ClusterSearch search;
  search.kubeconfig = kubeconfig;
  search.context = context;
  search.variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  Result<kube::ClusterAccess> access = kube::find_cluster(std::move(search));
  if (access)
    log_info("using a cluster", {{"server", access->server.text()}, {"by", access->source}});
  return access;
}

}  // namespace gs
