#include "drivers/kubernetes/gpu_leases.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "wire/kube/encode.hpp"
#include "wire/kube/names.hpp"

namespace gs::kube {
namespace {

// Others change a shared lease at the same time: so often we look again.
constexpr int kTries = 10;

}  // namespace

struct GpuLeases::Impl : std::enable_shared_from_this<GpuLeases::Impl> {
  Impl(Api& the_api, std::string the_ns, std::string the_identity, Clock the_clock)
      : api(the_api),
        ns(std::move(the_ns)),
        identity(std::move(the_identity)),
        clock(std::move(the_clock)) {}

  std::string body(const LeaseAsk& ask, std::vector<GpuHolder> holders,
                   const std::string& version) const {
    GpuLease lease;
    lease.ns = ns;
    lease.node = ask.node;
    lease.gpu = ask.gpu;
    lease.pod = ask.pod;
    lease.holders = std::move(holders);
    lease.acquired = clock();
    lease.resource_version = version;
    lease.scheduler = identity;
    return encode_gpu_lease(lease);
  }

  void create(const LeaseAsk& ask, int tries, const Taken& done);
  void look(const LeaseAsk& ask, int tries, const Taken& done);
  void join(const LeaseAsk& ask, const Lease& lease, int tries, const Taken& done);
  void look_and_leave(const std::string& node, int gpu, const std::string& uid, int tries,
                      const Left& done);

  void begin_leaving(const std::string& name) { ++leaving[name].under_way; }
  void end_leaving(const std::string& name);

  // Who takes the GPU of one that is just leaving it waits for that, instead of being refused.
  struct Leaving {
    int under_way = 0;
    std::vector<std::function<void()>> waiting;
  };

  Api& api;
  const std::string ns, identity;
  const Clock clock;
  std::map<std::string, Leaving> leaving;  // by lease
};

GpuLeases::GpuLeases(Api& api, std::string name_space, std::string identity, Clock clock)
    : impl_(std::make_shared<Impl>(api, std::move(name_space), std::move(identity),
                                   std::move(clock))) {}

void GpuLeases::take(LeaseAsk ask, Taken done) {
  if (ask.shares()) ask.holder.scheduler = impl_->identity;
  const auto leaving = impl_->leaving.find(gpu_lease_name(ask.node, ask.gpu));
  if (leaving == impl_->leaving.end()) return impl_->create(ask, 0, done);
  leaving->second.waiting.emplace_back([impl = impl_.get(), ask = std::move(ask),
                                        done = std::move(done)] { impl->create(ask, 0, done); });
}

void GpuLeases::Impl::end_leaving(const std::string& name) {
  const auto it = leaving.find(name);
  if (--it->second.under_way > 0) return;
  const std::vector<std::function<void()>> waiting = std::move(it->second.waiting);
  leaving.erase(it);
  for (const auto& take : waiting) take();
}

void GpuLeases::Impl::create(const LeaseAsk& ask, int tries, const Taken& done) {
  ApiRequest request = create_object(leases(), ns, body(ask, {ask.holder}, {}));
  request.lane = Lane::Urgent;
  api.call(std::move(request), [self = shared_from_this(), ask, tries, done](ApiAnswer answer) {
    if (answer.ok()) {
      const Result<Lease> lease = decode_lease(answer.body);
      done({true, {}, {}, lease ? lease->meta.uid : std::string{}});
    } else if (answer.error->reason == ApiReason::AlreadyExists || answer.error->may_be_done) {
      self->look(ask, tries + 1, done);
    } else {
      done({false, {}, answer.error->message, {}});
    }
  });
}

void GpuLeases::Impl::look(const LeaseAsk& ask, int tries, const Taken& done) {
  if (tries > kTries) return done({false, {}, "its lease changes all the time", {}});
  ApiRequest request = read_object(leases(), ns, gpu_lease_name(ask.node, ask.gpu));
  request.lane = Lane::Urgent;
  api.call(std::move(request), [self = shared_from_this(), ask, tries, done](ApiAnswer answer) {
    if (!answer.ok() && answer.error->reason == ApiReason::NotFound)
      return self->create(ask, tries, done);
    if (!answer.ok()) return done({false, {}, answer.error->message, {}});
    const Result<Lease> lease = decode_lease(answer.body);
    if (!lease) return done({false, {}, lease.error().message, {}});
    const std::string* maker = lease->meta.annotation(kSchedulerAnnotation);
    const auto mine =
        std::find_if(lease->holders.begin(), lease->holders.end(),
                     [&](const GpuHolder& holder) { return holder.pod_uid == ask.holder.pod_uid; });
    if (mine != lease->holders.end()) {
      // Ours, if the answer to our own write was lost; else another scheduler is at the same pod.
      const bool ours = ask.shares() ? mine->scheduler == self->identity
                                     : maker != nullptr && *maker == self->identity;
      return done({ours, ours ? std::string{} : ask.holder.pod_uid, {}, lease->meta.uid});
    }
    if (may_join(*lease, ask.holder)) return self->join(ask, *lease, tries, done);
    done({false, lease->holder.empty() ? std::string("?") : lease->holder, {}, {}});
  });
}

void GpuLeases::Impl::join(const LeaseAsk& ask, const Lease& lease, int tries, const Taken& done) {
  std::vector<GpuHolder> holders = lease.holders;
  holders.push_back(ask.holder);
  ApiRequest request = update_object(leases(), ns, lease.meta.name,
                                     body(ask, std::move(holders), lease.meta.resource_version));
  request.lane = Lane::Urgent;
  api.call(std::move(request), [self = shared_from_this(), ask, tries, done,
                                uid = lease.meta.uid](ApiAnswer answer) {
    if (answer.ok()) return done({true, {}, {}, uid});
    const ApiReason reason = answer.error->reason;
    if (reason == ApiReason::Conflict || reason == ApiReason::NotFound || answer.error->may_be_done)
      return self->look(ask, tries + 1, done);
    done({false, {}, answer.error->message, {}});
  });
}

// ---------------------------------------------------------------- leaving

void GpuLeases::leave(const std::string& node, int gpu, const std::string& pod_uid,
                      const std::string& lease_uid, Left left) {
  const std::string name = gpu_lease_name(node, gpu);
  impl_->begin_leaving(name);
  const Left done = [self = impl_, name, left = std::move(left)](bool is_gone) {
    left(is_gone);
    self->end_leaving(name);
  };
  if (lease_uid.empty()) return impl_->look_and_leave(node, gpu, pod_uid, 0, done);
  ApiRequest request = delete_object(leases(), impl_->ns, name, encode_delete(lease_uid, {}));
  impl_->api.call(std::move(request), [self = impl_, node, gpu, pod_uid, done](ApiAnswer answer) {
    const bool gone = answer.ok() || answer.error->reason == ApiReason::NotFound ||
                      answer.error->reason == ApiReason::Conflict;  // another one has its name
    if (gone) return done(true);
    self->look_and_leave(node, gpu, pod_uid, 1, done);
  });
}

void GpuLeases::Impl::look_and_leave(const std::string& node, int gpu, const std::string& uid,
                                     int tries, const Left& done) {
  if (tries > kTries) return done(false);
  const std::string name = gpu_lease_name(node, gpu);
  api.call(read_object(leases(), ns, name), [self = shared_from_this(), node, gpu, uid, name, tries,
                                             done](ApiAnswer answer) {
    if (!answer.ok()) return done(answer.error->reason == ApiReason::NotFound);
    Result<Lease> lease = decode_lease(answer.body);
    if (!lease) return done(false);
    const std::size_t before = lease->holders.size();
    std::erase_if(lease->holders, [&](const GpuHolder& holder) { return holder.pod_uid == uid; });
    if (lease->holders.size() == before) return done(true);
    ApiRequest request;
    if (lease->holders.empty()) {
      request = delete_object(leases(), self->ns, name,
                              encode_delete(lease->meta.uid, lease->meta.resource_version));
    } else {
      const std::string* pod = lease->meta.annotation(kLeasePodAnnotation);
      const LeaseAsk rest{node, gpu, pod == nullptr ? std::string{} : *pod, {}};
      request = update_object(leases(), self->ns, name,
                              self->body(rest, lease->holders, lease->meta.resource_version));
    }
    self->api.call(std::move(request), [self, node, gpu, uid, tries, done](ApiAnswer written) {
      if (written.ok()) return done(true);
      const ApiReason reason = written.error->reason;
      if (reason == ApiReason::NotFound) return done(true);
      if (reason == ApiReason::Conflict || written.error->may_be_done)
        return self->look_and_leave(node, gpu, uid, tries + 1, done);
      done(false);
    });
  });
}

}  // namespace gs::kube
