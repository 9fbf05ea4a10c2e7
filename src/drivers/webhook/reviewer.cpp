#include "drivers/webhook/reviewer.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "wire/kube/review.hpp"

namespace gs::webhook {
namespace {

const char* path_of(Door door) { return door == Door::Mutate ? "/mutate" : "/validate"; }

std::string without_claim(const kube::AdmissionRequest& request, const std::string& name,
                          const Result<std::optional<kube::GpuClaim>>& claim) {
  const std::string which = "GpuClaim '" + name + "' of namespace '" + request.ns + "'";
  const std::string why = claim ? " does not exist yet: the pod waits for it"
                                : " could not be read (" + claim.error().message + ")";
  return which + why + ", and its containers get no variables for the claim's fabric";
}

}  // namespace

HttpResponse status_answer(int code, const std::string& reason, const std::string& message) {
  HttpResponse response;
  response.status = code;
  response.body = Json{{"apiVersion", "v1"}, {"kind", "Status"}, {"status", "Failure"},
                       {"message", message}, {"reason", reason}, {"code", code}}
                      .dump(-1, ' ', false, Json::error_handler_t::replace);
  return response;
}

Reviewer::Reviewer(ReviewerOptions options, FindClaim find_claim, WebhookMetrics& metrics)
    : options_(std::move(options)), find_claim_(std::move(find_claim)), metrics_(metrics) {}

bool Reviewer::is_excluded(const std::string& name_space) const {
  const auto& all = options_.excluded_namespaces;
  return std::find(all.begin(), all.end(), name_space) != all.end();
}

void Reviewer::review(std::shared_ptr<Exchange> exchange, Door door) {
  Case one{std::move(exchange), door, Clock::now(), {}};
  Result<kube::AdmissionRequest> request = kube::decode_review(one.exchange->request.body());
  if (!request) {
    log_warn("a request was no admission review",
             {{"from", one.exchange->request.peer}, {"error", request.error().message}});
    return finish(one, "malformed", status_answer(400, "BadRequest", request.error().message));
  }
  one.request = std::move(*request);
  if (is_excluded(one.request.ns)) {
    kube::AdmissionResponse response;
    response.uid = one.request.uid;
    return answer(one, response);
  }
  std::string claim = kube::claim_of(one.request, options_.scheduler_names);
  if (door == Door::Mutate && one.request.kind != "Pod") claim.clear();
  if (claim.empty()) return answer(one, decide(one, {}, Claim(std::nullopt)));
  const std::string name_space = one.request.ns;
  find_claim_(name_space, claim, [this, one = std::move(one), claim](const Claim& found) {
    answer(one, decide(one, claim, found));
  });
}

kube::AdmissionResponse Reviewer::decide(const Case& one, const std::string& claim_name,
                                         const Claim& claim) const {
  const kube::GpuClaim* known = claim && *claim ? &**claim : nullptr;
  try {
    if (one.door == Door::Validate) {
      kube::ReviewContext context;
      context.scheduler_names = options_.scheduler_names;
      context.claim = known;
      return kube::validate(one.request, context);
    }
    kube::MutateOptions options;
    options.scheduler_names = options_.scheduler_names;
    options.claim = known;
    options.nvidia_visible_devices = options_.nvidia_visible_devices;
    options.kubelet_chooses = options_.kubelet_chooses;
    options.naming = options_.naming;
    options.cufile_path = options_.cufile_path;
    kube::AdmissionResponse response = kube::mutate(one.request, options);
    if (response.allowed && known == nullptr && !claim_name.empty())
      response.warnings.push_back(without_claim(one.request, claim_name, claim));
    return response;
  } catch (
      const std::exception& error) {  // of the JSON library: this text, not the process, is bad
    return kube::refused(one.request, 400,
                         std::string("the object can't be read: ") + error.what());
  }
}

void Reviewer::answer(const Case& one, const kube::AdmissionResponse& response) {
  if (!response.allowed)
    log_info("refused", {{"path", path_of(one.door)},
                         {"kind", one.request.kind},
                         {"namespace", one.request.ns},
                         {"name", one.request.name},
                         {"why", response.message}});
  const char* outcome = !response.allowed        ? "denied"
                        : response.patch.empty() ? "allowed"
                                                 : "patched";
  HttpResponse out;
  out.body = kube::encode_review(response);
  finish(one, outcome, std::move(out));
}

void Reviewer::finish(const Case& one, const char* outcome, HttpResponse response) {
  metrics_.requests.with({path_of(one.door), outcome}).add();
  const std::chrono::duration<double> took = Clock::now() - one.began;
  metrics_.seconds.with({path_of(one.door)}).observe(took.count());
  one.exchange->answer(std::move(response));
}

}  // namespace gs::webhook
