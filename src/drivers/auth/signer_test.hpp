// Makes keys and signs tokens with them, for tests.
#pragma once

#include <memory>
#include <string>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include "base/check.hpp"
#include "drivers/auth/crypto.hpp"

namespace gs::testing_keys {

using PrivateKey = std::shared_ptr<EVP_PKEY>;

inline PrivateKey new_rsa(unsigned bits = 2048) { return {EVP_RSA_gen(bits), EVP_PKEY_free}; }
inline PrivateKey new_p256() { return {EVP_EC_gen("P-256"), EVP_PKEY_free}; }

inline std::string number(const PrivateKey& key, const char* name, int size = 0) {
  BIGNUM* value = nullptr;
  CHECK(EVP_PKEY_get_bn_param(key.get(), name, &value) == 1);
  std::string bytes(static_cast<std::size_t>(size > 0 ? size : BN_num_bytes(value)), '\0');
  CHECK(BN_bn2binpad(value, reinterpret_cast<unsigned char*>(bytes.data()),
                     static_cast<int>(bytes.size())) >= 0);
  BN_free(value);
  return base64url_encode(bytes);
}

inline std::string rsa_jwk(const PrivateKey& key, const std::string& more = "") {
  return R"({"kty":"RSA","n":")" + number(key, OSSL_PKEY_PARAM_RSA_N) + R"(","e":")" +
         number(key, OSSL_PKEY_PARAM_RSA_E) + "\"" + more + "}";
}

inline std::string p256_jwk(const PrivateKey& key, const std::string& more = "") {
  return R"({"kty":"EC","crv":"P-256","x":")" + number(key, OSSL_PKEY_PARAM_EC_PUB_X, 32) +
         R"(","y":")" + number(key, OSSL_PKEY_PARAM_EC_PUB_Y, 32) + "\"" + more + "}";
}

inline std::string sign(const PrivateKey& key, const std::string& text) {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  std::string out(1024, '\0');
  std::size_t size = out.size();
  CHECK(EVP_DigestSignInit(context, nullptr, EVP_sha256(), nullptr, key.get()) == 1);
  CHECK(EVP_DigestSign(context, reinterpret_cast<unsigned char*>(out.data()), &size,
                       reinterpret_cast<const unsigned char*>(text.data()), text.size()) == 1);
  EVP_MD_CTX_free(context);
  out.resize(size);
  if (EVP_PKEY_is_a(key.get(), "EC") != 1) return out;
  const auto* der = reinterpret_cast<const unsigned char*>(out.data());
  ECDSA_SIG* pair = d2i_ECDSA_SIG(nullptr, &der, static_cast<long>(size));
  std::string raw(64, '\0');
  BN_bn2binpad(ECDSA_SIG_get0_r(pair), reinterpret_cast<unsigned char*>(raw.data()), 32);
  BN_bn2binpad(ECDSA_SIG_get0_s(pair), reinterpret_cast<unsigned char*>(raw.data()) + 32, 32);
  ECDSA_SIG_free(pair);
  return raw;
}

inline std::string text_to_sign(const std::string& header, const std::string& claims) {
  return base64url_encode(header) + "." + base64url_encode(claims);
}

inline std::string token(const PrivateKey& key, const std::string& header,
                         const std::string& claims) {
  const std::string text = text_to_sign(header, claims);
  return text + "." + base64url_encode(sign(key, text));
}

inline std::string hs256_token(const std::string& secret, const std::string& claims,
                               const std::string& header = R"({"alg":"HS256"})") {
  const std::string text = text_to_sign(header, claims);
  return text + "." + base64url_encode(hmac_sha256(secret, text));
}

}  // namespace gs::testing_keys
