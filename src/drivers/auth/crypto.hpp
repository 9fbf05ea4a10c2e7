// The few cryptographic operations that authentication needs, on OpenSSL's EVP interface, and
// base64url as RFC 7515 wants it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <openssl/types.h>

namespace gs {

// No padding, no other alphabet, no bits left over: one text for one value. None: not such a text.
std::optional<std::string> base64url_decode(std::string_view text);
std::string base64url_encode(std::string_view bytes);
std::string hex(std::string_view bytes);
std::optional<std::string> from_hex(std::string_view text);

std::string sha256(std::string_view bytes);
std::string hmac_sha256(std::string_view key, std::string_view bytes);
// Takes the same time wherever two texts of the same length differ.
bool equal_in_constant_time(std::string_view a, std::string_view b);
std::string random_bytes(std::size_t count);

// A public key; can be used by many threads at once.
using PublicKey = std::shared_ptr<EVP_PKEY>;
// Big-endian numbers, as JWKs have them. Null: no such key, or one that is too weak (RSA below
// 2048 bits) or too costly (above 8192).
PublicKey rsa_public_key(std::string_view modulus, std::string_view exponent);
PublicKey p256_public_key(std::string_view x, std::string_view y);

bool verify_rs256(const PublicKey& key, std::string_view message, std::string_view signature);
// The signature is r and s, 32 bytes each.
bool verify_es256(const PublicKey& key, std::string_view message, std::string_view signature);

}  // namespace gs
