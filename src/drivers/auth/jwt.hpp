// JSON Web Tokens (RFC 7519): HS256 with a shared secret, RS256 and ES256 with public keys.
//
// The key decides which algorithm it can verify; what a token says about itself never turns one
// kind of key into another, and brings no key of its own. Tokens without an end are refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "drivers/auth/crypto.hpp"
#include "service/access.hpp"

namespace gs {

enum class JwtAlgorithm : std::uint8_t { Hs256, Rs256, Es256 };

struct VerifyKey {
  std::string id;  // `kid`; empty: has none
  JwtAlgorithm algorithm = JwtAlgorithm::Rs256;
  PublicKey key;
};
// Keys of other kinds and uses are passed over, as RFC 7517 wants it; a set without any that we can
// use is an error, and so is one with a broken or weak key.
Result<std::vector<VerifyKey>> parse_jwks(std::string_view json);

inline constexpr std::size_t kMaxTokenBytes = 8192;
inline constexpr std::size_t kMinSecretBytes = 32;

struct JwtRules {
  std::string secret;           // of HS256; empty: HS256 is refused
  std::vector<VerifyKey> keys;  // of RS256 and ES256
  std::string issuer;           // empty: any
  std::string audience;         // empty: any
  Duration leeway = seconds(60);
};

// The claims, if the signature is right: bytes that whoever has the key has written.
Result<std::string> verified_payload(const JwtRules& rules, std::string_view token);
// `role` (or `tenant_id` alone: role tenant), `tenant_id` and `sub` of a token that is valid now.
Result<Caller> verify_jwt(const JwtRules& rules, std::string_view token, Instant now);

}  // namespace gs
