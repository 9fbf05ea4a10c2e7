// What the webhook asks of the cluster's API server, in the fewest words: this driver does not know
// the client that carries it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/log.hpp"
#include "base/result.hpp"
#include "wire/kube/claim.hpp"

namespace gs::webhook {

struct ClusterRequest {
  std::string method = "GET";
  std::string path;
  std::string body;
  std::string content_type = "application/json";
};

struct ClusterReply {
  int code = 0;  // of HTTP; 0: there was no answer
  std::string body;
  std::string error;  // where it is not good: in words

  bool ok() const { return code >= 200 && code < 300; }
};

// Waits for the answer.
using AskCluster = std::function<ClusterReply(const ClusterRequest&)>;

// Nothing: there is no such claim. Called once, on any thread.
using ClaimFound = std::function<void(Result<std::optional<kube::GpuClaim>>)>;
using FindClaim =
    std::function<void(const std::string& name_space, const std::string& name, ClaimFound found)>;

}  // namespace gs::webhook
