// Admission reviews: every input is answered with an error in words or a review that is valid JSON;
// a patch fits the pod it was made for, and a second pass changes nothing.
#include <cstdint>
#include <string_view>

#include "base/check.hpp"
#include "wire/json_reader.hpp"
#include "wire/kube/mutate.hpp"
#include "wire/kube/review.hpp"

namespace {

void check_mutation(std::string_view object) {
  gs::kube::GpuClaim claim;
  claim.rdma = claim.cufile = gs::Wish::Required;
  gs::kube::MutateOptions options;
  options.claim = &claim;
  options.nvidia_visible_devices = true;
  const auto mutation = gs::kube::mutate_pod(object, options);
  if (!mutation.ok() || mutation->patch.empty()) return;
  const gs::Json patched = gs::parse_json(object)->patch(mutation->patch);
  const auto again = gs::kube::mutate_pod(patched.dump(), options);
  CHECK(again.ok() && again->patch.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gs::kube;
  if (size > 16384) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto request = decode_review(text);
  if (!request.ok()) {
    CHECK(!request.error().message.empty());
    return 0;
  }
  const AdmissionResponse response = validate(*request, {});
  CHECK(response.allowed || !response.message.empty());
  CHECK(gs::parse_json(encode_review(response)).ok());
  const AdmissionResponse changed = mutate(*request, {});
  CHECK(changed.allowed || !changed.message.empty());
  CHECK(gs::parse_json(encode_review(changed)).ok());
  (void)claim_of(*request, ReviewContext{}.scheduler_names);
  if (!request->object.empty()) check_mutation(request->object);
  return 0;
}
