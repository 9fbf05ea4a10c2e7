#include "drivers/kubernetes/binder.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "drivers/kubernetes/claim_binder.hpp"
#include "drivers/kubernetes/gpu_leases.hpp"
#include "wire/json_reader.hpp"
#include "wire/kube/encode.hpp"
#include "wire/kube/instances.hpp"
#include "wire/kube/names.hpp"
#include "wire/kube/pod.hpp"

namespace gs::kube {
namespace {

// More than there are requests in flight, so that none waits for us. The rest are orders still: a
// request is several times as large, and thousands may be ordered at once.
constexpr std::size_t kPodsAtOnce = 256;
constexpr Duration kFirstEvictionWait = seconds(1), kLongestEvictionWait = seconds(30);

std::string key_of(const PodName& pod) { return pod.ns + "/" + pod.name; }

// Only its status has changed, by our own words, say. Whoever breaks a lease changes an annotation.
bool is_as_it_was(const Pod& pod, const PodPlace& place) {
  return !pod.meta.deleted && pod.meta.labels == place.labels &&
         pod.meta.annotations == place.annotations;
}

bool has_gpu(const Pod& pod, const std::string& node, int gpu) {
  if (pod.node_name != node || pod.ended()) return false;
  if (const std::string* text = pod.meta.annotation(kAllocatedAnnotation))
    if (const Result<Allocated> allocated = parse_allocated(*text))
      return std::find(allocated->gpus.begin(), allocated->gpus.end(), gpu) !=
             allocated->gpus.end();
  return false;
}

}  // namespace

std::map<int, GpuHolder> shares_of(const PodPlace& place) {
  std::map<int, GpuHolder> shares;
  for (std::size_t i = 0; i < place.gpus.size(); ++i) {
    GpuHolder& holder = shares[place.gpus[i]];
    holder.pod_uid = place.pod.uid;
    holder.group = place.share_group;
    if (place.shares.empty()) continue;
    holder.milli = place.shares[i].milli;
    holder.memory_mib = place.shares[i].memory_mib;
    holder.gpu_memory_mib = place.shares[i].gpu_memory_mib;
  }
  for (const MigPlace& instance : place.mig) {
    GpuHolder& holder = shares[instance.gpu];
    holder.pod_uid = place.pod.uid;
    holder.milli = 0;
    holder.mig.push_back(instance.profile);
  }
  return shares;
}

struct Binder::Impl : std::enable_shared_from_this<Binder::Impl> {
  // A Bind that is being carried out.
  struct Work {
    Bind order;
    BindDone result;
    struct Held {
      std::size_t pod = 0;
      int gpu = 0;
      std::string lease_uid;  // empty: others may share it
    };
    std::vector<Held> held;
    std::size_t open = 0;
    bool is_counted = true;  // among those under way
    int tries = 100;         // of Bindings that are sent again
  };
  using WorkPtr = std::shared_ptr<Work>;

  Impl(Api& the_api, BinderOptions the_options, Clock the_clock, Done the_done,
       LeaseGone the_lease_gone)
      : api(the_api),
        options(std::move(the_options)),
        clock(std::move(the_clock)),
        done(std::move(the_done)),
        lease_gone(std::move(the_lease_gone)),
        leases(api, options.lease_namespace, options.identity, clock),
        claims(api) {}

  void begin_some();
  void begin(Bind order);
  void make_way(const WorkPtr& work);
  void end(const WorkPtr& work);
  void take(const WorkPtr& work, std::size_t pod, int gpu, const GpuHolder& holder);
  void leases_done(const WorkPtr& work);
  void volume_done(const WorkPtr& work, std::size_t pod, BindFailure failure, std::string message);
  void volumes_done(const WorkPtr& work);
  void give_up(const WorkPtr& work);
  void send(const WorkPtr& work, std::size_t pod);
  void send_again(const WorkPtr& work, std::size_t pod, const std::string& version);
  std::string binding_of(const PodPlace& place) const;
  void find_out(const WorkPtr& work, std::size_t pod, const ApiError& error);
  void pod_done(const WorkPtr& work, std::size_t pod, BindFailure failure, std::string message,
                const Pod* now = nullptr);
  void give_back(const WorkPtr& work, std::size_t pod, const Pod* now);
  void release(const Release& order);
  void leave(const std::string& node, int gpu, const std::string& uid, const std::string& lease);
  void break_lease(const Break& order);
  void evict(const Evict& order, Duration wait);

  Api& api;
  const BinderOptions options;
  const Clock clock;
  const Done done;
  const LeaseGone lease_gone;
  GpuLeases leases;
  ClaimBinder claims;
  std::deque<Bind> waiting;
  std::size_t under_way = 0;  // pods
  std::set<std::string> evicting;
  bool stopped = false;
};

Binder::Binder(Api& api, BinderOptions options, Clock clock, Done done, LeaseGone lease_gone)
    : impl_(std::make_shared<Impl>(api, std::move(options), std::move(clock), std::move(done),
                                   std::move(lease_gone))) {}
Binder::~Binder() {
  impl_->stopped = true;
  impl_->claims.stop();
}

void Binder::bind(Bind order) {
  impl_->waiting.push_back(std::move(order));
  impl_->begin_some();
}
void Binder::release(Release order) { impl_->release(order); }
void Binder::break_lease(Break order) { impl_->break_lease(order); }
void Binder::evict(Evict order) {
  if (impl_->evicting.insert(order.pod.uid).second) impl_->evict(order, kFirstEvictionWait);
}

// ---------------------------------------------------------------- leases, volumes, bindings

void Binder::Impl::begin_some() {
  while (!waiting.empty() && under_way < kPodsAtOnce) {
    Bind order = std::move(waiting.front());
    waiting.pop_front();
    begin(std::move(order));
  }
}

void Binder::Impl::begin(Bind order) {
  under_way += order.pods.size();
  auto work = std::make_shared<Work>();
  work->order = std::move(order);
  work->result.id = work->order.id;
  for (const PodPlace& place : work->order.pods)
    work->result.pods.push_back({place.pod, BindFailure::None, -1, {}, {}});
  work->open = 1;  // until all have been asked for
  for (std::size_t i = 0; options.leases && i < work->order.pods.size(); ++i)
    for (const auto& [gpu, holder] : shares_of(work->order.pods[i])) {
      ++work->open;
      take(work, i, gpu, holder);
    }
  if (--work->open == 0) leases_done(work);
}

void Binder::Impl::take(const WorkPtr& work, std::size_t pod, int gpu, const GpuHolder& holder) {
  const PodPlace& place = work->order.pods[pod];
  const LeaseAsk ask{place.node, gpu, key_of(place.pod), holder};
  const bool shares = ask.shares();
  leases.take(ask, [self = shared_from_this(), work, pod, gpu, shares](LeaseTaking taking) {
    PodBound& result = work->result.pods[pod];
    if (taking.ok) {
      work->held.push_back({pod, gpu, shares ? std::string{} : taking.lease_uid});
    } else if (!taking.taken_by.empty()) {
      result = {result.pod, BindFailure::LeaseTaken, gpu, taking.taken_by,
                "GPU " + std::to_string(gpu) + " is held by another pod"};
    } else if (result.failure == BindFailure::None) {
      result.failure = BindFailure::Failed;
      result.message = "lease of GPU " + std::to_string(gpu) + ": " + taking.error;
    }
    if (--work->open == 0) self->leases_done(work);
  });
}

void Binder::Impl::leases_done(const WorkPtr& work) {
  auto& pods = work->result.pods;
  const bool all = std::all_of(pods.begin(), pods.end(), [](const PodBound& pod) {
    return pod.failure == BindFailure::None;
  });
  if (!all) return give_up(work);
  work->open = 1;
  for (std::size_t i = 0; i < work->order.pods.size(); ++i)
    for (const VolumeChoice& choice : work->order.pods[i].volumes) {
      ++work->open;
      const PodPlace& place = work->order.pods[i];
      claims.bind(place.pod, place.node, choice,
                  [self = shared_from_this(), work, i](BindFailure failure, std::string message) {
                    self->volume_done(work, i, failure, std::move(message));
                  });
    }
  if (--work->open == 0) return volumes_done(work);
  make_way(work);  // a volume may take minutes to be made
}

// One of the pods can't have what it needs: none is bound.
void Binder::Impl::give_up(const WorkPtr& work) {
  auto& pods = work->result.pods;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (pods[i].failure == BindFailure::None) pods[i].failure = BindFailure::Sibling;
    give_back(work, i, nullptr);
  }
  end(work);
}

void Binder::Impl::make_way(const WorkPtr& work) {
  if (std::exchange(work->is_counted, false)) under_way -= work->order.pods.size();
  if (!stopped) begin_some();
}

void Binder::Impl::end(const WorkPtr& work) {
  if (!stopped) done(std::move(work->result));
  make_way(work);
}

// ---------------------------------------------------------------- volumes

void Binder::Impl::volume_done(const WorkPtr& work, std::size_t pod, BindFailure failure,
                               std::string message) {
  PodBound& result = work->result.pods[pod];
  if (failure != BindFailure::None && result.failure == BindFailure::None) {
    result.failure = failure;
    result.message = std::move(message);
  }
  if (--work->open == 0) volumes_done(work);
}

void Binder::Impl::volumes_done(const WorkPtr& work) {
  const auto& pods = work->result.pods;
  if (std::any_of(pods.begin(), pods.end(),
                  [](const PodBound& pod) { return pod.failure != BindFailure::None; }))
    return give_up(work);
  work->open = pods.size();
  for (std::size_t i = 0; i < work->order.pods.size(); ++i) send(work, i);
}

// ---------------------------------------------------------------- bindings

std::string Binder::Impl::binding_of(const PodPlace& place) const {
  Binding binding;
  binding.pod = place.pod.name;
  binding.ns = place.pod.ns;
  binding.uid = place.pod.uid;
  binding.resource_version = place.resource_version;
  binding.node = place.node;
  // A pod that was copied brings along what the other one was given.
  for (const char* name : kGivenAnnotations)
    if (find_label(place.annotations, name) != nullptr) set_label(binding.annotations, name, "");
  for (const auto& [gpu, holder] : shares_of(place)) binding.gpus.push_back(gpu);
  binding.devices = place.devices;
  if (place.index >= 0)
    set_label(binding.annotations, kIndexAnnotation, std::to_string(place.index));
  if (!place.mig.empty())
    set_label(binding.annotations, kInstancesAnnotation, instances_text(place.mig));
  if (!place.adapters.empty()) set_label(binding.annotations, kHcaAnnotation, place.adapters);
  return encode_binding(binding);
}

void Binder::Impl::send(const WorkPtr& work, std::size_t pod) {
  const PodPlace& place = work->order.pods[pod];
  ApiRequest request = bind_pod(place.pod.ns, place.pod.name, binding_of(place));
  request.lane = Lane::Urgent;
  api.call(std::move(request), [self = shared_from_this(), work, pod](ApiAnswer answer) {
    if (answer.ok()) return self->pod_done(work, pod, BindFailure::None, {});
    const ApiReason reason = answer.error->reason;
    if (reason == ApiReason::BadRequest || reason == ApiReason::Forbidden ||
        reason == ApiReason::Invalid)
      return self->pod_done(work, pod, BindFailure::Refused, answer.error->message);
    self->find_out(work, pod, *answer.error);
  });
}

void Binder::Impl::send_again(const WorkPtr& work, std::size_t pod, const std::string& version) {
  work->order.pods[pod].resource_version = version;
  send(work, pod);
}

// The pod itself says what became of the Binding.
void Binder::Impl::find_out(const WorkPtr& work, std::size_t index, const ApiError& error) {
  const PodName& name = work->order.pods[index].pod;
  ApiRequest request = read_object(kube::pods(), name.ns, name.name);
  request.lane = Lane::Urgent;
  api.call(std::move(request), [self = shared_from_this(), work, index, error](ApiAnswer answer) {
    const PodPlace& place = work->order.pods[index];
    if (!answer.ok()) {
      if (answer.error->reason == ApiReason::NotFound)
        return self->pod_done(work, index, BindFailure::PodGone, "the pod is gone");
      // It may be bound: its leases stay until that is known (the desk judges them).
      std::erase_if(work->held, [&](const Work::Held& held) { return held.pod == index; });
      return self->pod_done(work, index, BindFailure::Failed, error.message);
    }
    const Result<Pod> pod = decode_pod(answer.body);
    if (!pod) return self->pod_done(work, index, BindFailure::Failed, pod.error().message);
    if (pod->meta.uid != place.pod.uid)
      return self->pod_done(work, index, BindFailure::PodGone, "another pod has its name");
    if (!pod->node_name.empty()) {
      const auto shares = shares_of(place);
      const bool ours = pod->node_name == place.node &&
                        std::all_of(shares.begin(), shares.end(), [&](const auto& share) {
                          return has_gpu(*pod, place.node, share.first);
                        });
      return self->pod_done(work, index, ours ? BindFailure::None : BindFailure::Bound,
                            "bound to " + pod->node_name, &*pod);
    }
    const bool changed = pod->meta.resource_version != place.resource_version;
    if (changed && is_as_it_was(*pod, place) && --work->tries > 0)
      return self->send_again(work, index, pod->meta.resource_version);
    self->pod_done(work, index, changed ? BindFailure::PodChanged : BindFailure::Failed,
                   error.message, &*pod);
  });
}

void Binder::Impl::pod_done(const WorkPtr& work, std::size_t pod, BindFailure failure,
                            std::string message, const Pod* now) {
  work->result.pods[pod].failure = failure;
  work->result.pods[pod].message = std::move(message);
  if (failure != BindFailure::None) give_back(work, pod, now);
  if (--work->open == 0) end(work);
}

// But not the lease of a GPU that the pod has after all, by another scheduler's hand.
void Binder::Impl::give_back(const WorkPtr& work, std::size_t pod, const Pod* now) {
  const PodPlace& place = work->order.pods[pod];
  for (const Work::Held& held : work->held)
    if (held.pod == pod && (now == nullptr || !has_gpu(*now, place.node, held.gpu)))
      leave(place.node, held.gpu, place.pod.uid, held.lease_uid);
}

// ---------------------------------------------------------------- giving back

void Binder::Impl::leave(const std::string& node, int gpu, const std::string& uid,
                         const std::string& lease) {
  leases.leave(node, gpu, uid, lease, [self = shared_from_this(), node, gpu](bool is_gone) {
    if (is_gone && !self->stopped) self->lease_gone(gpu_lease_name(node, gpu));
  });
}

void Binder::Impl::release(const Release& order) {
  if (!order.confirm || order.holder.name.empty())
    return leave(order.node, order.gpu, order.holder.uid, order.lease_uid);
  api.call(read_object(kube::pods(), order.holder.ns, order.holder.name),
           [self = shared_from_this(), order](ApiAnswer answer) {
             if (!answer.ok() && answer.error->reason != ApiReason::NotFound) return;
             if (answer.ok()) {
               const Result<Pod> pod = decode_pod(answer.body);
               if (!pod) return;
               const bool same = pod->meta.uid == order.holder.uid && !pod->ended();
               // Not bound: that is for Break. Bound with this GPU: the lease is right.
               if (same && (pod->node_name.empty() || has_gpu(*pod, order.node, order.gpu))) return;
             }
             self->leave(order.node, order.gpu, order.holder.uid, order.lease_uid);
           });
}

void Binder::Impl::break_lease(const Break& order) {
  const Json patch = {
      {"metadata",
       {{"uid", order.holder.uid},
        {"annotations",
         {{kLeaseBrokenAnnotation, options.identity + " at " + std::to_string(clock().ms)}}}}}};
  api.call(patch_object(kube::pods(), order.holder.ns, order.holder.name, PatchType::Merge,
                        patch.dump()),
           [self = shared_from_this(), order](ApiAnswer answer) {
             if (answer.ok()) {
               const Result<Pod> pod = decode_pod(answer.body);
               if (!pod || has_gpu(*pod, order.node, order.gpu)) return;  // bound before us
             } else if (answer.error->reason != ApiReason::NotFound &&
                        answer.error->reason != ApiReason::Conflict) {
               return;  // the desk orders it again
             }
             self->leave(order.node, order.gpu, order.holder.uid, {});
           });
}

// A disruption budget may say no for a while: it is asked again until the pod is gone.
void Binder::Impl::evict(const Evict& order, Duration wait) {
  api.call(evict_pod(order.pod.ns, order.pod.name,
                     encode_eviction(order.pod.ns, order.pod.name, order.pod.uid)),
           [self = shared_from_this(), order, wait](ApiAnswer answer) {
             const bool again = !answer.ok() && answer.error->reason != ApiReason::NotFound &&
                                answer.error->reason != ApiReason::Conflict &&
                                answer.error->reason != ApiReason::Cancelled;
             if (!again || self->stopped) {
               self->evicting.erase(order.pod.uid);
               return;
             }
             self->api.loop().after(wait, [self, order, wait] {
               if (!self->stopped) self->evict(order, std::min(kLongestEvictionWait, wait + wait));
             });
           });
}

}  // namespace gs::kube
