// What a kubeconfig says about one cluster and one user, as values. Nothing is read here but the
// text: files and programs that it names are for credentials.hpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "net/http_client.hpp"
#include "net/tls_options.hpp"

namespace gs::kube {

// A program that says who we are (client.authentication.k8s.io).
struct ExecPlugin {
  std::string api_version;  // "v1" or "v1beta1"
  std::string command;
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  std::string install_hint;
  bool wants_cluster = false;  // told which cluster it is for
};

struct ClusterAccess {
  std::string source;  // for people: "context 'dev' of /etc/kube.conf"
  HttpUrl server;
  TlsOptions tls;
  std::string name_space = "default";
  std::string token, token_file;  // the file wins
  std::optional<ExecPlugin> exec;
  std::string exec_config;  // JSON that the cluster has for the plugin; empty: none
};

struct KubeconfigFile {
  std::string path;  // what relative paths in it are relative to
  std::string text;
};

// Files are merged as kubectl does it: for every name, and for the current context, the first file
// that has it counts. `context`: empty: the current one. Errors name the file and the field.
Result<ClusterAccess> read_kubeconfig(const std::vector<KubeconfigFile>& files,
                                      std::string_view context);

}  // namespace gs::kube
