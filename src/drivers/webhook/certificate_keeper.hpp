// Keeps the webhook's own certificates: makes them where there are none, shares them with the other
// replicas in a Secret, renews them in time, and gives the authorities to those who connect, in the
// caBundle of the webhook configurations.
//
// Any number of replicas may do this at once. A write carries the version that was read, so one of
// them wins and the others take what it wrote. What is served is always what the Secret held when
// it was last read.
#pragma once

#include <functional>
#include <string>

#include "drivers/webhook/cluster_calls.hpp"
#include "drivers/webhook/rotation.hpp"
#include "drivers/webhook/webhook_metrics.hpp"
#include "wire/json_reader.hpp"

namespace gs::webhook {

struct KeeperOptions {
  std::string name_space, secret;
  // Of the MutatingWebhookConfiguration and of the ValidatingWebhookConfiguration. One that does
  // not exist needs nothing.
  std::string configuration;
  RotationOptions rotation;
};

class CertificateKeeper {
 public:
  using Use = std::function<Status(const KeyPair&)>;  // serve with it from now on

  CertificateKeeper(KeeperOptions options, AskCluster ask, Use use, WebhookMetrics& metrics);

  // Looks after everything once; again and again, by one thread. Good: a certificate is in use, and
  // those who connect trust it. After an error the certificate of the last look is still served.
  Status look(Instant now);

 private:
  Status look_after_secret(Instant now);
  Result<bool> write(Json secret, bool is_new, const CertificateSet& set);
  Status use(const CertificateSet& set);
  Status look_after_bundles();
  Status look_after_bundle(const std::string& kind);

  const KeeperOptions options_;
  const AskCluster ask_;
  const Use use_;
  WebhookMetrics& metrics_;
  CertificateSet current_;
  std::string published_;  // the bundle that all configurations have had
};

}  // namespace gs::webhook
