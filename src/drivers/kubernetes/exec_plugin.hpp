// Asks a program who we are (client.authentication.k8s.io/v1 and v1beta1): it writes an
// ExecCredential to its standard output.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "drivers/kubernetes/kubeconfig.hpp"

namespace gs::kube {

struct ExecCredential {
  std::string token;
  std::string certificate, key;    // PEM
  std::optional<Instant> expires;  // none: as long as the API server takes it
};

Result<ExecCredential> parse_exec_credential(std::string_view text, std::string_view api_version);

// Waits for the program, at most this long. Its standard error is part of the message if it fails.
Result<ExecCredential> run_exec_plugin(const ClusterAccess& access, Duration timeout);

// What the program finds in KUBERNETES_EXEC_INFO.
std::string exec_info(const ClusterAccess& access);

}  // namespace gs::kube
