// Public keys from a JSON Web Key Set (RFC 7517).
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "drivers/auth/jwt.hpp"

namespace gs {
namespace {

using nlohmann::json;

std::string text_of(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string number_of(const json& object, const char* name) {
  return base64url_decode(text_of(object, name)).value_or("");
}

bool is_for_signatures(const json& jwk) {
  if (jwk.contains("use") && text_of(jwk, "use") != "sig") return false;
  const auto operations = jwk.find("key_ops");
  if (operations == jwk.end()) return true;
  if (!operations->is_array()) return false;
  for (const json& operation : *operations)
    if (operation == "verify") return true;
  return false;
}

// None: of no use here. A null key: broken or weak.
std::optional<VerifyKey> key_of(const json& jwk) {
  if (!jwk.is_object() || !is_for_signatures(jwk)) return std::nullopt;
  const std::string type = text_of(jwk, "kty"), algorithm = text_of(jwk, "alg");
  const bool any = !jwk.contains("alg");
  if (type == "RSA" && (any || algorithm == "RS256"))
    return VerifyKey{text_of(jwk, "kid"), JwtAlgorithm::Rs256,
                     rsa_public_key(number_of(jwk, "n"), number_of(jwk, "e"))};
  if (type == "EC" && text_of(jwk, "crv") == "P-256" && (any || algorithm == "ES256"))
    return VerifyKey{text_of(jwk, "kid"), JwtAlgorithm::Es256,
                     p256_public_key(number_of(jwk, "x"), number_of(jwk, "y"))};
  return std::nullopt;
}

}  // namespace

Result<std::vector<VerifyKey>> parse_jwks(std::string_view text) {
  if (text.size() > (1U << 20)) return invalid("longer than 1 MiB");
  const json set = json::parse(text, nullptr, false);
  if (!set.is_object() || !set.contains("keys") || !set["keys"].is_array())
    return invalid("must be a JSON object with a list `keys`");
  std::vector<VerifyKey> keys;
  std::set<std::pair<JwtAlgorithm, std::string>> seen;
  std::size_t number = 0;
  for (const json& jwk : set["keys"]) {
    ++number;
    if (number > 1000) return invalid("more than 1000 keys");
    std::optional<VerifyKey> key = key_of(jwk);
    if (!key) continue;
    if (key->key == nullptr)
      return invalid(fmt::format("key {}: broken, or RSA of less than 2048 bits", number));
    if (!seen.emplace(key->algorithm, key->id).second)
      return invalid(fmt::format("key {}: its `kid` was used above, or several have none", number));
    keys.push_back(std::move(*key));
  }
  if (keys.empty()) return invalid("no key for RS256 or ES256 (P-256) signatures");
  return keys;
}

}  // namespace gs
