#include "drivers/auth/jwt.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gs {
namespace {

using nlohmann::json;

Error refused(std::string_view why) {
  return {ErrorCode::Unauthenticated, fmt::format("token refused: {}", why)};
}

struct Parts {
  std::string_view signed_text;  // header and payload, as they were signed
  json header;
  std::string payload;
  std::string signature;
};

Result<Parts> split(std::string_view token) {
  if (token.size() > kMaxTokenBytes) return refused("longer than 8192 bytes");
  const std::size_t first = token.find('.'), last = token.rfind('.');
  if (first == token.npos || first == last || token.find('.', first + 1) != last)
    return refused("must have three parts");
  const auto header = base64url_decode(token.substr(0, first));
  auto payload = base64url_decode(token.substr(first + 1, last - first - 1));
  auto signature = base64url_decode(token.substr(last + 1));
  if (!header || !payload || !signature) return refused("not base64url");
  Parts parts{token.substr(0, last), json::parse(*header, nullptr, false), std::move(*payload),
              std::move(*signature)};
  if (!parts.header.is_object()) return refused("its header is not a JSON object");
  return parts;
}

std::string text_of(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<JwtAlgorithm> algorithm_of(const json& header) {
  const std::string name = text_of(header, "alg");
  if (name == "HS256") return JwtAlgorithm::Hs256;
  if (name == "RS256") return JwtAlgorithm::Rs256;
  if (name == "ES256") return JwtAlgorithm::Es256;
  return std::nullopt;
}

// The one key of this algorithm with the token's `kid`; where the token has none, the only key.
const VerifyKey* key_for(const JwtRules& rules, JwtAlgorithm algorithm, const json& header) {
  const bool named = header.contains("kid");
  const std::string id = text_of(header, "kid");
  const VerifyKey* found = nullptr;
  for (const VerifyKey& key : rules.keys) {
    if (key.algorithm != algorithm || (named && key.id != id)) continue;
    if (found != nullptr) return nullptr;
    found = &key;
  }
  return named && id.empty() ? nullptr : found;
}

Status verify_signature(const JwtRules& rules, const Parts& parts) {
  const std::optional<JwtAlgorithm> algorithm = algorithm_of(parts.header);
  if (!algorithm) return refused("`alg` must be HS256, RS256 or ES256");
  // Extensions that change what the signature covers; we know none.
  if (parts.header.contains("crit")) return refused("`crit` is not supported");
  if (*algorithm == JwtAlgorithm::Hs256) {
    if (rules.secret.size() < kMinSecretBytes) return refused("HS256 is not configured");
    return equal_in_constant_time(hmac_sha256(rules.secret, parts.signed_text), parts.signature)
               ? ok_status()
               : refused("wrong signature");
  }
  const VerifyKey* key = key_for(rules, *algorithm, parts.header);
  if (key == nullptr) return refused("no key for its `alg` and `kid`");
  const bool good = *algorithm == JwtAlgorithm::Rs256
                        ? verify_rs256(key->key, parts.signed_text, parts.signature)
                        : verify_es256(key->key, parts.signed_text, parts.signature);
  return good ? ok_status() : refused("wrong signature");
}

// Seconds since 1970, maybe with a fraction. None: not there. An error: not a time.
Result<std::optional<Instant>> time_claim(const json& claims, const char* name) {
  const auto found = claims.find(name);
  if (found == claims.end()) return std::optional<Instant>();
  if (!found->is_number()) return refused(fmt::format("`{}` is not a number", name));
  const double at = found->get<double>();
  if (!(at >= 0 && at <= 1e12)) return refused(fmt::format("`{}` is not a time", name));
  return std::optional<Instant>(Instant{std::llround(at * 1000)});
}

Status check_time(const JwtRules& rules, const json& claims, Instant now) {
  const auto expires = time_claim(claims, "exp"), starts = time_claim(claims, "nbf");
  if (!expires.ok()) return expires.error();
  if (!starts.ok()) return starts.error();
  if (!*expires) return refused("it has no `exp`");
  if (now >= **expires + rules.leeway) return refused("it has expired");
  if (*starts && now + rules.leeway < **starts) return refused("it is not valid yet");
  return ok_status();
}

Status check_parties(const JwtRules& rules, const json& claims) {
  if (!rules.issuer.empty() && text_of(claims, "iss") != rules.issuer)
    return refused("its `iss` is another one");
  if (rules.audience.empty()) return ok_status();
  const auto audience = claims.find("aud");
  if (audience == claims.end()) return refused("it has no `aud`");
  const json list = audience->is_array() ? *audience : json::array({*audience});
  for (const json& one : list)
    if (one == rules.audience) return ok_status();
  return refused("it is for another `aud`");
}

// Names go into logs and rows.
bool is_plain(const std::string& text) {
  return text.size() <= 200 && std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

Result<Caller> caller_of(const json& claims) {
  for (const char* name : {"role", "tenant_id", "sub"})
    if (claims.contains(name) && !claims[name].is_string())
      return refused(fmt::format("`{}` is not a text", name));
  Caller caller;
  caller.tenant = text_of(claims, "tenant_id");
  caller.name = text_of(claims, "sub");
  if (caller.name.empty()) caller.name = "token";
  const std::optional<Role> role = claims.contains("role") ? role_of(text_of(claims, "role"))
                                   : caller.tenant.empty() ? std::nullopt
                                                           : std::optional(Role::Tenant);
  if (!role) return refused("`role` must be admin, tenant, viewer or agent");
  caller.role = *role;
  if (!is_plain(caller.tenant) || !is_plain(caller.name))
    return refused("`sub` or `tenant_id` is too long or has control characters");
  if (const Status status = validate(caller); !status.ok()) return refused(status.error().message);
  return caller;
}

}  // namespace

Result<std::string> verified_payload(const JwtRules& rules, std::string_view token) {
  Result<Parts> parts = split(token);
  if (!parts.ok()) return parts.error();
  if (const Status status = verify_signature(rules, *parts); !status.ok()) return status.error();
  return std::move(parts->payload);
}

Result<Caller> verify_jwt(const JwtRules& rules, std::string_view token, Instant now) {
  const Result<std::string> payload = verified_payload(rules, token);
  if (!payload.ok()) return payload.error();
  const json claims = json::parse(*payload, nullptr, false);
  if (!claims.is_object()) return refused("its claims are not a JSON object");
  if (const Status status = check_time(rules, claims, now); !status.ok()) return status.error();
  if (const Status status = check_parties(rules, claims); !status.ok()) return status.error();
  return caller_of(claims);
}

}  // namespace gs
