// X.509 certificates of the webhook: an authority of its own, and what it signs. Everything is PEM
// text, and time is an argument.
//
// Certificates begin kBackdated before they are made, for API servers whose clock is behind ours.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace gs::webhook {

inline constexpr Duration kBackdated = minutes(5);

struct KeyPair {
  std::string certificate, key;
  bool operator==(const KeyPair&) const = default;
};

struct CertificateFacts {
  Instant not_before, not_after;
  std::vector<std::string> names;  // DNS names and IP addresses, normal

  Instant made() const { return not_before + kBackdated; }
  // A third of its life is left, or less.
  bool is_late(Instant now) const { return (not_after - now).ms * 3 <= (not_after - made()).ms; }
  bool has_expired(Instant now) const { return now >= not_after; }
};

// The certificates of a bundle, in order; an error where there is none, or one can't be read.
Result<std::vector<std::string>> certificates_of(std::string_view bundle);
// Of the first certificate of a chain.
Result<CertificateFacts> read_certificate(std::string_view certificate);
// The key belongs to the first certificate.
Status check_pair(const KeyPair& pair);
bool is_signed_by(std::string_view certificate, std::string_view authority);

Result<KeyPair> make_authority(Instant now, Duration life);
// For a server of these names, DNS names or IP addresses; it does not outlive its authority.
Result<KeyPair> make_serving(const KeyPair& authority, const std::vector<std::string>& names,
                             Instant now, Duration life);

// As certificates hold them: in order, each once, DNS names in lower case, addresses written in
// one way.
std::vector<std::string> normal_names(std::vector<std::string> names);
// By which the API server, and others in the cluster, know a Service.
std::vector<std::string> service_names(const std::string& service, const std::string& name_space);

}  // namespace gs::webhook
