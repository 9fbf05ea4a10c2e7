// The Secret in which the webhook's replicas share the certificates that they made: tls.crt and
// tls.key as in every Secret of that type, ca.crt with all authorities, ca.key of the newest.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "drivers/webhook/rotation.hpp"
#include "wire/json_reader.hpp"

namespace gs::webhook {

// An empty Secret is an empty set: somebody made it for us to fill. A certificate whose authority's
// key is not there was not made by us, and is an error: it must not be overwritten.
Result<CertificateSet> read_own_secret(const Json& secret);

Json new_secret(const std::string& name_space, const std::string& name);
// Everything else in the Secret stays as it is; its resourceVersion makes a write fail where
// somebody else was quicker.
void fill_secret(Json& secret, const CertificateSet& set);

}  // namespace gs::webhook
