#include "net/base64.hpp"

#include <algorithm>

#include <openssl/evp.h>

namespace gs {

std::optional<std::string> base64_decode(std::string_view text) {
  std::string packed;
  packed.reserve(text.size());
  for (const char c : text)
    if (c != '\n' && c != '\r' && c != ' ' && c != '\t') packed += c;
  if (packed.size() % 4 != 0) return std::nullopt;
  const std::size_t padding =
      packed.ends_with("==") ? 2 : static_cast<std::size_t>(packed.ends_with('='));
  // OpenSSL takes '=' anywhere and '-' as an end: only the alphabet may stand before the padding.
  const bool is_clean =
      std::all_of(packed.begin(), packed.end() - static_cast<std::ptrdiff_t>(padding), [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
               c == '+' || c == '/';
      });
  if (!is_clean) return std::nullopt;
  std::string out(packed.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(packed.data()),
                                   static_cast<int>(packed.size()));
  if (size < 0) return std::nullopt;
  out.resize(static_cast<std::size_t>(size) - padding);
  return out;
}

std::string base64_encode(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(size));
  return out;
}

}  // namespace gs
