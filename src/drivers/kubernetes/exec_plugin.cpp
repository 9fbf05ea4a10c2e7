#include "drivers/kubernetes/exec_plugin.hpp"

#include <nlohmann/json.hpp>

#include "drivers/kubernetes/child_process.hpp"
#include "drivers/kubernetes/lenient_fields.hpp"
#include "net/base64.hpp"
#include "wire/clock_json.hpp"
#include "wire/json_reader.hpp"
#include "wire/secret_file.hpp"

namespace gs::kube {
namespace {

constexpr std::string_view kGroup = "client.authentication.k8s.io/";
constexpr std::size_t kMaxOutput = 1U << 20;

std::string shortened(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  constexpr std::size_t kMost = 500;
  return text.size() <= kMost ? std::string(text)
                              : "..." + std::string(text.substr(text.size() - kMost));
}

}  // namespace

Result<ExecCredential> parse_exec_credential(std::string_view text, std::string_view api_version) {
  const auto json = parse_json(text);
  if (!json) return invalid("its output is not JSON: " + json.error().message);
  std::string error, kind, version, expires;
  ExecCredential out;
  LenientFields in(*json, "", error);
  in.text("kind", kind);
  in.text("apiVersion", version);
  LenientFields status = in.object("status");
  status.text("token", out.token);
  status.text("clientCertificateData", out.certificate);
  status.text("clientKeyData", out.key);
  status.text("expirationTimestamp", expires);
  if (kind != "ExecCredential") in.fail("kind", "must be ExecCredential; got '" + kind + "'");
  const std::string wanted = std::string(kGroup) + std::string(api_version);
  if (version != wanted) in.fail("apiVersion", "must be " + wanted + "; got '" + version + "'");
  if (!expires.empty()) {
    out.expires = parse_time(expires);
    if (!out.expires) status.fail("expirationTimestamp", "is not a time in RFC 3339");
  }
  if (out.certificate.empty() != out.key.empty())
    status.fail("clientCertificateData", "and clientKeyData go together");
  if (out.token.empty() && out.certificate.empty())
    status.fail("token", "or clientCertificateData is required");
  if (!error.empty()) return invalid(error);
  return out;
}

std::string exec_info(const ClusterAccess& access) {
  Json spec = {{"interactive", false}};
  if (access.exec->wants_cluster) {
    Json cluster = {{"server", access.server.text()}};
    if (!access.tls.server_name.empty()) cluster["tls-server-name"] = access.tls.server_name;
    if (access.tls.trust_anybody) cluster["insecure-skip-tls-verify"] = true;
    std::string ca = access.tls.ca;
    if (ca.empty() && !access.tls.ca_file.empty())
      if (auto text = read_text_file(access.tls.ca_file)) ca = std::move(*text);
    if (!ca.empty()) cluster["certificate-authority-data"] = base64_encode(ca);
    if (!access.exec_config.empty())
      cluster["config"] = Json::parse(access.exec_config, nullptr, false);
    spec["cluster"] = std::move(cluster);
  }
  const Json info = {{"apiVersion", std::string(kGroup) + access.exec->api_version},
                     {"kind", "ExecCredential"},
                     {"spec", std::move(spec)}};
  return info.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<ExecCredential> run_exec_plugin(const ClusterAccess& access, Duration timeout) {
  const ExecPlugin& plugin = *access.exec;
  const std::string who = access.source + ": exec plugin " + plugin.command;
  const std::string hint = plugin.install_hint.empty() ? "" : "\n" + plugin.install_hint;
  ChildCommand command{plugin.command, plugin.args, plugin.env, timeout, kMaxOutput};
  command.env.emplace_back("KUBERNETES_EXEC_INFO", exec_info(access));
  const auto output = run_child(command);
  if (!output) return Error{ErrorCode::Unauthenticated, who + ": " + output.error().message + hint};
  if (output->exit_code != 0)
    return Error{ErrorCode::Unauthenticated, who + " ended with code " +
                                                 std::to_string(output->exit_code) + ": " +
                                                 shortened(output->errors) + hint};
  auto credential = parse_exec_credential(output->output, plugin.api_version);
  if (!credential)
    return Error{ErrorCode::Unauthenticated, who + ": " + credential.error().message};
  return credential;
}

}  // namespace gs::kube
