#include "drivers/auth/crypto.hpp"

#include <gtest/gtest.h>

namespace gs {
namespace {

TEST(Base64url, is_strict) {
  EXPECT_EQ(base64url_decode(""), "");
  EXPECT_EQ(base64url_decode("Zg"), "f");
  EXPECT_EQ(base64url_decode("Zm8"), "fo");
  EXPECT_EQ(base64url_decode("Zm9v"), "foo");
  EXPECT_EQ(base64url_decode("-_-_"), "\xfb\xff\xbf");
  // Padding, the other alphabet, blanks, a length that is none, bits left over.
  for (const char* bad : {"Zg==", "+/+/", "Zm 9v", "Z", "Zm9vY", "Zh", "Zm9", "Zm9v\n"})
    EXPECT_EQ(base64url_decode(bad), std::nullopt) << bad;
}

TEST(Base64url, what_was_encoded_is_decoded) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(base64url_decode(base64url_encode(bytes)), bytes);
    bytes += static_cast<char>(i * 37);
  }
}

TEST(Hex, is_read_and_written) {
  EXPECT_EQ(hex(std::string("\x00\xff\x1a", 3)), "00ff1a");
  EXPECT_EQ(from_hex("00FF1a"), std::string("\x00\xff\x1a", 3));
  EXPECT_EQ(from_hex("0"), std::nullopt);
  EXPECT_EQ(from_hex("0g"), std::nullopt);
}

TEST(Crypto, known_digests) {
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),  // RFC 4231, case 2
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Crypto, equality_looks_at_all_of_it) {
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  EXPECT_TRUE(equal_in_constant_time("", ""));
  EXPECT_FALSE(equal_in_constant_time("abc", "abd"));
  EXPECT_FALSE(equal_in_constant_time("abc", "ab"));
}

TEST(Crypto, random_bytes_differ) {
  EXPECT_EQ(random_bytes(32).size(), 32U);
  EXPECT_NE(random_bytes(32), random_bytes(32));
}

TEST(Crypto, a_point_off_the_curve_is_no_key) {
  EXPECT_EQ(p256_public_key(std::string(32, '\1'), std::string(32, '\2')), nullptr);
  EXPECT_EQ(p256_public_key("", ""), nullptr);
  EXPECT_EQ(rsa_public_key("", "\3"), nullptr);
}

}  // namespace
}  // namespace gs
