#include "drivers/kubernetes/claim_binder.hpp"

#include <utility>

#include "wire/json_reader.hpp"
#include "wire/kube/storage.hpp"

namespace gs::kube {
namespace {

// A volume that has to be made first takes its time: ten minutes at most.
constexpr Duration kLook = milliseconds(250);
constexpr int kMostLooks = 2400;
constexpr int kLooksAtPod = 8;  // every so many of them

const Resource kVolumeClaims{"", "v1", "persistentvolumeclaims", true};
const Resource kVolumes{"", "v1", "persistentvolumes", false};

struct Wait {
  PodName pod;
  VolumeChoice choice;
  ClaimBinder::Done done;
  int looks = 0;
};
using WaitPtr = std::shared_ptr<Wait>;

// A volume that is there is reserved for the claim.
ApiRequest reserve(const PodName& pod, const VolumeChoice& choice) {
  const Json patch = {{"metadata",
                       {{"resourceVersion", choice.volume_version},
                        {"annotations", {{"pv.kubernetes.io/bound-by-controller", "yes"}}}}},
                      {"spec",
                       {{"claimRef",
                         {{"apiVersion", "v1"},
                          {"kind", "PersistentVolumeClaim"},
                          {"namespace", pod.ns},
                          {"name", choice.claim},
                          {"uid", choice.claim_uid}}}}}};
  return patch_object(kVolumes, {}, choice.volume, PatchType::Merge, patch.dump());
}

// Else whoever makes volumes is told the node.
ApiRequest select(const PodName& pod, const std::string& node, const VolumeChoice& choice) {
  const Json patch = {
      {"metadata",
       {{"uid", choice.claim_uid}, {"annotations", {{kSelectedNodeAnnotation, node}}}}}};
  return patch_object(kVolumeClaims, pod.ns, choice.claim, PatchType::Merge, patch.dump());
}

}  // namespace

struct ClaimBinder::Impl : std::enable_shared_from_this<ClaimBinder::Impl> {
  explicit Impl(Api& the_api) : api(the_api) {}

  void look(const WaitPtr& wait);
  void look_at_pod(const WaitPtr& wait);
  void looked(const WaitPtr& wait, const ApiAnswer& answer);

  Api& api;
  bool stopped = false;
};

ClaimBinder::ClaimBinder(Api& api) : impl_(std::make_shared<Impl>(api)) {}
ClaimBinder::~ClaimBinder() { stop(); }
void ClaimBinder::stop() { impl_->stopped = true; }

void ClaimBinder::bind(const PodName& pod, const std::string& node, const VolumeChoice& choice,
                       Done done) {
  auto wait = std::make_shared<Wait>(Wait{pod, choice, std::move(done), 0});
  ApiRequest request = choice.volume.empty() ? select(pod, node, choice) : reserve(pod, choice);
  impl_->api.call(std::move(request), [impl = impl_, wait](ApiAnswer answer) {
    if (impl->stopped) return;
    if (answer.ok() || answer.error->may_be_done) return impl->look(wait);
    wait->done(BindFailure::Failed,
               "volume of claim " + wait->choice.claim + ": " + answer.error->message);
  });
}

// The pod may go while we wait: it is looked at now and then, too.
void ClaimBinder::Impl::look(const WaitPtr& wait) {
  if (stopped) return;
  if (++wait->looks > kMostLooks)
    return wait->done(BindFailure::Failed,
                      "claim " + wait->choice.claim + " was not bound to a volume in time");
  if (wait->looks % kLooksAtPod == 0) return look_at_pod(wait);
  api.call(read_object(kVolumeClaims, wait->pod.ns, wait->choice.claim),
           [self = shared_from_this(), wait](const ApiAnswer& answer) {
             if (!self->stopped) self->looked(wait, answer);
           });
}

void ClaimBinder::Impl::look_at_pod(const WaitPtr& wait) {
  api.call(read_object(pods(), wait->pod.ns, wait->pod.name),
           [self = shared_from_this(), wait](const ApiAnswer& answer) {
             if (self->stopped) return;
             bool gone = !answer.ok() && answer.error->reason == ApiReason::NotFound;
             if (answer.ok())
               if (const Result<Pod> now = decode_pod(answer.body))
                 gone = now->meta.deleted || now->ended() || now->meta.uid != wait->pod.uid;
             if (gone) return wait->done(BindFailure::PodGone, "the pod is gone");
             self->look(wait);
           });
}

void ClaimBinder::Impl::looked(const WaitPtr& wait, const ApiAnswer& answer) {
  const std::string text = "claim " + wait->choice.claim;
  if (!answer.ok() && answer.error->reason == ApiReason::NotFound)
    return wait->done(BindFailure::Failed, text + " is gone");
  if (answer.ok()) {
    const Result<PersistentVolumeClaim> claim = decode_volume_claim(answer.body);
    if (claim && claim->bound) return wait->done(BindFailure::None, {});
    // Who makes volumes takes the node back where it can't make one there.
    if (claim && wait->choice.volume.empty() && claim->selected_node() == nullptr)
      return wait->done(BindFailure::Failed, text + ": no volume could be made on the node");
  }
  api.loop().after(kLook, [self = shared_from_this(), wait] { self->look(wait); });
}

}  // namespace gs::kube
