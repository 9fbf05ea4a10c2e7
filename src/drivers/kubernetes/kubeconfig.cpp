#include "drivers/kubernetes/kubeconfig.hpp"

#include <map>

#include "drivers/kubernetes/lenient_fields.hpp"
#include "net/base64.hpp"
#include "wire/yaml_json.hpp"

namespace gs::kube {
namespace {

// A cluster, user or context: the object, and the file that it comes from.
struct Entry {
  Json value;
  std::string file;
  std::string path;
};
using Entries = std::map<std::string, Entry>;

struct Merged {
  Entries clusters, users, contexts;
  std::string current_context;
  std::string files;  // for people
};

void collect(LenientFields& root, const char* list, const char* inner, const std::string& file,
             Entries& out) {
  root.each(list, [&](const Json& element, const std::string& path) {
    LenientFields entry(element, path, root.error());
    std::string name;
    entry.text("name", name);
    if (name.empty()) entry.fail("name", "is required");
    if (root.failed()) return;
    const Json* value = entry.find(inner);
    out.emplace(name, Entry{value == nullptr ? Json::object() : *value, file,
                            std::string(list) + "[" + name + "]." + inner});
  });
}

Result<Merged> merge(const std::vector<KubeconfigFile>& files) {
  Merged merged;
  for (const KubeconfigFile& file : files) {
    const auto json = yaml_to_json(file.text);
    if (!json) return invalid(file.path + ": " + json.error().message);
    std::string error;
    LenientFields root(*json, "", error);
    collect(root, "clusters", "cluster", file.path, merged.clusters);
    collect(root, "users", "user", file.path, merged.users);
    collect(root, "contexts", "context", file.path, merged.contexts);
    if (merged.current_context.empty()) root.text("current-context", merged.current_context);
    if (!error.empty()) return invalid(file.path + ": " + error);
    merged.files += (merged.files.empty() ? "" : ", ") + file.path;
  }
  return merged;
}

std::string beside(const std::string& file, const std::string& path) {
  if (path.empty() || path.starts_with('/')) return path;
  const auto slash = file.rfind('/');
  return slash == std::string::npos ? path : file.substr(0, slash + 1) + path;
}

// NAME-data (base64) wins over NAME (a file).
void read_pem(LenientFields& from, const std::string& name, const std::string& file,
              std::string& text, std::string& path) {
  std::string data;
  from.text((name + "-data").c_str(), data);
  from.text(name.c_str(), path);
  path = beside(file, path);
  if (data.empty()) return;
  const auto decoded = base64_decode(data);
  if (!decoded) return from.fail(name + "-data", "is not base64");
  text = *decoded;
  path.clear();
}

Status read_cluster(const Entry& entry, ClusterAccess& out) {
  std::string error;
  LenientFields in(entry.value, entry.path, error);
  std::string server, proxy;
  in.text("server", server);
  in.text("proxy-url", proxy);
  in.text("tls-server-name", out.tls.server_name);
  in.flag("insecure-skip-tls-verify", out.tls.trust_anybody);
  read_pem(in, "certificate-authority", entry.file, out.tls.ca, out.tls.ca_file);
  if (server.empty())
    in.fail("server", "is required");
  else if (!proxy.empty())
    in.fail("proxy-url", "is not supported: reach the API server directly");
  else if (out.tls.trust_anybody && !(out.tls.ca.empty() && out.tls.ca_file.empty()))
    in.fail("insecure-skip-tls-verify", "and certificate-authority exclude each other");
  else if (const auto url = parse_url(server))
    out.server = *url;
  else
    in.fail("server", ": " + url.error().message);
  in.each("extensions", [&](const Json& element, const std::string&) {
    if (element.is_object() && element.contains("name") && element.contains("extension") &&
        element["name"] == "client.authentication.k8s.io/exec")
      out.exec_config = element["extension"].dump(-1, ' ', false, Json::error_handler_t::replace);
  });
  if (!error.empty()) return invalid(entry.file + ": " + error);
  return ok_status();
}

void read_exec(LenientFields in, const std::string& file, ExecPlugin& out) {
  constexpr std::string_view kGroup = "client.authentication.k8s.io/";
  std::string api_version, mode;
  in.text("apiVersion", api_version);
  in.text("command", out.command);
  in.texts("args", out.args);
  in.text("installHint", out.install_hint);
  in.flag("provideClusterInfo", out.wants_cluster);
  in.text("interactiveMode", mode);
  in.each("env", [&](const Json& element, const std::string& path) {
    std::string name, value;
    LenientFields pair(element, path, in.error());
    pair.text("name", name);
    pair.text("value", value);
    out.env.emplace_back(std::move(name), std::move(value));
  });
  out.api_version = api_version.starts_with(kGroup) ? api_version.substr(kGroup.size()) : "";
  if (out.api_version != "v1" && out.api_version != "v1beta1")
    in.fail("apiVersion",
            "must be client.authentication.k8s.io/v1 or v1beta1; got '" + api_version + "'");
  if (out.command.empty()) in.fail("command", "is required");
  if (mode == "Always")
    in.fail("interactiveMode", "is Always, but there is nobody at a terminal to ask");
  if (out.command.find('/') != std::string::npos) out.command = beside(file, out.command);
}

void refuse_other_ways(LenientFields& in) {
  for (const char* name : {"username", "password"})
    if (in.find(name) != nullptr)
      in.fail(name,
              "is not supported: Kubernetes has no basic authentication since 1.19; use a "
              "token, a client certificate or an exec plugin");
  if (in.find("auth-provider") != nullptr)
    in.fail("auth-provider", "is not supported: use an exec plugin");
  for (const char* name : {"as", "as-uid", "as-groups", "as-user-extra"})
    if (in.find(name) != nullptr) in.fail(name, "is not supported: act as the user itself");
}

Status read_user(const Entry& entry, ClusterAccess& out) {
  std::string error;
  LenientFields in(entry.value, entry.path, error);
  refuse_other_ways(in);
  in.text("token", out.token);
  in.text("tokenFile", out.token_file);
  out.token_file = beside(entry.file, out.token_file);
  read_pem(in, "client-certificate", entry.file, out.tls.certificate, out.tls.certificate_file);
  read_pem(in, "client-key", entry.file, out.tls.key, out.tls.key_file);
  const bool has_certificate = !out.tls.certificate.empty() || !out.tls.certificate_file.empty();
  const bool has_key = !out.tls.key.empty() || !out.tls.key_file.empty();
  if (has_certificate && !has_key) in.fail("client-key", "is required with client-certificate");
  if (has_key && !has_certificate) in.fail("client-certificate", "is required with client-key");
  if (in.find("exec") != nullptr) read_exec(in.object("exec"), entry.file, out.exec.emplace());
  if (!error.empty()) return invalid(entry.file + ": " + error);
  return ok_status();
}

std::string names(const Entries& entries) {
  std::string out;
  for (const auto& [name, entry] : entries) out += (out.empty() ? "" : ", ") + name;
  return out.empty() ? "none" : out;
}

Result<const Entry*> entry_of(const Entries& entries, const std::string& name, const char* what,
                              const std::string& where) {
  const auto found = entries.find(name);
  if (found != entries.end()) return &found->second;
  return invalid(where + ": there is no " + what + " '" + name + "' (there are: " + names(entries) +
                 ")");
}

}  // namespace

Result<ClusterAccess> read_kubeconfig(const std::vector<KubeconfigFile>& files,
                                      std::string_view context) {
  auto merged = merge(files);
  if (!merged) return merged.error();
  const std::string wanted = context.empty() ? merged->current_context : std::string(context);
  if (wanted.empty())
    return invalid(merged->files +
                   ": current-context is not set; name one of: " + names(merged->contexts));
  const auto chosen = entry_of(merged->contexts, wanted, "context", merged->files);
  if (!chosen) return chosen.error();
  const Entry& entry = **chosen;
  std::string error, cluster_name, user_name;
  ClusterAccess access;
  LenientFields in(entry.value, entry.path, error);
  in.text("cluster", cluster_name);
  in.text("user", user_name);
  in.text("namespace", access.name_space);
  if (access.name_space.empty()) access.name_space = "default";
  if (!error.empty()) return invalid(entry.file + ": " + error);
  access.source = "context '" + wanted + "' of " + entry.file;
  const auto cluster =
      entry_of(merged->clusters, cluster_name, "cluster", entry.file + ": " + entry.path);
  if (!cluster) return cluster.error();
  if (Status s = read_cluster(**cluster, access); !s) return s.error();
  if (user_name.empty()) return access;  // an API server may let anonymous callers in
  const auto user = entry_of(merged->users, user_name, "user", entry.file + ": " + entry.path);
  if (!user) return user.error();
  if (Status s = read_user(**user, access); !s) return s.error();
  return access;
}

}  // namespace gs::kube
