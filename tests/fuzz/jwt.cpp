// Any text is a token that is refused, and any text is a JWKS or an error. A token whose signature
// is made right gets as far as its claims.
#include "drivers/auth/jwt.hpp"

#include <cstdint>
#include <string>

#include "base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1 || size > 16384) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  gs::JwtRules rules;
  rules.secret = std::string(32, 's');
  const gs::Instant now{1'800'000'000'000};
  if (data[0] % 3 == 0) {
    CHECK(!gs::verify_jwt(rules, text, now).ok());  // or somebody has broken HMAC
  } else if (data[0] % 3 == 1) {
    const std::string body =
        gs::base64url_encode(R"({"alg":"HS256"})") + "." + gs::base64url_encode(text);
    const auto caller = gs::verify_jwt(
        rules, body + "." + gs::base64url_encode(gs::hmac_sha256(rules.secret, body)), now);
    CHECK(!caller.ok() || gs::validate(*caller).ok());
  } else {
    (void)gs::parse_jwks(text);
  }
  return 0;
}
