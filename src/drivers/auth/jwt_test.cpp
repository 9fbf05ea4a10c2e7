#include "drivers/auth/jwt.hpp"

#include <gtest/gtest.h>

#include "drivers/auth/signer_test.hpp"

namespace gs {
namespace {

using namespace testing_keys;

const std::string kSecret(32, 's');
constexpr Instant kNow{1'800'000'000'000};

std::string claims(const std::string& more = "", const std::string& exp = "1800000100") {
  return R"({"sub":"ann","role":"tenant","tenant_id":"tenant-7","exp":)" + exp + more + "}";
}

JwtRules hs256() {
  JwtRules rules;
  rules.secret = kSecret;
  return rules;
}

JwtRules with_keys(const std::string& jwks) {
  JwtRules rules;
  const auto keys = parse_jwks(jwks);
  EXPECT_TRUE(keys.ok()) << keys.error().message;
  if (keys.ok()) rules.keys = *keys;
  return rules;
}

// Who it is, or why not.
std::string outcome(const JwtRules& rules, const std::string& token, Instant now = kNow) {
  const auto caller = verify_jwt(rules, token, now);
  if (!caller.ok()) {
    EXPECT_EQ(caller.error().code, ErrorCode::Unauthenticated);
    return caller.error().message;
  }
  return std::string(to_string(caller->role)) + " " + caller->tenant + " " + caller->name;
}

std::string of_claims(const std::string& text) {
  return outcome(hs256(), hs256_token(kSecret, text));
}

// RFC 7515, appendix A.1 to A.3: the same claims, signed in three ways.
const std::string kRfcClaims =
    "{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n \"http://example.com/is_root\":true}";
const std::string kRfcPayload =
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlf"
    "Q";

TEST(Jwt, rfc_7515_a1_hs256) {
  JwtRules rules;
  rules.secret = *base64url_decode(
      "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow");
  const auto payload =
      verified_payload(rules, "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." + kRfcPayload +
                                  ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
  ASSERT_TRUE(payload.ok()) << payload.error().message;
  EXPECT_EQ(*payload, kRfcClaims);
}

TEST(Jwt, rfc_7515_a2_rs256) {
  const JwtRules rules = with_keys(
      R"({"keys":[{"kty":"RSA","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp)"
      R"(-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7)"
      R"(OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qC)"
      R"(o5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXp)"
      R"(oQ","e":"AQAB"}]})");
  const auto payload = verified_payload(
      rules, "eyJhbGciOiJSUzI1NiJ9." + kRfcPayload +
                 ".cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_l"
                 "F5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vR"
                 "K5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsq"
                 "tFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVr"
                 "Bp0igcN_IoypGlUPQGe77Rw");
  ASSERT_TRUE(payload.ok()) << payload.error().message;
  EXPECT_EQ(*payload, kRfcClaims);
}

TEST(Jwt, rfc_7515_a3_es256) {
  const JwtRules rules = with_keys(
      R"({"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",)"
      R"("y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]})");
  const std::string signature =
      "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
  const auto payload =
      verified_payload(rules, "eyJhbGciOiJFUzI1NiJ9." + kRfcPayload + "." + signature);
  ASSERT_TRUE(payload.ok()) << payload.error().message;
  EXPECT_EQ(*payload, kRfcClaims);
}

TEST(Jwt, the_claims_say_who_it_is) {
  EXPECT_EQ(of_claims(claims()), "tenant tenant-7 ann");
  EXPECT_EQ(of_claims(R"({"role":"admin","sub":"root","exp":1800000100})"), "admin  root");
  EXPECT_EQ(of_claims(R"({"tenant_id":"t","exp":1800000100.5})"), "tenant t token");
  EXPECT_EQ(of_claims(R"({"role":"viewer","tenant_id":"t","exp":1.8e9})"), "viewer t token");
  for (const char* bad :
       {R"({"sub":"x","exp":1800000100})", R"({"role":"root","exp":1800000100})",
        R"({"role":"tenant","exp":1800000100})", R"({"role":["admin"],"exp":1800000100})",
        R"({"role":"admin","tenant_id":"t","exp":1800000100})",
        R"({"role":"admin","sub":"a\nb","exp":1800000100})", R"({"role":null,"exp":1800000100})",
        R"(["admin"])", "not json", ""})
    EXPECT_TRUE(of_claims(bad).starts_with("token refused")) << bad << ": " << of_claims(bad);
}

TEST(Jwt, times_hold_with_a_minute_of_leeway) {
  const std::string token = hs256_token(kSecret, claims(R"(,"nbf":1800000000)", "1800000100"));
  const auto at = [&](int second) {
    return outcome(hs256(), token, kNow + seconds(second)).starts_with("tenant");
  };
  EXPECT_FALSE(at(-61));
  EXPECT_TRUE(at(-60));
  EXPECT_TRUE(at(159));
  EXPECT_FALSE(at(160));
  EXPECT_EQ(of_claims(R"({"role":"admin"})"), "token refused: it has no `exp`");
  for (const char* bad : {"\"1800000100\"", "-1", "1e300", "null", "true"})
    EXPECT_TRUE(of_claims(claims("", bad)).starts_with("token refused")) << bad;
  EXPECT_NE(of_claims(claims(R"(,"nbf":"now")")), "tenant tenant-7 ann");
}

TEST(Jwt, issuer_and_audience_are_those_that_are_configured) {
  JwtRules rules = hs256();
  rules.issuer = "https://id.example";
  rules.audience = "gpu";
  const auto with = [&](const std::string& more) {
    return outcome(rules, hs256_token(kSecret, claims(more)));
  };
  const std::string good = "tenant tenant-7 ann";
  EXPECT_EQ(with(R"(,"iss":"https://id.example","aud":"gpu")"), good);
  EXPECT_EQ(with(R"(,"iss":"https://id.example","aud":["x","gpu"])"), good);
  EXPECT_NE(with(R"(,"iss":"https://id.example","aud":["x"])"), good);
  EXPECT_NE(with(R"(,"iss":"https://id.example","aud":[])"), good);
  EXPECT_NE(with(R"(,"iss":"https://id.example")"), good);
  EXPECT_NE(with(R"(,"iss":"https://id.example.evil","aud":"gpu")"), good);
  EXPECT_NE(with(R"(,"iss":["https://id.example"],"aud":"gpu")"), good);
  EXPECT_NE(with(R"(,"aud":"gpu")"), good);
}

TEST(Jwt, a_changed_token_is_refused) {
  const std::string token = hs256_token(kSecret, claims());
  for (std::size_t i = 0; i < token.size(); ++i) {
    std::string changed = token;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_TRUE(outcome(hs256(), changed).starts_with("token refused")) << i;
    EXPECT_TRUE(outcome(hs256(), token.substr(0, i)).starts_with("token refused")) << i;
  }
  EXPECT_TRUE(outcome(hs256(), token + "=").starts_with("token refused"));
  EXPECT_TRUE(outcome(hs256(), token + ".x").starts_with("token refused"));
  EXPECT_TRUE(outcome(hs256(), std::string(20'000, 'a')).starts_with("token refused"));
}

TEST(Jwt, no_algorithm_is_no_signature) {
  for (const char* header : {R"({"alg":"none"})", R"({"alg":"None"})", R"({"alg":"NONE"})",
                             R"({"alg":""})", R"({})", R"({"alg":null})", R"({"alg":["HS256"]})",
                             R"({"alg":"hs256"})", R"({"alg":"HS512"})", "null"}) {
    const std::string text = text_to_sign(header, claims());
    EXPECT_TRUE(outcome(hs256(), text + ".").starts_with("token refused")) << header;
    EXPECT_TRUE(
        outcome(hs256(), hs256_token(kSecret, claims(), header)).starts_with("token refused"))
        << header;
  }
  EXPECT_EQ(outcome(hs256(), hs256_token(kSecret, claims(), R"({"alg":"HS256","crit":["b64"]})")),
            "token refused: `crit` is not supported");
}

TEST(Jwt, public_keys_are_chosen_by_kid) {
  const PrivateKey rsa = new_rsa(), other = new_rsa(), p256 = new_p256();
  const JwtRules rules = with_keys(R"({"keys":[)" + rsa_jwk(rsa, R"(,"kid":"r1","alg":"RS256")") +
                                   "," + rsa_jwk(other, R"(,"kid":"r2","use":"sig")") + "," +
                                   p256_jwk(p256, R"(,"kid":"e1")") + "]}");
  ASSERT_EQ(rules.keys.size(), 3U);
  const std::string good = "tenant tenant-7 ann";
  EXPECT_EQ(outcome(rules, token(rsa, R"({"alg":"RS256","kid":"r1"})", claims())), good);
  EXPECT_EQ(outcome(rules, token(other, R"({"alg":"RS256","kid":"r2"})", claims())), good);
  EXPECT_EQ(outcome(rules, token(p256, R"({"alg":"ES256","kid":"e1"})", claims())), good);
  EXPECT_EQ(outcome(rules, token(p256, R"({"alg":"ES256"})", claims())), good);  // the only one
  EXPECT_EQ(outcome(rules, token(rsa, R"({"alg":"RS256","kid":"r2"})", claims())),
            "token refused: wrong signature");
  for (const char* header : {R"({"alg":"RS256"})", R"({"alg":"RS256","kid":"x"})",
                             R"({"alg":"RS256","kid":""})", R"({"alg":"ES256","kid":"r1"})"})
    EXPECT_EQ(outcome(rules, token(rsa, header, claims())),
              "token refused: no key for its `alg` and `kid`")
        << header;
}

// The classic attack: the public key, which everybody has, taken for a secret of HS256.
TEST(Jwt, a_public_key_is_no_secret) {
  const PrivateKey rsa = new_rsa();
  const std::string jwks = R"({"keys":[)" + rsa_jwk(rsa, R"(,"kid":"r1")") + "]}";
  const JwtRules rules = with_keys(jwks);
  const std::string n = *base64url_decode(number(rsa, OSSL_PKEY_PARAM_RSA_N));
  for (const std::string& secret : {jwks, n, std::string()})
    EXPECT_EQ(outcome(rules, hs256_token(secret, claims(), R"({"alg":"HS256","kid":"r1"})")),
              "token refused: HS256 is not configured");
  JwtRules both = rules;
  both.secret = kSecret;
  EXPECT_EQ(outcome(both, hs256_token(n, claims())), "token refused: wrong signature");
  // And a token that brings its own key.
  const PrivateKey mine = new_rsa();
  EXPECT_EQ(outcome(rules, token(mine, R"({"alg":"RS256","jwk":)" + rsa_jwk(mine) + "}", claims())),
            "token refused: wrong signature");
}

TEST(Jwt, es256_signatures_have_one_form) {
  const PrivateKey p256 = new_p256();
  const JwtRules rules = with_keys(R"({"keys":[)" + p256_jwk(p256) + "]}");
  const std::string text = text_to_sign(R"({"alg":"ES256"})", claims());
  for (const std::string& signature : {std::string(), std::string(64, '\0'), std::string(63, 'x'),
                                       std::string(64, '\xff'), sign(p256, text) + "x"})
    EXPECT_EQ(outcome(rules, text + "." + base64url_encode(signature)),
              "token refused: wrong signature");
}

TEST(Jwks, passes_over_what_is_of_no_use_and_refuses_what_is_broken) {
  const PrivateKey rsa = new_rsa(), weak = new_rsa(1024);
  const auto set = [](const std::string& keys) { return R"({"keys":[)" + keys + "]}"; };
  const auto many = parse_jwks(set(rsa_jwk(rsa, R"(,"use":"enc")") + "," +
                                   R"({"kty":"oct","k":"AAAA"},{"kty":"EC","crv":"P-384"},3,)" +
                                   rsa_jwk(rsa, R"(,"kid":"a","key_ops":["verify"])") + "," +
                                   rsa_jwk(rsa, R"(,"kid":"b","alg":"RS512")")));
  ASSERT_TRUE(many.ok()) << many.error().message;
  ASSERT_EQ(many->size(), 1U);
  EXPECT_EQ(many->front().id, "a");
  EXPECT_FALSE(parse_jwks(set(rsa_jwk(weak))).ok());
  EXPECT_FALSE(parse_jwks(set(rsa_jwk(rsa) + "," + rsa_jwk(rsa))).ok());
  EXPECT_FALSE(parse_jwks(set(R"({"kty":"RSA","n":"!","e":"AQAB"})")).ok());
  EXPECT_FALSE(parse_jwks(set(R"({"kty":"EC","crv":"P-256","x":"AA","y":"AA"})")).ok());
  for (const char* bad : {"", "{}", "[]", R"({"keys":{}})", R"({"keys":[]})", "nonsense"})
    EXPECT_FALSE(parse_jwks(bad).ok()) << bad;
}

}  // namespace
}  // namespace gs
