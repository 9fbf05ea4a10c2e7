#include "drivers/webhook/certificates.hpp"

#include <gtest/gtest.h>

namespace gs::webhook {
namespace {

constexpr Instant kNow{1'800'000'000'000};
constexpr Duration kDay = hours(24);

KeyPair authority(Duration life = hours(24 * 100)) { return make_authority(kNow, life).value(); }

TEST(Certificates, of_an_authority_have_its_signature_their_names_and_their_time) {
  const KeyPair ca = authority();
  const auto made = make_serving(ca, {"hook", "hook.ns.svc", "127.0.0.1", "::1"}, kNow, kDay);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_TRUE(check_pair(*made).ok());
  EXPECT_TRUE(is_signed_by(made->certificate, ca.certificate));
  EXPECT_FALSE(is_signed_by(made->certificate, authority().certificate));
  const CertificateFacts facts = read_certificate(made->certificate).value();
  EXPECT_EQ(facts.names, (std::vector<std::string>{"127.0.0.1", "::1", "hook", "hook.ns.svc"}));
  EXPECT_EQ(facts.made(), kNow);
  EXPECT_EQ(facts.not_after, kNow + kDay);
  EXPECT_TRUE(read_certificate(ca.certificate)->names.empty());
}

TEST(Certificates, are_late_when_a_third_of_their_life_is_left) {
  const CertificateFacts facts = read_certificate(authority(hours(30)).certificate).value();
  EXPECT_FALSE(facts.is_late(kNow));
  EXPECT_FALSE(facts.is_late(kNow + hours(19)));
  EXPECT_TRUE(facts.is_late(kNow + hours(20)));
  EXPECT_FALSE(facts.has_expired(kNow + hours(29)));
  EXPECT_TRUE(facts.has_expired(kNow + hours(30)));
}

TEST(Certificates, do_not_outlive_their_authority) {
  const auto made = make_serving(authority(hours(10)), {"hook"}, kNow, kDay);
  EXPECT_EQ(read_certificate(made->certificate)->not_after, kNow + hours(10));
}

TEST(Certificates, that_can_not_be_used_are_refused_in_words) {
  const KeyPair one = authority(), other = authority();
  EXPECT_EQ(check_pair({one.certificate, other.key}).error().message.substr(0, 42),
            "the key does not belong to the certificate");
  EXPECT_FALSE(check_pair({"", one.key}).ok());
  EXPECT_FALSE(check_pair({one.certificate, "-----BEGIN PRIVATE KEY-----\n"}).ok());
  EXPECT_FALSE(read_certificate("text").ok());
  EXPECT_FALSE(make_serving({one.certificate, ""}, {"hook"}, kNow, kDay).ok());
  EXPECT_FALSE(is_signed_by("text", one.certificate));
}

TEST(Certificates, of_a_bundle_come_in_order) {
  const KeyPair one = authority(), other = authority();
  const auto both = certificates_of(one.certificate + "between\n" + other.certificate);
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(*both, (std::vector<std::string>{one.certificate, other.certificate}));
  EXPECT_FALSE(certificates_of("").ok());
  const std::string half = other.certificate.substr(0, other.certificate.size() / 2);
  EXPECT_FALSE(certificates_of(one.certificate + half).ok());
}

TEST(Certificates, have_names_in_one_form) {
  EXPECT_EQ(normal_names({"B.ns", "a", "0:0:0:0:0:0:0:1", "a"}),
            (std::vector<std::string>{"::1", "a", "b.ns"}));
  EXPECT_EQ(service_names("hook", "ns"), (std::vector<std::string>{"hook", "hook.ns", "hook.ns.svc",
                                                                   "hook.ns.svc.cluster.local"}));
}

}  // namespace
}  // namespace gs::webhook
