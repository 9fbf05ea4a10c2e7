#include "drivers/kubernetes/credentials.hpp"

#include <cstdlib>
#include <filesystem>

#include "drivers/kubernetes/exec_plugin.hpp"
#include "wire/secret_file.hpp"

namespace gs::kube {
namespace {

constexpr std::size_t kMaxKubeconfig = 16U << 20;

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(':', at), text.size());
    if (end > at) out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// As kubectl: files of a list that are not there are passed over, but not all of them.
Result<ClusterAccess> from_files(const std::vector<std::string>& paths,
                                 const std::string& context) {
  std::vector<KubeconfigFile> files;
  std::string missing;
  for (const std::string& path : paths) {
    auto text = read_text_file(path, kMaxKubeconfig);
    if (!text && text.error().code == ErrorCode::NotFound) {
      missing += (missing.empty() ? "" : ", ") + path;
      continue;
    }
    if (!text) return invalid("kubeconfig " + text.error().message);
    files.push_back({path, std::move(*text)});
  }
  if (files.empty()) return not_found("kubeconfig " + missing + ": there is no such file");
  return read_kubeconfig(files, context);
}

Result<ClusterAccess> from_pod(const ClusterSearch& search, const std::string& host,
                               const std::string& port) {
  ClusterAccess access;
  access.source = "service account of the pod";
  const bool is_v6 = host.find(':') != std::string::npos;
  const auto url = parse_url("https://" + (is_v6 ? "[" + host + "]" : host) + ":" + port);
  if (!url)
    return invalid("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT: " + url.error().message);
  access.server = *url;
  access.token_file = search.service_account + "/token";
  access.tls.ca_file = search.service_account + "/ca.crt";
  if (auto name_space = read_secret(search.service_account + "/namespace"))
    access.name_space = *name_space;
  return access;
}

// Reads what the path names into the text, if the text is not there already.
Status load(std::string& text, std::string& path, const std::string& what) {
  if (path.empty()) return ok_status();
  if (text.empty()) {
    auto read = read_text_file(path);
    if (!read) return invalid(what + " " + read.error().message);
    text = std::move(*read);
    if (text.empty()) return invalid(what + " " + path + ": is empty");
  }
  path.clear();
  return ok_status();
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.pop_back();
  return text;
}

}  // namespace

Result<ClusterAccess> find_cluster(ClusterSearch search) {
  if (!search.variable)
    search.variable = [](const char* name) {
      const char* value = std::getenv(name);
      return std::string(value == nullptr ? "" : value);
    };
  if (!search.kubeconfig.empty()) return from_files({search.kubeconfig}, search.context);
  const auto listed = split_list(search.variable("KUBECONFIG"));
  if (!listed.empty()) return from_files(listed, search.context);
  const std::string home = search.variable("HOME");
  const std::string usual = home.empty() ? "" : home + "/.kube/config";
  if (!usual.empty() && exists(usual)) return from_files({usual}, search.context);
  const std::string host = search.variable("KUBERNETES_SERVICE_HOST");
  const std::string port = search.variable("KUBERNETES_SERVICE_PORT");
  if (!host.empty() && !port.empty()) return from_pod(search, host, port);
  return not_found("no cluster is configured: no --kubeconfig is given, KUBECONFIG is not set, " +
                   (usual.empty() ? std::string("HOME is not set") : usual + " is not there") +
                   ", and KUBERNETES_SERVICE_HOST is not set as it is inside a pod");
}

Result<Identity> identify(const ClusterAccess& access, Duration timeout) {
  Identity identity;
  identity.tls = access.tls;
  TlsOptions& tls = identity.tls;
  for (const Status& s : {load(tls.ca, tls.ca_file, "certificate-authority"),
                          load(tls.certificate, tls.certificate_file, "client-certificate"),
                          load(tls.key, tls.key_file, "client-key")})
    if (!s) return invalid(access.source + ": " + s.error().message);
  identity.token = access.token;
  if (!access.token_file.empty()) {
    std::string path = access.token_file, text;
    if (Status s = load(text, path, "tokenFile"); !s)
      return invalid(access.source + ": " + s.error().message);
    identity.token = trimmed(std::move(text));
  }
  // As everywhere else, a plugin is asked only where nothing simpler is given.
  const bool is_known = !identity.token.empty() || !tls.certificate.empty();
  if (!access.exec || is_known) return identity;
  auto credential = run_exec_plugin(access, timeout);
  if (!credential) return credential.error();
  identity.token = std::move(credential->token);
  tls.certificate = std::move(credential->certificate);
  tls.key = std::move(credential->key);
  identity.expires = credential->expires;
  return identity;
}

}  // namespace gs::kube
