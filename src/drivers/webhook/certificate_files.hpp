// A certificate and its key in files that somebody else renews: a mounted Secret of cert-manager,
// or of scripts/generate-webhook-certs.sh.
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "drivers/webhook/certificates.hpp"

namespace gs::webhook {

class CertificateFiles {
 public:
  using Use = std::function<Status(const KeyPair&)>;  // serve with it from now on

  CertificateFiles(std::string certificate_file, std::string key_file, Use use);

  // Reads both, and uses them where they have changed. Files that don't belong together (one has
  // been replaced and the other not yet), have expired or can't be read are an error: what was used
  // before stays in use.
  Status look(Instant now);

 private:
  const std::string certificate_file_, key_file_;
  const Use use_;
  KeyPair current_;
};

}  // namespace gs::webhook
