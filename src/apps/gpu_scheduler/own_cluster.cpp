#include "apps/gpu_scheduler/own_cluster.hpp"

#include <cstdlib>
#include <utility>

#include "base/log.hpp"
#include "drivers/kubernetes/credentials.hpp"

namespace gs {

Result<std::unique_ptr<kube::Api>> connect_own_cluster(const ClusterFlags& flags, EventLoop& loop,
                                                       Metrics& metrics, kube::ApiOptions options) {
  kube::ClusterSearch search;
  search.kubeconfig = flags.kubeconfig;
  search.context = flags.context;
  search.variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  Result<kube::ClusterAccess> access = kube::find_cluster(std::move(search));
  if (!access) return access.error();
  log_info("using a cluster", {{"server", access->server.text()}, {"by", access->source}});
  loop.start();
  return kube::Api::create(loop, std::move(*access), std::move(options), &metrics);
}

}  // namespace gs
