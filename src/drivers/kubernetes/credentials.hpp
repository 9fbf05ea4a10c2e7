// Where the API server is, and who we are to it: from a kubeconfig, or from inside a pod.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "drivers/kubernetes/kubeconfig.hpp"

namespace gs::kube {

struct ClusterSearch {
  std::string kubeconfig;  // a path; empty: KUBECONFIG, ~/.kube/config, the pod's service account
  std::string context;     // empty: the kubeconfig's current one
  std::string service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
  // The environment; "" for what is not set.
  std::function<std::string(const char*)> variable;
};

// The first place of the list that has something; an error says which places were looked at.
Result<ClusterAccess> find_cluster(ClusterSearch search);

// What is shown to the server, as it is now: files are read, the exec plugin is run.
struct Identity {
  std::string token;  // empty: none
  TlsOptions tls;     // no files: everything is here
  std::optional<Instant> expires;
};

// May wait for the exec plugin, up to `timeout`.
Result<Identity> identify(const ClusterAccess& access, Duration timeout = seconds(60));

}  // namespace gs::kube
