#include "drivers/webhook/rotation.hpp"

#include <algorithm>
#include <utility>

namespace gs::webhook {
namespace {

struct Reading {
  std::vector<std::string> authorities;  // PEM, the newest first
  std::vector<CertificateFacts> facts;   // of the authorities
  CertificateFacts serving;
};

Result<Reading> read(const CertificateSet& set) {
  Reading reading;
  Result<std::vector<std::string>> authorities = certificates_of(set.bundle);
  if (!authorities) return invalid("the authorities: " + authorities.error().message);
  reading.authorities = std::move(*authorities);
  for (const std::string& one : reading.authorities) {
    const Result<CertificateFacts> facts = read_certificate(one);
    if (!facts) return facts.error();
    reading.facts.push_back(*facts);
  }
  if (Status pair = check_pair({reading.authorities[0], set.authority_key}); !pair)
    return invalid("the newest authority: " + pair.error().message);
  if (Status pair = check_pair(set.serving); !pair)
    return invalid("the serving certificate: " + pair.error().message);
  const Result<CertificateFacts> serving = read_certificate(set.serving.certificate);
  if (!serving) return serving.error();
  reading.serving = *serving;
  return reading;
}

bool has_settled(const Reading& reading, const RotationOptions& options, Instant now) {
  const Duration settle = std::min(options.settle, Duration{options.authority_life.ms / 10});
  return now >= reading.facts[0].made() + settle;
}

bool is_trusted(const Reading& reading, const std::string& serving) {
  return std::any_of(reading.authorities.begin(), reading.authorities.end(),
                     [&](const std::string& one) { return is_signed_by(serving, one); });
}

// Why the serving certificate must be a new one at once; empty: it need not.
std::string unusable(const CertificateSet& set, const Reading& reading,
                     const RotationOptions& options, Instant now) {
  if (reading.serving.has_expired(now)) return "the serving certificate has expired";
  if (reading.serving.names != normal_names(options.names))
    return "the serving certificate has other names";
  if (!is_trusted(reading, set.serving.certificate))
    return "the serving certificate is of no authority that is trusted";
  return {};
}

// Why it should be replaced when that is safe; empty: it need not.
std::string outdated(const CertificateSet& set, const Reading& reading, Instant now) {
  if (reading.serving.is_late(now)) return "a third of the serving certificate's life is left";
  if (!is_signed_by(set.serving.certificate, reading.authorities[0]))
    return "a newer authority has been made known";
  return {};
}

Result<CertificateSet> made_anew(const RotationOptions& options, Instant now) {
  const Result<KeyPair> authority = make_authority(now, options.authority_life);
  if (!authority) return authority.error();
  Result<KeyPair> serving = make_serving(*authority, options.names, now, options.serving_life);
  if (!serving) return serving.error();
  return CertificateSet{authority->certificate, authority->key, std::move(*serving)};
}

Result<CertificateSet> with_new_authority(CertificateSet set, const RotationOptions& options,
                                          Instant now) {
  const Result<KeyPair> authority = make_authority(now, options.authority_life);
  if (!authority) return authority.error();
  set.bundle = authority->certificate + set.bundle;
  set.authority_key = authority->key;
  return set;
}

Result<CertificateSet> renewed(CertificateSet set, const RotationOptions& options, Instant now) {
  Result<std::vector<std::string>> authorities = certificates_of(set.bundle);
  if (!authorities) return authorities.error();
  const KeyPair newest{(*authorities)[0], set.authority_key};
  Result<KeyPair> serving = make_serving(newest, options.names, now, options.serving_life);
  if (!serving) return serving.error();
  set.serving = std::move(*serving);
  return set;
}

Result<CertificateSet> without_expired(CertificateSet set, Instant now) {
  const Result<std::vector<std::string>> authorities = certificates_of(set.bundle);
  if (!authorities) return authorities.error();
  set.bundle.clear();
  for (const std::string& one : *authorities) {
    const Result<CertificateFacts> facts = read_certificate(one);
    if (facts && !facts->has_expired(now)) set.bundle += one;
  }
  return set;
}

}  // namespace

Decision next_step(const CertificateSet& set, const RotationOptions& options, bool published,
                   Instant now) {
  if (set.is_empty()) return {Step::MakeAll, "there are no certificates yet"};
  const Result<Reading> reading = read(set);
  if (!reading) return {Step::MakeAll, reading.error().message};
  const CertificateFacts& newest = reading->facts[0];
  if (newest.has_expired(now)) return {Step::MakeAll, "the authority has expired"};
  if (newest.is_late(now)) return {Step::AddAuthority, "a third of the authority's life is left"};
  if (std::string why = unusable(set, *reading, options, now); !why.empty())
    return {Step::Renew, std::move(why)};
  const bool is_ours = is_signed_by(set.serving.certificate, reading->authorities[0]);
  const bool is_safe = is_ours || (published && has_settled(*reading, options, now));
  if (std::string why = outdated(set, *reading, now); !why.empty() && is_safe)
    return {Step::Renew, std::move(why)};
  if (std::any_of(reading->facts.begin(), reading->facts.end(),
                  [&](const CertificateFacts& one) { return one.has_expired(now); }))
    return {Step::DropExpired, "an old authority has expired"};
  return {};
}

Result<CertificateSet> after_step(const CertificateSet& set, Step step,
                                  const RotationOptions& options, Instant now) {
  switch (step) {
    case Step::MakeAll:
      return made_anew(options, now);
    case Step::AddAuthority:
      return with_new_authority(set, options, now);
    case Step::Renew:
      return renewed(set, options, now);
    case Step::DropExpired:
      return without_expired(set, now);
    case Step::Keep:
      break;
  }
  return set;
}

}  // namespace gs::webhook
