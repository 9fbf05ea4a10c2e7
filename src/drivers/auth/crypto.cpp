#include "drivers/auth/crypto.hpp"

#include <array>
#include <cstdint>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/rand.h>

#include "base/check.hpp"
#include "net/freed.hpp"

namespace gs {
namespace {

using Number = std::unique_ptr<BIGNUM, Freed<BN_free>>;
using Builder = std::unique_ptr<OSSL_PARAM_BLD, Freed<OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, Freed<OSSL_PARAM_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Freed<EVP_PKEY_CTX_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, Freed<EVP_MD_CTX_free>>;
using Signature = std::unique_ptr<ECDSA_SIG, Freed<ECDSA_SIG_free>>;

// What fails here must not look like a failure of a TLS connection of the same thread.
struct ErrorsForgotten {
  ErrorsForgotten() { ERR_set_mark(); }
  ~ErrorsForgotten() { ERR_pop_to_mark(); }
  ErrorsForgotten(const ErrorsForgotten&) = delete;
  ErrorsForgotten& operator=(const ErrorsForgotten&) = delete;
};

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

Number number(std::string_view bytes) {
  return Number(BN_bin2bn(bytes_of(bytes), static_cast<int>(bytes.size()), nullptr));
}

PublicKey key_from(const char* type, OSSL_PARAM_BLD* builder) {
  const ErrorsForgotten errors;
  const Params params(OSSL_PARAM_BLD_to_param(builder));
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* raw = nullptr;
  if (!params || !context || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &raw, EVP_PKEY_PUBLIC_KEY, params.get()) != 1)
    return nullptr;
  PublicKey key(raw, EVP_PKEY_free);
  const KeyContext checker(EVP_PKEY_CTX_new(raw, nullptr));
  return checker && EVP_PKEY_public_check(checker.get()) == 1 ? key : nullptr;
}

bool verify(const PublicKey& key, std::string_view message, std::string_view signature) {
  const ErrorsForgotten errors;
  const DigestContext context(EVP_MD_CTX_new());
  return context &&
         EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) == 1 &&
         EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(), bytes_of(message),
                          message.size()) == 1;
}

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::array<std::int8_t, 256> values() {
  std::array<std::int8_t, 256> out{};
  out.fill(-1);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i)
    out[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::int8_t>(i);
  return out;
}
constexpr std::array<std::int8_t, 256> kValues = values();

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::optional<std::string> base64url_decode(std::string_view text) {
  if (text.size() % 4 == 1) return std::nullopt;
  std::string out;
  out.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::int8_t value = kValues[static_cast<unsigned char>(c)];
    if (value < 0) return std::nullopt;
    bits = (bits << 6U) | static_cast<std::uint8_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>((bits >> static_cast<unsigned>(count)) & 0xffU);
    }
  }
  if ((bits & ((1U << static_cast<unsigned>(count)) - 1U)) != 0) return std::nullopt;
  return out;
}

std::string base64url_encode(std::string_view bytes) {
  std::string out;
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : bytes) {
    bits = (bits << 8U) | static_cast<unsigned char>(c);
    for (count += 8; count >= 6; count -= 6) out += kAlphabet[(bits >> (count - 6)) & 63U];
  }
  if (count > 0) out += kAlphabet[(bits << (6 - count)) & 63U];
  return out;
}

std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4U];
    out += kDigits[static_cast<unsigned char>(c) & 15U];
  }
  return out;
}

std::optional<std::string> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
  }
  return out;
}

std::string sha256(std::string_view bytes) {
  std::string out(32, '\0');
  unsigned size = 0;
  CHECK(EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(out.data()), &size,
                   EVP_sha256(), nullptr) == 1);
  CHECK(size == out.size());
  return out;
}

std::string hmac_sha256(std::string_view key, std::string_view bytes) {
  std::string out(32, '\0');
  std::size_t size = 0;
  CHECK(EVP_Q_mac(nullptr, "HMAC", nullptr, "SHA256", nullptr, key.data(), key.size(),
                  bytes_of(bytes), bytes.size(), reinterpret_cast<unsigned char*>(out.data()),
                  out.size(), &size) != nullptr);
  CHECK(size == out.size());
  return out;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_bytes(std::size_t count) {
  std::string out(count, '\0');
  CHECK_MSG(RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(count)) == 1,
            "the system has no randomness");
  return out;
}

PublicKey rsa_public_key(std::string_view modulus, std::string_view exponent) {
  if (modulus.size() > 1024 || exponent.empty() || exponent.size() > 8) return nullptr;
  const Number n = number(modulus), e = number(exponent);
  if (!n || !e || BN_num_bits(n.get()) < 2048 || !BN_is_odd(n.get()) || !BN_is_odd(e.get()) ||
      BN_is_one(e.get()))
    return nullptr;
  const Builder builder(OSSL_PARAM_BLD_new());
  if (!builder || OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get()) != 1)
    return nullptr;
  return key_from("RSA", builder.get());
}

PublicKey p256_public_key(std::string_view x, std::string_view y) {
  if (x.size() != 32 || y.size() != 32) return nullptr;
  const std::string point = "\x04" + std::string(x) + std::string(y);
  const Builder builder(OSSL_PARAM_BLD_new());
  if (!builder ||
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) != 1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                       point.size()) != 1)
    return nullptr;
  return key_from("EC", builder.get());
}

bool verify_rs256(const PublicKey& key, std::string_view message, std::string_view signature) {
  return EVP_PKEY_is_a(key.get(), "RSA") == 1 && verify(key, message, signature);
}

bool verify_es256(const PublicKey& key, std::string_view message, std::string_view signature) {
  if (signature.size() != 64 || EVP_PKEY_is_a(key.get(), "EC") != 1) return false;
  const Signature pair(ECDSA_SIG_new());
  Number r = number(signature.substr(0, 32)), s = number(signature.substr(32));
  if (!pair || !r || !s || ECDSA_SIG_set0(pair.get(), r.release(), s.release()) != 1) return false;
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(pair.get(), &der);
  if (size <= 0) return false;
  const std::string encoded(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  return verify(key, message, encoded);
}

}  // namespace gs
