#include "drivers/webhook/certificate_keeper.hpp"

#include <utility>

#include "drivers/webhook/own_secret.hpp"
#include "net/base64.hpp"
#include "net/http.hpp"

namespace gs::webhook {
namespace {

// Each try is lost to a replica that got further, so a few are enough.
constexpr int kTries = 8;
constexpr int kNotFound = 404, kConflict = 409;
constexpr const char* kStrategicPatch = "application/strategic-merge-patch+json";

Error failure(const std::string& what, const ClusterReply& reply) {
  return {ErrorCode::Unavailable, what + ": " + reply.error};
}

std::string secrets_path(const KeeperOptions& options) {
  return "/api/v1/namespaces/" + percent_encode(options.name_space) + "/secrets";
}

// The entries of a configuration that don't have this bundle, as a patch of them; empty: all have.
Json entries_without(const Json& configuration, const std::string& bundle) {
  Json wrong = Json::array();
  const Json::json_pointer at("/clientConfig/caBundle");
  if (!configuration.contains("webhooks") || !configuration["webhooks"].is_array()) return wrong;
  for (const Json& entry : configuration["webhooks"]) {
    const auto* text =
        entry.is_object() && entry.contains(at) ? entry[at].get_ptr<const std::string*>() : nullptr;
    if (text != nullptr && base64_decode(*text) == bundle) continue;
    if (entry.is_object() && entry.contains("name"))
      wrong.push_back(
          {{"name", entry["name"]}, {"clientConfig", {{"caBundle", base64_encode(bundle)}}}});
  }
  return wrong;
}

}  // namespace

CertificateKeeper::CertificateKeeper(KeeperOptions options, AskCluster ask, Use use,
                                     WebhookMetrics& metrics)
    : options_(std::move(options)), ask_(std::move(ask)), use_(std::move(use)), metrics_(metrics) {}

Status CertificateKeeper::look(Instant now) {
  if (Status kept = look_after_secret(now); !kept) return kept;
  return look_after_bundles();
}

Status CertificateKeeper::look_after_secret(Instant now) {
  const std::string what = "Secret " + options_.name_space + "/" + options_.secret;
  for (int tries = 0; tries < kTries; ++tries) {
    const ClusterReply reply =
        ask_({"GET", secrets_path(options_) + "/" + percent_encode(options_.secret), {}});
    const bool is_new = reply.code == kNotFound;
    if (!reply.ok() && !is_new) return failure(what, reply);
    Result<Json> secret = is_new ? Result<Json>(new_secret(options_.name_space, options_.secret))
                                 : parse_json(reply.body);
    if (!secret) return secret.error();
    const Result<CertificateSet> stored = read_own_secret(*secret);
    if (!stored) return invalid(what + ": " + stored.error().message);
    const auto decide = [&](const CertificateSet& set) {
      return next_step(set, options_.rotation, published_ == set.bundle, now);
    };
    const Decision decision = decide(*stored);
    if (decision.step == Step::Keep) return use(*stored);
    // A Secret that was lost gets back what is served: other replicas serve it as well.
    const bool restores = decision.step == Step::MakeAll && decide(current_).step != Step::MakeAll;
    const Result<CertificateSet> next =
        restores ? Result<CertificateSet>(current_)
                 : after_step(*stored, decision.step, options_.rotation, now);
    if (!next) return next.error();
    const Result<bool> written = write(std::move(*secret), is_new, *next);
    if (!written) return failure(what, {0, {}, written.error().message});
    if (*written)
      log_info(restores ? "the certificates were put back" : "the certificates were changed",
               {{"secret", options_.secret}, {"why", decision.why}});
  }
  return Error{ErrorCode::Unavailable, what + " is changed by others all the time"};
}

// False: somebody else was quicker.
Result<bool> CertificateKeeper::write(Json secret, bool is_new, const CertificateSet& set) {
  fill_secret(secret, set);
  ClusterRequest request;
  request.method = is_new ? "POST" : "PUT";
  request.path = secrets_path(options_) + (is_new ? "" : "/" + percent_encode(options_.secret));
  request.body = secret.dump();
  const ClusterReply reply = ask_(request);
  if (reply.code == kConflict || (!is_new && reply.code == kNotFound)) return false;
  if (!reply.ok()) return Error{ErrorCode::Unavailable, reply.error};
  return true;
}

Status CertificateKeeper::use(const CertificateSet& set) {
  if (set.serving != current_.serving) {
    if (Status used = use_(set.serving); !used) return used;
  }
  current_ = set;
  return ok_status();
}

Status CertificateKeeper::look_after_bundles() {
  if (!options_.configuration.empty())
    for (const char* kind : {"mutatingwebhookconfigurations", "validatingwebhookconfigurations"})
      if (Status status = look_after_bundle(kind); !status) return status;
  published_ = current_.bundle;
  return ok_status();
}

Status CertificateKeeper::look_after_bundle(const std::string& kind) {
  const std::string what = kind + "/" + options_.configuration;
  ClusterRequest request;
  request.path = "/apis/admissionregistration.k8s.io/v1/" + kind + "/" +
                 percent_encode(options_.configuration);
  const ClusterReply found = ask_(request);
  if (found.code == kNotFound) return ok_status();
  if (!found.ok()) return failure(what, found);
  const Result<Json> configuration = parse_json(found.body);
  if (!configuration) return configuration.error();
  const Json wrong = entries_without(*configuration, current_.bundle);
  if (wrong.empty()) return ok_status();
  request.method = "PATCH";
  request.content_type = kStrategicPatch;  // entries are found by their names
  request.body = Json{{"webhooks", wrong}}.dump();
  const ClusterReply patched = ask_(request);
  if (!patched.ok() && patched.code != kNotFound) return failure(what, patched);
  metrics_.bundle_writes.add();
  log_info("the caBundle was set", {{"configuration", what}, {"webhooks", wrong.size()}});
  return ok_status();
}

}  // namespace gs::webhook
