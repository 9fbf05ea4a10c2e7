// What the webhook's own certificates need next, as a decision on values: nothing is read or
// written here, and time is an argument.
//
// A connection of the API server must work at every moment of a change. So a new authority is first
// only trusted, beside the old one; a certificate of it is served when everybody has had time to
// hear of it; and the old authority is trusted until it expires, which no certificate of it
// outlives.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "drivers/webhook/certificates.hpp"

namespace gs::webhook {

struct CertificateSet {
  std::string bundle;         // authorities to trust, the newest first
  std::string authority_key;  // of the newest
  KeyPair serving;

  bool is_empty() const { return bundle.empty() && serving.certificate.empty(); }
  bool operator==(const CertificateSet&) const = default;
};

struct RotationOptions {
  std::vector<std::string> names;
  Duration authority_life = hours(24 * 3650);
  Duration serving_life = hours(24 * 365);
  // How long a new authority is trusted before a certificate of it is served; never more than a
  // tenth of an authority's life.
  Duration settle = minutes(10);
};

enum class Step {
  Keep,
  MakeAll,       // there is nothing, or nothing that can be used
  AddAuthority,  // the newest is late: make its successor known
  Renew,         // a new serving certificate, by the newest authority
  DropExpired    // authorities that nobody can use any more
};

struct Decision {
  Step step = Step::Keep;
  std::string why;
};

// `published`: those who connect have been given the bundle.
Decision next_step(const CertificateSet& set, const RotationOptions& options, bool published,
                   Instant now);
// The set after a step that is not Keep.
Result<CertificateSet> after_step(const CertificateSet& set, Step step,
                                  const RotationOptions& options, Instant now);

}  // namespace gs::webhook
