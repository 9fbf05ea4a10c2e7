#include "drivers/kubernetes/claim_book.hpp"

namespace gs::kube {
namespace {

Resource gpu_claims() { return {"gpu.scheduling", "v1", "gpuclaims", true}; }

ReflectorOptions all_claims() {
  ReflectorOptions options;
  options.resource = gpu_claims();
  return options;
}

Result<std::optional<GpuClaim>> claim_of(const ApiAnswer& answer) {
  if (!answer.ok() && answer.error->reason == ApiReason::NotFound) return std::optional<GpuClaim>();
  if (!answer.ok()) return Error{ErrorCode::Unavailable, answer.error->message};
  Result<GpuClaim> claim = decode_claim(answer.body);
  if (!claim) return claim.error();
  return std::optional<GpuClaim>(std::move(*claim));
}

}  // namespace

ClaimBook::ClaimBook(Api& api, Duration patience)
    : api_(api),
      patience_(patience),
      known_(std::make_shared<Known>()),
      reflector_(api, all_claims(),
                 [known = known_](const ObjectChange& change) { known->change(change); }) {}

void ClaimBook::Known::change(const ObjectChange& change) {
  if (change.kind == ObjectChange::Kind::Synced) return;
  Key key(change.name_space, change.name);
  const bool is_there = change.kind != ObjectChange::Kind::Deleted;
  Result<GpuClaim> claim = is_there ? decode_claim(change.object) : Result<GpuClaim>(Error{});
  const std::lock_guard lock(mutex);
  if (claim)
    claims.insert_or_assign(std::move(key), std::move(*claim));
  else
    claims.erase(key);
}

void ClaimBook::find(const std::string& name_space, const std::string& name, Found found) {
  std::optional<GpuClaim> known;
  {
    const std::lock_guard lock(known_->mutex);
    const auto at = known_->claims.find({name_space, name});
    if (at != known_->claims.end()) known = at->second;
  }
  if (known) return found(std::move(known));
  ApiRequest request = read_object(gpu_claims(), name_space, name);
  request.again = Again::Never;  // somebody waits for it
  request.timeout = patience_;
  api_.call(std::move(request),
            [found = std::move(found)](const ApiAnswer& answer) { found(claim_of(answer)); });
}

}  // namespace gs::kube
