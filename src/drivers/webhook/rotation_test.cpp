#include "drivers/webhook/rotation.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace gs::webhook {
namespace {

constexpr Instant kStart{1'800'000'000'000};
constexpr Duration kDay = hours(24);

Duration days(int count) { return hours(24 * count); }

RotationOptions options() {
  RotationOptions out;
  out.names = {"hook", "hook.ns.svc"};
  out.authority_life = days(90);
  out.serving_life = days(30);
  return out;
}

CertificateSet fresh() { return after_step({}, Step::MakeAll, options(), kStart).value(); }

Step step_at(const CertificateSet& set, Instant now, bool published = true) {
  return next_step(set, options(), published, now).step;
}

TEST(Rotation, begins_with_nothing_and_keeps_what_is_good) {
  EXPECT_EQ(step_at({}, kStart), Step::MakeAll);
  const CertificateSet set = fresh();
  EXPECT_EQ(step_at(set, kStart), Step::Keep);
  EXPECT_EQ(step_at(set, kStart, false), Step::Keep);
  EXPECT_EQ(step_at(set, kStart + days(19)), Step::Keep);
}

TEST(Rotation, renews_the_certificate_when_a_third_of_its_life_is_left) {
  const CertificateSet set = fresh();
  const Instant late = kStart + days(20);
  EXPECT_EQ(step_at(set, late, false), Step::Renew);  // its authority has been known for long
  const CertificateSet next = after_step(set, Step::Renew, options(), late).value();
  EXPECT_EQ(next.bundle, set.bundle);
  EXPECT_NE(next.serving, set.serving);
  EXPECT_EQ(step_at(next, late), Step::Keep);
}

TEST(Rotation, a_new_authority_is_trusted_before_it_is_used) {
  const Instant late = kStart + days(60);
  CertificateSet set = fresh();
  set = after_step(set, Step::Renew, options(), kStart + days(59)).value();
  ASSERT_EQ(step_at(set, late), Step::AddAuthority);
  const CertificateSet both = after_step(set, Step::AddAuthority, options(), late).value();
  EXPECT_EQ(both.serving, set.serving);
  EXPECT_TRUE(both.bundle.ends_with(set.bundle));
  EXPECT_EQ(certificates_of(both.bundle)->size(), 2U);

  EXPECT_EQ(step_at(both, late), Step::Keep);
  EXPECT_EQ(step_at(both, late + minutes(9)), Step::Keep);
  EXPECT_EQ(step_at(both, late + days(1), false), Step::Keep);  // nobody has heard of it
  ASSERT_EQ(step_at(both, late + minutes(10)), Step::Renew);
  const CertificateSet after = after_step(both, Step::Renew, options(), late + minutes(10)).value();
  EXPECT_TRUE(is_signed_by(after.serving.certificate, certificates_of(after.bundle)->front()));

  EXPECT_EQ(after.bundle, both.bundle);
  EXPECT_EQ(step_at(after, kStart + days(79)), Step::Keep);
}

TEST(Rotation, an_old_authority_goes_when_it_has_expired) {
  CertificateSet set =
      after_step(fresh(), Step::AddAuthority, options(), kStart + days(60)).value();
  set = after_step(set, Step::Renew, options(), kStart + days(89)).value();
  EXPECT_EQ(step_at(set, kStart + days(90) - minutes(1)), Step::Keep);
  ASSERT_EQ(step_at(set, kStart + days(90)), Step::DropExpired);
  const CertificateSet rest =
      after_step(set, Step::DropExpired, options(), kStart + days(90)).value();
  EXPECT_EQ(rest.bundle, certificates_of(set.bundle)->front());
  EXPECT_EQ(rest.serving, set.serving);
  EXPECT_EQ(step_at(rest, kStart + days(90)), Step::Keep);
}

TEST(Rotation, what_can_not_be_used_is_replaced_at_once) {
  CertificateSet set = fresh();
  RotationOptions renamed = options();
  renamed.names.push_back("127.0.0.1");
  EXPECT_EQ(next_step(set, renamed, false, kStart).step, Step::Renew);
  EXPECT_EQ(step_at(set, kStart + days(31), false), Step::Renew);    // expired
  EXPECT_EQ(step_at(set, kStart + days(91), false), Step::MakeAll);  // and so has its authority
  CertificateSet mixed = set;
  mixed.serving = fresh().serving;
  EXPECT_EQ(step_at(mixed, kStart, false), Step::Renew);
  for (std::string* part : {&set.bundle, &set.authority_key, &set.serving.key}) {
    const std::string good = *part;
    *part = "text";
    EXPECT_EQ(step_at(set, kStart), Step::MakeAll);
    *part = good;
  }
  EXPECT_EQ(step_at(set, kStart), Step::Keep);
}

// A year of it, looked at twice a day by a keeper that is sometimes away: whoever has the
// bundle of the step before trusts what is served now.
TEST(Rotation, is_trusted_at_every_moment) {
  CertificateSet set = fresh();
  std::string known = set.bundle;
  int renewals = 0, authorities = 1;
  for (Instant now = kStart; now < kStart + days(360); now = now + hours(12)) {
    if ((now - kStart).ms / kDay.ms % 50 < 5) continue;  // away
    const Decision decision = next_step(set, options(), known == set.bundle, now);
    known = set.bundle;
    const auto trusted = certificates_of(known).value();
    ASSERT_TRUE(std::any_of(trusted.begin(), trusted.end(), [&](const std::string& one) {
      return is_signed_by(set.serving.certificate, one) && !read_certificate(one)->has_expired(now);
    })) << (now - kStart).seconds();
    ASSERT_FALSE(read_certificate(set.serving.certificate)->has_expired(now));
    ASSERT_NE(decision.step, Step::MakeAll) << decision.why;
    if (decision.step == Step::Keep) continue;
    set = after_step(set, decision.step, options(), now).value();
    renewals += decision.step == Step::Renew;
    authorities += decision.step == Step::AddAuthority;
  }
  EXPECT_GE(renewals, 15);
  EXPECT_GE(authorities, 5);
  EXPECT_LE(certificates_of(set.bundle)->size(), 2U);
}

}  // namespace
}  // namespace gs::webhook
