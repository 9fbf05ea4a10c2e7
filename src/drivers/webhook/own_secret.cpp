#include "drivers/webhook/own_secret.hpp"

#include <optional>

#include "net/base64.hpp"

namespace gs::webhook {
namespace {

constexpr const char* kBundle = "ca.crt";
constexpr const char* kAuthorityKey = "ca.key";
constexpr const char* kCertificate = "tls.crt";
constexpr const char* kKey = "tls.key";

// Empty where there is none.
Result<std::string> entry(const Json& secret, const char* name) {
  const Json::json_pointer data("/data");
  if (!secret.contains(data) || !secret[data].is_object() || !secret[data].contains(name))
    return std::string();
  const auto* text = secret[data][name].get_ptr<const std::string*>();
  const std::optional<std::string> bytes = text ? base64_decode(*text) : std::nullopt;
  if (!bytes) return invalid(std::string("its entry ") + name + " is not base64");
  return *bytes;
}

}  // namespace

Result<CertificateSet> read_own_secret(const Json& secret) {
  CertificateSet set;
  const auto read = [&](const char* name, std::string& into) -> Status {
    Result<std::string> text = entry(secret, name);
    if (!text) return text.error();
    into = std::move(*text);
    return ok_status();
  };
  const Status steps[] = {read(kBundle, set.bundle), read(kAuthorityKey, set.authority_key),
                          read(kCertificate, set.serving.certificate), read(kKey, set.serving.key)};
  for (const Status& step : steps)
    if (!step) return step.error();
  if (!set.serving.certificate.empty() && set.authority_key.empty())
    return invalid(
        "it holds a certificate that was not made here: mount it and use --tls-cert and --tls-key, "
        "or name another Secret");
  return set;
}

Json new_secret(const std::string& name_space, const std::string& name) {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"type", "kubernetes.io/tls"},
          {"metadata",
           {{"name", name},
            {"namespace", name_space},
            {"labels",
             {{"app.kubernetes.io/name", "gpu-scheduler"},
              {"app.kubernetes.io/managed-by", "gpu-scheduler-webhook"}}}}}};
}

void fill_secret(Json& secret, const CertificateSet& set) {
  Json& data = secret["data"];
  if (!data.is_object()) data = Json::object();
  data[kBundle] = base64_encode(set.bundle);
  data[kAuthorityKey] = base64_encode(set.authority_key);
  data[kCertificate] = base64_encode(set.serving.certificate);
  data[kKey] = base64_encode(set.serving.key);
}

}  // namespace gs::webhook
